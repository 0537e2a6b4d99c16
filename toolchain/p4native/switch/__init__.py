"""The software switch as a library. `Program` is BMv2 JSON after it was read, and `Pipeline` runs a
program as native code. docs/interface.md shows how these names are used."""

from p4native.switch.bmv2_json.arrays import MAX_CELLS
from p4native.switch.build import RUNTIME
from p4native.switch.detail import Detail
from p4native.switch.errors import PipelineError, ProgramError
from p4native.switch.io.build import loop_library
from p4native.switch.matches import Exact, Group, Lpm, Match, Member, Range, Ternary
from p4native.switch.meters import MeterRates
from p4native.switch.model import Action, Key, Table
from p4native.switch.pipeline import Entry, Pipeline, native_library
from p4native.switch.program import Program
from p4native.switch.tables import Encoded

__all__ = [
    "MAX_CELLS",
    "RUNTIME",
    "Action",
    "Detail",
    "Encoded",
    "Entry",
    "Exact",
    "Group",
    "Key",
    "Lpm",
    "Match",
    "Member",
    "MeterRates",
    "Pipeline",
    "PipelineError",
    "Program",
    "ProgramError",
    "Range",
    "Table",
    "Ternary",
    "loop_library",
    "native_library",
]

"""The software switch as a library. `Program` is BMv2 JSON after it was read, and `Pipeline` runs a
program as native code."""

from p4native.switch.detail import Detail
from p4native.switch.errors import PipelineError, ProgramError
from p4native.switch.matches import Exact, Group, Lpm, Match, Member, Range, Ternary
from p4native.switch.meters import MeterRates
from p4native.switch.pipeline import Entry, Pipeline
from p4native.switch.program import Program

__all__ = [
    "Detail",
    "Entry",
    "Exact",
    "Group",
    "Lpm",
    "Match",
    "Member",
    "MeterRates",
    "Pipeline",
    "PipelineError",
    "Program",
    "ProgramError",
    "Range",
    "Ternary",
]

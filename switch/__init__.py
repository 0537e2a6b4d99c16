"""The software switch as a library. `Program` is BMv2 JSON after it was read, and `Pipeline` runs a
program as native code."""

from agglab.switch.detail import Detail
from agglab.switch.errors import PipelineError, ProgramError
from agglab.switch.matches import Exact, Group, Lpm, Match, Member, Range, Ternary
from agglab.switch.meters import MeterRates
from agglab.switch.pipeline import Entry, Pipeline
from agglab.switch.program import Program

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

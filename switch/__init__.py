"""BMv2 JSON as native code: `Pipeline` runs a program, `Program` is the JSON as read."""

from switch.detail import Detail
from switch.errors import PipelineError, ProgramError
from switch.matches import Exact, Group, Lpm, Match, Member, Range, Ternary
from switch.pipeline import Entry, Pipeline
from switch.program import Program
from switch.state import MeterRates

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

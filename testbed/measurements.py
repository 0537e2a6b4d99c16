"""Everything a finished run measured, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.control.outcome import Outcome
from agglab.testbed.series.tracks import Record
from agglab.testbed.statistics import NetworkStatistics
from agglab.testbed.systems.base import Cells


@dataclass(frozen=True)
class Measurements:
    """Everything a finished run measured.

    register_bits: switch -> of all registers of its program.
    counters: switch -> kind -> index of the job in the run (and one more for none) -> (packets,
    bytes).
    processors: that the run may use; usage in `outcome` is of the rounds alone.
    record: what was looked at over time.
    """

    outcome: Outcome
    statistics: NetworkStatistics
    counters: Mapping[str, Mapping[str, Cells]]
    register_bits: Mapping[str, int]
    processors: int
    record: Record = field(default_factory=Record)

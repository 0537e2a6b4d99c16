"""Everything a finished run measured, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agglab.testbed.control.outcome import Outcome
from agglab.testbed.statistics import NetworkStatistics

COUNTERS = {
    "new": "contribution_new",
    "duplicate": "contribution_duplicate",
    "stale": "contribution_stale",
    "complete": "chunk_complete",
    "refused": "contribution_refused",
    "repeated": "result_repeated",
    "partial_repeated": "partial_repeated",
    "final_new": "final_new",
    "final_unneeded": "final_unneeded",
    "malformed": "malformed",
    "host_errors": "host_errors",
    "forged": "forged",
    "forwarded": "forwarded",
    "unroutable": "unroutable",
}
"""Our word in metrics.json -> the counter's name in the P4 program."""

Cells: TypeAlias = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Measurements:
    """Everything a finished run measured.

    counters: switch -> kind -> index of the job in the run (and one more for none) -> (packets,
    bytes).
    processors: that the run may use; usage in `outcome` is of the rounds alone.
    """

    outcome: Outcome
    statistics: NetworkStatistics
    counters: Mapping[str, Mapping[str, Cells]]
    processors: int

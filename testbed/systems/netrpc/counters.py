"""What NetRPC's program counts, and what it must have sent by these counts."""

from __future__ import annotations

from collections.abc import Mapping

from agglab.testbed.systems.base import Cells, Counter
from agglab.testbed.systems.forwarding import FORWARDING_COUNTERS

COUNTERS: dict[str, Counter] = {
    "new": Counter("call_new", "calls executed"),
    "duplicate": Counter("call_repeated", "calls that had been executed before"),
    "stale": Counter("call_stale", "calls that their caller has long had an answer to", "stale"),
    "lost": Counter(
        "call_lost",
        "calls about a state that the switch does not have: of an older round, or from before it "
        "was restarted",
        tally="stale",
    ),
    "complete": Counter("gather_complete", "gathers answered to all workers"),
    "refused": Counter(
        "call_refused", "packets for the aggregator that are no valid call", tally="malformed"
    ),
    "repeated": Counter("answer_single", "answers to one worker alone"),
    "passed": Counter("call_passed", "calls passed on towards the switch that executes them"),
    "delivered": Counter("answer_passed", "answers of another switch, passed on", of_jobs=False),
    **FORWARDING_COUNTERS,
}

ARRIVALS = (
    *("new", "duplicate", "stale", "lost", "refused", "passed", "delivered"),
    *FORWARDING_COUNTERS,
)
"""Every frame the program takes in is counted by exactly one of these."""


def owed(counters: Mapping[str, Cells], index: int, workers: int) -> int:
    """Frames that one job's counts say a switch sent; the first job's has those that were passed on
    and are counted for all jobs together. workers: of the job."""

    def count(kind: str) -> int:
        return counters[kind].get(index, (0, 0))[0]

    passed = count("passed")
    if index == 0:
        passed += count("delivered") + count("forwarded")
    return count("complete") * workers + count("repeated") + passed

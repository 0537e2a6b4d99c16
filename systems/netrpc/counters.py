"""The counters of NetRPC's program, and the frames that it must have sent according to them."""

from __future__ import annotations

from collections.abc import Mapping

from agglab.testbed.systems.base import FORWARDING_COUNTERS, Cells, Counter

COUNTERS: dict[str, Counter] = {
    "new": Counter("call_new", "calls executed"),
    "duplicate": Counter("call_repeated", "calls that had already been executed"),
    "stale": Counter("call_stale", "calls whose caller received an answer long ago", "stale"),
    "lost": Counter(
        "call_lost",
        "calls that refer to a state the switch does not have: that of an older round, or of "
        "the time before a restart",
        tally="stale",
    ),
    "complete": Counter("gather_complete", "gathers whose answer was sent to all workers"),
    "refused": Counter(
        "call_refused", "packets for the aggregator that are not valid calls", tally="malformed"
    ),
    "repeated": Counter("answer_single", "answers to a single worker"),
    "passed": Counter("call_passed", "calls forwarded to the switch that executes them"),
    "delivered": Counter(
        "answer_passed", "answers of another switch that were forwarded", of_jobs=False
    ),
    **FORWARDING_COUNTERS,
}

ARRIVALS = (
    *("new", "duplicate", "stale", "lost", "refused", "passed", "delivered"),
    *FORWARDING_COUNTERS,
)
"""The counters of frames that the program receives. Exactly one of them counts each frame."""


def expected_frames(counters: Mapping[str, Cells], index: int, workers: int) -> int:
    """Returns the frames that a switch must have sent for one job, by its counters. Frames that
    were forwarded are counted for all jobs together, and are included for the first job. workers:
    the number of workers of the job."""

    def count(kind: str) -> int:
        return counters[kind].get(index, (0, 0))[0]

    passed = count("passed")
    if index == 0:
        passed += count("delivered") + count("forwarded")
    return count("complete") * workers + count("repeated") + passed

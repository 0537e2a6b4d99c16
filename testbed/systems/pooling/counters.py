"""What programs count whose slots all jobs share, and what they must have sent by these counts."""

from __future__ import annotations

from collections.abc import Mapping

from agglab.testbed.systems.base import Cells, Counter
from agglab.testbed.systems.forwarding import FORWARDING_COUNTERS

COUNTERS: dict[str, Counter] = {
    "new": Counter("contribution_new", "contributions summed in a slot"),
    "duplicate": Counter("contribution_duplicate", "contributions that the slot had already"),
    "collided": Counter(
        "contribution_collided", "contributions whose slot another chunk had, sent to the server"
    ),
    "passed": Counter(
        "contribution_passed",
        "contributions sent again that no slot knew, and floats, sent to the server",
    ),
    "released": Counter(
        "slot_released", "contributions sent again that took with them what the slot had"
    ),
    "refused": Counter(
        "contribution_refused",
        "packets for the aggregator that are of no member and no server of the job",
        tally="malformed",
    ),
    "complete": Counter("chunk_complete", "chunks completed, sent to the server"),
    "to_all": Counter("result_to_all", "results handed down to all"),
    "to_one": Counter("result_to_one", "results handed down to the one worker that asked again"),
    **FORWARDING_COUNTERS,
}
EVICTED = Counter(
    "slot_evicted",
    "sums so far that a chunk of higher priority drove out of their slot, sent to the server",
)

POOLING = ("new", "duplicate", "collided", "passed", "released", "refused", "to_all", "to_one")
ARRIVALS = (*POOLING, *FORWARDING_COUNTERS)
"""Every frame the program takes in is counted by exactly one of these."""
ONE_FRAME = ("complete", "collided", "passed", "released", "to_one", "evicted")
"""These send one frame; a result handed down to all one for each child."""


def owed(counters: Mapping[str, Cells], index: int, children: int) -> int:
    """Frames that one job's counts say were sent."""

    def count(kind: str) -> int:
        return counters.get(kind, {}).get(index, (0, 0))[0]

    return count("to_all") * children + sum(count(kind) for kind in ONE_FRAME)

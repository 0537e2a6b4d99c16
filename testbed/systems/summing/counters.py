"""The counters of programs that sum in slots, and the frames that these programs must have sent
according to them."""

from __future__ import annotations

from collections.abc import Mapping

from agglab.testbed.systems.base import FORWARDING_COUNTERS, Cells, Counter
from agglab.testbed.systems.plan import Tree

COUNTERS: dict[str, Counter] = {
    "new": Counter("contribution_new", "contributions summed"),
    "duplicate": Counter("contribution_duplicate", "contributions that the slot already contained"),
    "stale": Counter(
        "contribution_stale", "contributions to a chunk that was already complete", tally="stale"
    ),
    "complete": Counter("chunk_complete", "chunks completed"),
    "refused": Counter(
        "contribution_refused",
        "packets for the aggregator that are not valid contributions",
        tally="malformed",
    ),
    "repeated": Counter("result_repeated", "results sent again to one worker or switch"),
    "partial_repeated": Counter("partial_repeated", "partial sums sent up again"),
    "final_new": Counter("final_new", "results from the parent switch, sent on to the children"),
    "final_unneeded": Counter(
        "final_unneeded", "results from the parent switch that were already there"
    ),
    **FORWARDING_COUNTERS,
}

AGGREGATION = ("new", "duplicate", "stale", "refused", "final_new", "final_unneeded")
ARRIVALS = (*AGGREGATION, *FORWARDING_COUNTERS)
"""The counters of frames that the program receives. Exactly one of them counts each frame."""
ONE_FRAME = ("repeated", "partial_repeated")
"""The counters of events for which one frame is sent. For a complete chunk, one frame is sent, or
one for each child. For a new final sum, one frame is sent for each child."""


def expected_frames(counters: Mapping[str, Cells], index: int, tree: Tree, switch: str) -> int:
    """Returns the number of frames that a switch must have sent for one job, by its counters."""
    branch = tree.branches.get(switch)
    if branch is None:
        return 0

    def count(kind: str) -> int:
        return counters[kind].get(index, (0, 0))[0]

    children = len(branch.children)
    to_all = count("complete") if branch.parent is None else count("final_new")
    up = 0 if branch.parent is None else count("complete")
    return to_all * children + up + sum(count(kind) for kind in ONE_FRAME)

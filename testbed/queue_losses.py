"""What became of frames inside a switch: what came in, what its program counted, what went out.

Each frame that reaches p4/switchml.p4 is counted by one of its counters, and what it sends follows
from them. Where that does not come out, either the switch lost frames (BMv2 says nothing of packets
that its receive rings or egress queues had no room for), or its program does not do what it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agglab.testbed.measurements import Cells, Measurements
from agglab.testbed.plan import Tree
from agglab.testbed.statistics import DirectionStatistics

AGGREGATION = ("new", "duplicate", "stale", "refused", "final_new", "final_unneeded")
FORWARDING = ("malformed", "host_errors", "forged", "forwarded", "unroutable")
ARRIVALS = (*AGGREGATION, *FORWARDING)
"""Every frame the program takes in is counted by exactly one of these."""
ONE_FRAME = ("repeated", "partial_repeated")
"""These send one frame; a complete chunk one or one for each child, a new final sum the latter."""


@dataclass(frozen=True)
class Balance:
    """Frames of one switch. came: from its links; counted: by its program; owed: what the program
    should have sent by its own counters; went: what was sent."""

    came: int
    counted: int
    owed: int
    went: int


@dataclass(frozen=True)
class Lost:
    """Frames. before: the program saw them; after: it had sent them."""

    before: int
    after: int


def lost_inside(measured: Measurements, trees: Mapping[int, Tree]) -> dict[str, Lost]:
    """By switch. Nobody can tell (so nothing is here) where the program counts other things, or a
    session was broken off, whose switch may have been stopped with its counters."""
    results = measured.outcome.jobs
    if any(result.restarts or result.failure for result in results):
        return {}
    return {
        switch: Lost(max(0, found.came - found.counted), max(0, found.owed - found.went))
        for switch, found in balances(measured, trees).items()
    }


def balances(measured: Measurements, trees: Mapping[int, Tree]) -> dict[str, Balance]:
    """By switch, of those whose program counts what ours does."""
    results = measured.outcome.jobs
    placed = {i: trees[result.tenant.number] for i, result in enumerate(results)}
    return {
        switch: _balance(measured, switch, counters, placed)
        for switch, counters in measured.counters.items()
        if all(kind in counters for kind in (*ARRIVALS, *ONE_FRAME, "complete"))
    }


def _balance(
    measured: Measurements,
    switch: str,
    counters: Mapping[str, Cells],
    trees: Mapping[int, Tree],
) -> Balance:
    ways = measured.statistics.directions
    came = sum(_arrived(w) for w in ways if w.direction.endswith(f"->{switch}"))
    went = sum(
        w.packets + w.dropped_by_queue for w in ways if w.direction.startswith(f"{switch}->")
    )
    counted = sum(packets for kind in ARRIVALS for packets, _ in counters[kind].values())
    owed = sum(_owed(counters, index, tree, switch) for index, tree in trees.items())
    return Balance(came, counted, owed, went)


def _arrived(way: DirectionStatistics) -> int:
    """Frames that the program must have counted. Not those with a bit changed, which may be for
    somebody else now: what is then counted too many hides as many losses."""
    injected = way.dropped_injected + way.lost_link_down + way.corrupted
    return way.seen - injected + way.duplicated - way.held


def _owed(counters: Mapping[str, Cells], index: int, tree: Tree, switch: str) -> int:
    """Frames that one job's counts say were sent."""
    branch = tree.branches.get(switch)
    if branch is None:
        return 0

    def count(kind: str) -> int:
        return counters[kind].get(index, (0, 0))[0]

    children = len(branch.children)
    to_all = count("complete") if branch.parent is None else count("final_new")
    up = 0 if branch.parent is None else count("complete")
    return to_all * children + up + sum(count(kind) for kind in ONE_FRAME)

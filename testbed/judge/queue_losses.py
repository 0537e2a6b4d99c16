"""Computes how many frames each switch lost: from the frames that arrived, those that its program
counted, and those that left.

Each frame that reaches a program is counted by one of the program's counters, and from these counts
follows how many frames the program sends (SwitchWork). If the numbers differ, the switch lost
frames, or its program does not do what its counters say. BMv2 does not report packets for which its
receive rings or egress queues had no room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agglab.testbed.base.traffic_counters import DirectionStatistics
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import Cells, SwitchWork


@dataclass(frozen=True)
class Balance:
    """The frames of one switch. came: frames from its links. counted: frames that its program
    counted. expected: frames that the program should have sent by its own counters. went: frames
    that were sent."""

    came: int
    counted: int
    expected: int
    went: int


@dataclass(frozen=True)
class LostFrames:
    """The frames that were lost in a switch. before: before the program received them. after: after
    the program had sent them."""

    before: int
    after: int


def lost_inside(resolved: ResolvedScenario, measured: Measurements) -> dict[str, LostFrames]:
    """Returns the losses of each switch. A switch is left out if its losses cannot be known. This
    is the case if its program counts other things than the system's program does, or if a session
    was aborted, because the switch may have been stopped together with its counters."""
    results = measured.outcome.jobs
    if any(result.restarts or result.failure for result in results):
        return {}
    return {
        switch: LostFrames(max(0, found.came - found.counted), max(0, found.expected - found.went))
        for switch, found in balances(resolved, measured).items()
    }


def balances(resolved: ResolvedScenario, measured: Measurements) -> dict[str, Balance]:
    """Returns the balance of each switch whose program counts everything that the system's own
    program counts."""
    system, work = resolved.system, resolved.system.switch_work(resolved)
    if not work.arrivals:
        return {}
    came: Counter[str] = Counter()
    went: Counter[str] = Counter()
    for way in measured.statistics.directions:
        sender, receiver = way.direction.split("->")
        came[receiver] += _arrived(way)
        went[sender] += way.packets + way.dropped_by_queue
    return {
        switch: _balance(resolved, work, switch, counters, came[switch], went[switch])
        for switch, counters in measured.counters.items()
        if counters.keys() >= system.counters.keys() - system.optional_counters
    }


def _balance(
    resolved: ResolvedScenario,
    work: SwitchWork,
    switch: str,
    counters: Mapping[str, Cells],
    came: int,
    went: int,
) -> Balance:
    counted = _packets(counters, work.arrivals) - _packets(counters, work.passes_within)
    jobs = (resolved.whole(job) for job in resolved.jobs)
    expected = sum(work.expected_frames(job, switch, counters) for job in jobs)
    return Balance(came, counted, expected, went)


def _packets(counters: Mapping[str, Cells], kinds: Iterable[str]) -> int:
    """Returns the sum of the packets in these counters."""
    return sum(packets for kind in kinds for packets, _ in counters.get(kind, {}).values())


def _arrived(way: DirectionStatistics) -> int:
    """Returns the number of frames that the program must have counted. Corrupted frames are left
    out, because they may have another destination now. If the program counts some of them, the same
    number of losses goes unnoticed."""
    injected = way.dropped_injected + way.lost_link_down + way.corrupted
    return way.seen - injected + way.duplicated - way.held

"""Follows frames through a switch: what arrived, what its program counted, what left.

Each frame that reaches a program is counted by one of its counters (System.arrivals), and from
these follows what it sends (System.expected_frames). If the numbers differ, either the switch lost
frames (BMv2 does not report packets for which its receive rings or egress queues had no room), or
its program does not do what it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agglab.testbed.measurements import Measurements
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.statistics import DirectionStatistics
from agglab.testbed.systems.base import Cells


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
class Lost:
    """Frames lost in a switch. before: before the program received them; after: after it had sent
    them."""

    before: int
    after: int


def lost_inside(resolved: ResolvedScenario, measured: Measurements) -> dict[str, Lost]:
    """Returns the losses by switch. A switch is missing if they cannot be known, because its
    program counts other things or a session was aborted, for which the switch may have been stopped
    together with its counters."""
    results = measured.outcome.jobs
    if any(result.restarts or result.failure for result in results):
        return {}
    return {
        switch: Lost(max(0, found.came - found.counted), max(0, found.expected - found.went))
        for switch, found in balances(resolved, measured).items()
    }


def balances(resolved: ResolvedScenario, measured: Measurements) -> dict[str, Balance]:
    """Returns by switch the balance of those whose program counts everything that the system's own
    program does."""
    system = resolved.system
    if not system.arrivals():
        return {}
    return {
        switch: _balance(resolved, measured, switch)
        for switch, counters in measured.counters.items()
        if all(kind in counters for kind in system.counters)
    }


def _balance(resolved: ResolvedScenario, measured: Measurements, switch: str) -> Balance:
    system, counters = resolved.system, measured.counters[switch]
    ways = measured.statistics.directions
    came = sum(_arrived(w) for w in ways if w.direction.endswith(f"->{switch}"))
    went = sum(
        w.packets + w.dropped_by_queue for w in ways if w.direction.startswith(f"{switch}->")
    )
    counted = _packets(counters, system.arrivals()) - _packets(counters, system.passes_within())
    jobs = (resolved.whole(job) for job in resolved.jobs)
    expected = sum(system.expected_frames(resolved, job, switch, counters) for job in jobs)
    return Balance(came, counted, expected, went)


def _packets(counters: Mapping[str, Cells], kinds: Iterable[str]) -> int:
    """Returns the sum of these counters."""
    return sum(packets for kind in kinds for packets, _ in counters[kind].values())


def _arrived(way: DirectionStatistics) -> int:
    """Returns the frames that the program must have counted, without corrupted ones, which may have
    another destination now. If more are counted, as many losses go unnoticed."""
    injected = way.dropped_injected + way.lost_link_down + way.corrupted
    return way.seen - injected + way.duplicated - way.held

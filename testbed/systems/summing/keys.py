"""Checks and resolves those keys of a scenario that depend on each other: lanes, slots, windows and
their limits."""

from __future__ import annotations

from collections.abc import Iterator

from agglab.hosts.driver import default_window
from agglab.testbed.schema.jobs import Finding, stated
from agglab.testbed.schema.network_sections import SLOTS_MAX
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems import common
from agglab.testbed.systems.base import Choices, JobChoices
from agglab.testbed.systems.summing.partition import (
    ranges,
    slot_problems,
    windows_too_large,
)
from agglab.testbed.systems.summing.sizes import Sizes

# Of the 64 packets that wait at an egress port of BMv2's before it drops the next; the rest is for
# what is sent again. Measured, quickstart: none lost up to 64, one in 74 with 113 in flight.
BMV2_IN_FLIGHT = 48


def check(scenario: Scenario, trust: Trust, sizes: Sizes) -> Iterator[Finding]:
    """Yields the problems of these keys (see System.check)."""
    yield from common.check_lanes(scenario, trust, sizes.header_bytes)
    if trust("workload.window", "switch.slots"):
        yield from _window(scenario)
    if trust("jobs", "switch.partition"):
        yield from _slots_of_jobs(scenario, trust)


def _slots_of_jobs(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    total_known = trust("switch.slots")
    sure = [i for i in range(len(scenario.jobs)) if _slots_known(i, trust)]
    yield from slot_problems(scenario, sure if scenario.jobs else [0], total_known)
    if total_known and len(sure) == len(scenario.jobs):
        yield from windows_too_large(scenario)


def _window(scenario: Scenario) -> Iterator[Finding]:
    window = scenario.workload.window
    if window is not None and window > scenario.switch.slots:
        what = f"a window of {window} chunks is larger than the number of the switch's slots"
        yield "workload.window", what, f"at most switch.slots, {scenario.switch.slots}"


def _slots_known(i: int, trust: Trust) -> bool:
    return trust(*(f"jobs[{i}].{name}" for name in ("slots", "first_slot", "share")))


def resolve(scenario: Scenario, slowest_bps: int, delays_s: float, sizes: Sizes) -> Choices:
    """Returns the values of these keys (see System.resolve)."""
    lanes = common.lanes_of(scenario, sizes.header_bytes)
    most = _window_at_most(scenario)

    def auto(slots: int) -> int:
        return min(most, default_window(sizes.full(lanes), slots, slowest_bps, delays_s))

    window = scenario.workload.window or auto(scenario.switch.slots)
    jobs = [
        JobChoices(min(job.workload.window or auto(slots), slots), first, slots)
        for job, (first, slots) in zip(stated(scenario), ranges(scenario), strict=True)
    ]
    return Choices(jobs, lanes, window)


def _window_at_most(scenario: Scenario) -> int:
    """Returns the largest number of chunks of one job that may be in flight without overflowing the
    target's queues, whatever other jobs run. Each chunk puts at most two packets into a port's
    queue: one and its retransmission."""
    if scenario.switch.target != "bmv2":
        return SLOTS_MAX
    return max(1, BMV2_IN_FLIGHT // max(1, len(scenario.jobs)))

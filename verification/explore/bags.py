"""Walks for systems without models of their own: the system's switches and agents, and a bag of the
frames between them. A step delivers any frame, in any order, loses or copies it, delivers a frame
again that was delivered long ago, begins a new session, or lets time pass. What agents receive is
judged as in a run (bag_world.py).

A network delivers frames roughly in order, and a fault delays them by a second at most. In a bag, a
frame may stay for rounds. Tags, sessions and clocks begin close to where their numbers wrap around,
and several jobs share the switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agglab.hosts.workloads import PushPull
from agglab.testbed.scenario import Scenario, resolve
from agglab.testbed.schema.network_sections import Links
from agglab.testbed.schema.network_sections import Topology as Shape
from agglab.testbed.schema.scenario import JobSection
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.virtual import CompiledProgram
from agglab.verification.explore.bag_world import BagWorld
from agglab.verification.explore.schedules import own_options, schedule

RATE_BPS = 100_000_000
NEVER_S = 1e6
ROUNDS = 4
FIRST_NUMBERS = (1, 2, 2**20 - 2, 2**31 - 70, 2**31 - 9, 2**31 - 2)
BEGINNINGS_US = (0, 2**31 - 1000, 2**32 - 1000, 2**32 - 1000)
"""Switches count microseconds. A part of the clock may wrap around during a walk."""

KINDS: Mapping[str, float] = {
    "deliver": 4,
    "deliver many": 6,
    "deliver last": 3,
    "deliver any": 3,
    "lose": 1,
    "copy": 2,
    "repeat": 2,
    "repeat old": 3,
    "repeat all": 0.3,
    "wait": 2,
    "renew": 0.3,
}


@dataclass(frozen=True)
class Setting:
    """The setting of one walk. seed: that of the schedule whose options and workload it takes; if
    it is odd, each further job has the workload of the next schedule. racks: 1 for a single rack.
    first: the number with which the first session begins. begins_us: the time at which the walk
    begins, on all clocks."""

    seed: int
    workers: int
    racks: int
    jobs: int
    first: int
    begins_us: int


@dataclass(frozen=True)
class Bags:
    """A walk.System: worlds of one system whose switches run one program."""

    system: str
    compiled: CompiledProgram

    def setting(self, chance: Random) -> Setting:
        racks = chance.choice((1, 1, 2))
        return Setting(
            seed=chance.getrandbits(32),
            workers=chance.randint(1, 2) if racks > 1 else chance.randint(2, 4),
            racks=racks,
            jobs=chance.choice((1, 2, 3)),
            first=chance.choice(FIRST_NUMBERS),
            begins_us=chance.choice(BEGINNINGS_US),
        )

    def kinds(self, setting: Setting) -> Mapping[str, float]:
        return KINDS

    def world(self, setting: Setting) -> BagWorld:
        resolved = resolve(_scenario(setting, self.system))
        return BagWorld(resolved, setting.first, setting.begins_us, self.compiled)

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        if setting.jobs > 1:
            yield replace(setting, jobs=setting.jobs - 1)
        if setting.racks > 1:
            yield replace(setting, racks=1, workers=2)
        if setting.racks == 1 and setting.workers > 2:
            yield replace(setting, workers=setting.workers - 1)
        if setting.first != 1:
            yield replace(setting, first=1)
        if setting.begins_us:
            yield replace(setting, begins_us=0)

    def from_values(self, values: Mapping[str, Any]) -> Setting:
        return Setting(**values)


def _scenario(setting: Setting, system: str) -> Scenario:
    """Returns the scenario of the schedule's seed without faults."""
    step, rounds = setting.seed % 2, ROUNDS // setting.jobs
    jobs = [_workload(setting.seed + step * job, system, rounds) for job in range(setting.jobs)]
    kind = "rack" if setting.racks == 1 else "two_tier"
    racks = setting.racks if setting.racks > 1 else None
    return replace(
        schedule(setting.seed, system),
        topology=Shape(kind, setting.workers, racks=racks),
        links=Links(rate_bps=RATE_BPS),
        options=own_options(setting.seed, system, setting.jobs),
        jobs=tuple(
            JobSection(name=f"job{number}", workload=workload)
            for number, workload in enumerate(jobs, 1)
        ),
        faults=(),
    )


def _workload(seed: int, system: str, rounds: int) -> Workload:
    """Returns the workload of a seed's schedule with the rounds of a walk, which do not end by
    themselves. There is one more round than the walk disturbs. Of keys there are so many that
    servers have several packets of them."""
    drawn = schedule(seed, system)
    workload = drawn.jobs[0].workload if drawn.jobs else drawn.workload
    many = 4 if workload.kind == PushPull.kind else 1
    return replace(
        workload,
        elements=many * workload.elements,
        rounds=rounds + 1,
        give_up_s=NEVER_S,
        on_failure="fail",
    )

"""The settings of a search of switchml: topology, jobs and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from agglab.topologies import Topology, leaf_spine, rack, ring_of_racks, two_tier
from agglab.verification.explore.schedules import LANES, SLOTS

ELEMENTS_MAX = 14 * LANES
SESSION = 1 << 20
ODD = ("",) * 8 + ("elements", "dtype", "window")
GIVE_UP_NEVER_MS = 10**9
FIRST_TAGS = (1, 1, 0, 2, SESSION + 1, 2**31 - 2, 2**31, 2**32 - SESSION + 1, 2**32 - 3, 2**32 - 1)


@dataclass(frozen=True)
class JobSetting:
    """One job of a setting.

    rounds: (elements, floats) of each round. past: how far the tags that earlier jobs left in the
    slots' cells are behind this job's first tag; 0 for an empty switch. give_up_ms: when its
    workers give up. odd: in what the last worker differs from the others until a new session
    begins: in its window, or in what it reduces in its last round. It is empty if the worker does
    not differ.
    """

    number: int
    first_slot: int
    slots: int
    window: int
    first_tag: int
    past: int
    give_up_ms: int
    odd: str
    rounds: tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Setting:
    """The setting of one search. kind, racks, workers: those of the topology. seed: the seed of the
    inputs. lawless: whether there are no honest workers, and members send any packets."""

    kind: str
    racks: int
    workers: int
    seed: int
    lawless: bool
    jobs: tuple[JobSetting, ...]

    def topology(self) -> Topology:
        """Returns the graph."""
        if self.kind == "rack":
            return rack(self.workers)
        if self.kind == "two_tier":
            return two_tier(self.racks, self.workers)
        if self.kind == "leaf_spine":
            return leaf_spine(self.racks, 2, self.workers)
        return ring_of_racks(self.racks, self.workers)


def draw(chance: Random) -> Setting:
    """Returns a random setting."""
    kind = chance.choice(("rack", "rack", "two_tier", "leaf_spine", "ring_of_racks"))
    racks = {"rack": 1, "ring_of_racks": chance.randint(3, 5)}.get(kind, chance.randint(1, 3))
    most = {"rack": 4, "ring_of_racks": 1}.get(kind, 2)
    workers = chance.randint(1, most)
    lawless = chance.random() < 0.35
    jobs = [_job(chance, lawless, number) for number in _numbers(chance)]
    if len(jobs) > 1:
        slots = [min(job.slots, 3) for job in jobs]
        jobs = [
            replace(job, first_slot=place, slots=size, window=min(job.window, size))
            for job, place, size in zip(jobs, (0, chance.randint(slots[0], 5)), slots, strict=True)
        ]
    return Setting(kind, racks, workers, chance.getrandbits(32), lawless, tuple(jobs))


def _numbers(chance: Random) -> list[int]:
    count = chance.choice((1, 1, 2))
    return sorted(chance.sample((0, 1, 2, 3, 257, 16670), count))


def _job(chance: Random, lawless: bool, number: int) -> JobSetting:
    slots = chance.randint(1, 5)
    first_slot = chance.randint(0, SLOTS - (1 if lawless and chance.random() < 0.3 else slots))
    window = chance.randint(1, slots)
    rounds = tuple(
        (_elements(chance, window), chance.random() < 0.6) for _ in range(chance.randint(1, 3))
    )
    first_tag = chance.choice(FIRST_TAGS)
    past = 0
    if chance.random() < 0.3:
        past = chance.choice((1, 2, 3, SESSION, 2**31 - 4))
    give_up_ms = chance.choice((GIVE_UP_NEVER_MS, GIVE_UP_NEVER_MS, 500, 3000))
    odd = chance.choice(ODD)
    return JobSetting(number, first_slot, slots, window, first_tag, past, give_up_ms, odd, rounds)


def _elements(chance: Random, window: int) -> int:
    """Returns a random number of elements, which is often close to a whole number of windows."""
    if chance.random() < 0.3:
        near = chance.randint(1, 3) * window * LANES + chance.choice((-1, 0, 1))
        return max(1, min(near, ELEMENTS_MAX))
    return chance.choice((0, *[chance.randint(1, ELEMENTS_MAX)] * 30))


def simpler(setting: Setting) -> Iterator[Setting]:
    """Yields settings that are slightly smaller."""
    if len(setting.jobs) > 1:
        for job in setting.jobs:
            yield replace(setting, jobs=(job,))
    if setting.kind != "rack":
        yield replace(setting, kind="rack", racks=1, workers=2)
    for fewer in range(1, setting.workers):
        yield replace(setting, workers=fewer)
    for n, job in enumerate(setting.jobs):
        for each in _simpler_jobs(job):
            yield replace(setting, jobs=(*setting.jobs[:n], each, *setting.jobs[n + 1 :]))


def _simpler_jobs(job: JobSetting) -> Iterator[JobSetting]:
    if len(job.rounds) > 1:
        yield replace(job, rounds=job.rounds[:1])
        yield replace(job, rounds=job.rounds[1:])
    for n, (elements, floats) in enumerate(job.rounds):
        others = job.rounds[:n], job.rounds[n + 1 :]
        if floats:
            yield replace(job, rounds=(*others[0], (elements, False), *others[1]))
        if elements > LANES:
            fewer = elements - LANES
            yield replace(job, rounds=(*others[0], (fewer, floats), *others[1]))
    if job.window > 1:
        yield replace(job, window=job.window - 1)
    if job.odd:
        yield replace(job, odd="")
    if job.past:
        yield replace(job, past=0)
    if job.first_tag != 1:
        yield replace(job, first_tag=1)


def from_values(values: Mapping[str, Any]) -> Setting:
    """Returns the setting with the values of a file. Raises ValueError."""
    jobs = []
    for job in values["jobs"]:
        rounds = tuple((int(count), bool(floats)) for count, floats in job["rounds"])
        jobs.append(JobSetting(**{**job, "rounds": rounds}))
    known = {field.name for field in fields(Setting)}
    if set(values) != known:
        raise ValueError(f"no setting: {sorted(set(values) ^ known)}")
    setting = Setting(**{**values, "jobs": tuple(jobs)})
    setting.topology()
    return setting

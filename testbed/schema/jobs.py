"""Defines Job, one job of a scenario. A scenario without `jobs` has one job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agglab.hosts.workloads import Iterated, Work
from agglab.testbed.schema.scenario import JobSection, Scenario
from agglab.testbed.schema.workload_section import Workload

Finding = tuple[str, str, str]
"""A problem: the path of the key, what is wrong, and what is allowed."""


@dataclass(frozen=True)
class Job:
    """One job of a scenario.

    number: its number on the wire. hosts: the hosts of its workers, by rank. servers: hosts of its
    servers, if the system has any. share: its weight where something is divided among jobs. work:
    what each worker does in a round. rounds, warmup, worker, give_up_s, first_timeout_s,
    on_failure, restarts_max: the values in its `workload`.

    The system chooses `window`, `first_slot` and `slots` (see `resolved.resolve`). Before that, and
    for systems that do not use them, they are 0. So is delays_s, the part of the longest round trip
    between agents that the links' delays cause. window: packets that a worker keeps in flight.
    first_slot, slots: the switches' slots that the job may use.
    """

    name: str
    number: int
    hosts: tuple[str, ...]
    share: int
    start_s: float
    end_s: float | None
    work: Work
    rounds: int
    worker: str
    give_up_s: float
    first_timeout_s: float | None
    on_failure: str
    restarts_max: int
    window: int = 0
    first_slot: int = 0
    slots: int = 0
    servers: tuple[str, ...] = ()
    warmup: int = 0
    delays_s: float = 0.0

    @property
    def elements(self) -> int:
        """The largest number of values in a worker's input."""
        return self.work.elements

    @property
    def all_reduces(self) -> int:
        """The number of all-reduces in a round, one after the other, if the workload is Iterated; 1
        for other kinds."""
        return len(self.work.buckets) if isinstance(self.work, Iterated) else 1

    def by_all_reduce(self) -> list[Job]:
        """Returns one job for each of the buckets that a round sums one after the other, if the
        workload is Iterated (layers and training). Returns the job itself for other kinds."""
        if not isinstance(self.work, Iterated):
            return [self]
        return [replace(self, work=work) for work in self.work.all_reduces()]

    @property
    def dtype(self) -> str:
        """The type of the values in a worker's input."""
        return self.work.dtype


def stated(scenario: Scenario) -> Sequence[JobSection]:
    """Returns the jobs that the scenario declares. If it declares none, returns its only job."""
    return scenario.jobs or (JobSection(workload=scenario.workload),)


def stated_workloads(scenario: Scenario) -> Iterator[tuple[str, Workload]]:
    """Yields the workload of each job that `stated` returns, after the path of its key."""
    for number, job in enumerate(stated(scenario)):
        yield f"jobs[{number}].workload" if scenario.jobs else "workload", job.workload


def inherited(scenario: Scenario, given: Sequence[frozenset[str]]) -> Scenario:
    """Returns the scenario in which each job's workload takes the keys that the job does not state
    from the scenario's own `workload`. given: the fields that each job states."""
    own = scenario.workload
    jobs = []
    for job, names in zip(scenario.jobs, given, strict=True):
        own_keys = {name: getattr(job.workload, name) for name in names}
        jobs.append(replace(job, workload=replace(own, **own_keys)))
    return replace(scenario, jobs=tuple(jobs))

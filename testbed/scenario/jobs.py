"""A scenario's jobs as they run: hosts by rank, slots, workloads. One without `jobs` has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import ceil

from hosts import wire
from testbed.plan import MAX_JOBS
from testbed.plan import Job as PlannedJob
from testbed.scenario.schema import LANES_MAX, Job, Scenario, Workload
from topologies import Topology

FIRST_NUMBER = 1
ETHERNET_BYTES = 14
IP_OVERHEAD_BYTES = wire.frame_bytes(0) - ETHERNET_BYTES


@dataclass(frozen=True)
class Tenant:
    """One job. number: on the wire. hosts: by rank. first_slot, slots: of the static partition; in
    a dynamic one they are all slots, divided by `share` among the jobs that run."""

    name: str
    number: int
    hosts: tuple[str, ...]
    first_slot: int
    slots: int
    share: int
    start_s: float
    end_s: float | None
    workload: Workload

    def planned(self) -> PlannedJob:
        return PlannedJob(self.number, self.hosts, self.first_slot, self.slots)

    def placed(self, index: int) -> PlannedJob:
        """With one slot, its own whatever the partition: for its tree alone."""
        return PlannedJob(self.number, self.hosts, index, 1)


class Unplaced(ValueError):
    """A job's slots cannot be: the key that is wrong, what, and what is allowed."""

    def __init__(self, path: str, what: str, allowed: str) -> None:
        super().__init__(what)
        self.path, self.what, self.allowed = path, what, allowed


def tenants(scenario: Scenario, graph: Topology) -> tuple[Tenant, ...]:
    """In the scenario's order, numbered from 1. Raises Unplaced."""
    jobs = scenario.jobs or (Job(workload=scenario.workload),)
    if len(jobs) > MAX_JOBS:
        raise Unplaced("jobs", f"{len(jobs)} jobs are too many", f"at most {MAX_JOBS}")
    ranges = _ranges(scenario, jobs)
    return tuple(
        Tenant(
            name=job.name or f"job{FIRST_NUMBER + i}",
            number=FIRST_NUMBER + i,
            hosts=hosts_of(job, graph),
            first_slot=first,
            slots=slots,
            share=job.share,
            start_s=job.start_s,
            end_s=job.end_s,
            workload=job.workload,
        )
        for i, (job, (first, slots)) in enumerate(zip(jobs, ranges, strict=True))
    )


def hosts_of(job: Job, graph: Topology) -> tuple[str, ...]:
    """The hosts its patterns match, each once: in the patterns' order, then the topology's."""
    names = [host.name for host in graph.hosts]
    found = (name for p in job.workers for name in names if fnmatchcase(name, p))
    return tuple(dict.fromkeys(found))


def inherited(scenario: Scenario, given: Sequence[frozenset[str]]) -> Scenario:
    """Each job's workload completed from the scenario's own; `given`: the fields a job states."""
    own = scenario.workload
    jobs = []
    for job, names in zip(scenario.jobs, given, strict=True):
        stated = {name: getattr(job.workload, name) for name in names}
        jobs.append(replace(job, workload=replace(own, **stated)))
    return replace(scenario, jobs=tuple(jobs))


def divide(slots: int, shares: Sequence[int]) -> list[int]:
    """Whole slots in proportion to the shares, all of them, at least one each; the remainder goes
    to the first. Needs as many slots as shares."""
    assert len(shares) <= slots
    total = sum(shares)
    parts = [max(1, slots * share // total) for share in shares]
    while sum(parts) > slots:
        parts[parts.index(max(parts))] -= 1
    for i in range(slots - sum(parts)):
        parts[i % len(parts)] += 1
    return parts


def lanes_that_fit(mtu_bytes: int) -> int:
    """The most lanes that a packet of at most `mtu_bytes` (IP header counted) holds."""
    return min(LANES_MAX, (mtu_bytes - IP_OVERHEAD_BYTES) // wire.VALUE_BYTES)


def chunks_of(tenant: Tenant, lanes: int) -> int:
    return ceil(tenant.workload.elements / lanes)


def _ranges(scenario: Scenario, jobs: Sequence[Job]) -> list[tuple[int, int]]:
    total = scenario.switch.slots
    if len(jobs) > total:
        what = f"{len(jobs)} jobs need more slots than the switch has"
        raise Unplaced("jobs", what, f"at most switch.slots, {total}")
    if scenario.switch.partition == "dynamic":
        _refuse_places(jobs)
        return [(0, total)] * len(jobs)
    fixed = sum(job.slots or 0 for job in jobs)
    open_jobs = [i for i, job in enumerate(jobs) if job.slots is None]
    if fixed + len(open_jobs) > total:
        i = max(i for i, job in enumerate(jobs) if job.slots)
        what = f"the jobs' slots together, {fixed + len(open_jobs)}, are more than the switch has"
        raise Unplaced(f"jobs[{i}].slots", what, f"together at most switch.slots, {total}")
    parts = divide(total - fixed, [jobs[i].share for i in open_jobs]) if open_jobs else []
    left = dict(zip(open_jobs, parts, strict=True))
    counts = [job.slots or left[i] for i, job in enumerate(jobs)]
    return list(_placed(jobs, counts, total))


def _refuse_places(jobs: Sequence[Job]) -> None:
    for i, job in enumerate(jobs):
        for name in ("slots", "first_slot"):
            if getattr(job, name) is not None:
                what = "has no meaning where switch.partition is dynamic"
                raise Unplaced(f"jobs[{i}].{name}", what, "share")


def _placed(jobs: Sequence[Job], counts: Sequence[int], total: int) -> Iterator[tuple[int, int]]:
    """Jobs that say where they begin are there; the others take the first gap that is free."""
    taken: list[tuple[int, int, int]] = []
    places: dict[int, int] = {}
    for i in sorted(range(len(jobs)), key=lambda i: jobs[i].first_slot is None):
        first = jobs[i].first_slot
        if first is None:
            first = _first_gap(taken, counts[i])
            if first + counts[i] > total:
                what = f"there are not {counts[i]} free slots in a row left"
                raise Unplaced(f"jobs[{i}]", what, "other places for the jobs with 'first_slot'")
        _check_place(i, first, counts[i], taken, total)
        taken.append((first, first + counts[i], i))
        places[i] = first
    for i, count in enumerate(counts):
        yield places[i], count


def _first_gap(taken: Sequence[tuple[int, int, int]], count: int) -> int:
    first = 0
    for start, end, _ in sorted(taken):
        if first + count <= start:
            break
        first = max(first, end)
    return first


def _check_place(
    i: int, first: int, count: int, taken: Sequence[tuple[int, int, int]], total: int
) -> None:
    path = f"jobs[{i}].first_slot"
    if first + count > total:
        what = f"slots {first} to {first + count - 1} are beyond the switch's"
        raise Unplaced(path, what, f"slots 0 to {total - 1}")
    for start, end, other in taken:
        if first < end and start < first + count:
            what = f"slots {first} to {first + count - 1} overlap those of jobs[{other}]"
            raise Unplaced(path, what, f"slots that are not {start} to {end - 1}")

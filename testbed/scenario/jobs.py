"""A scenario's jobs as they run: hosts by rank, slots, workloads. One without `jobs` has one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import ceil

from agglab.hosts import wire
from agglab.testbed.plan import Job as PlannedJob
from agglab.testbed.scenario.schema import LANES_MAX, Job, Scenario, Workload
from agglab.topologies import Topology

Finding = tuple[str, str, str]
"""Key path, what is wrong, what is allowed."""
Range = tuple[int, int]
"""First slot and number of slots."""
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


def tenants(scenario: Scenario, graph: Topology) -> tuple[Tenant, ...]:
    """Of a checked scenario: in its order, numbered from 1."""
    jobs = _stated(scenario)
    ranges, wrong = _ranges(scenario, jobs)
    assert not wrong, wrong
    return tuple(
        replace(tenant, first_slot=ranges[i][0], slots=ranges[i][1])
        for i, tenant in enumerate(drafted(scenario, graph))
    )


def drafted(scenario: Scenario, graph: Topology | None) -> tuple[Tenant, ...]:
    """Without slots, and without hosts if the graph is not known: for checks of the rest."""
    return tuple(
        Tenant(
            name=job.name or f"job{FIRST_NUMBER + i}",
            number=FIRST_NUMBER + i,
            hosts=hosts_of(job, graph) if graph else (),
            first_slot=0,
            slots=0,
            share=job.share,
            start_s=job.start_s,
            end_s=job.end_s,
            workload=job.workload,
        )
        for i, job in enumerate(_stated(scenario))
    )


def slot_problems(scenario: Scenario, sure: Collection[int]) -> Iterator[Finding]:
    """Why the slots cannot be divided so. sure: the jobs whose `slots`, `first_slot` and `share`
    are known; without the others only what these jobs state can be judged."""
    jobs = _stated(scenario)
    if len(sure) == len(jobs):
        yield from _ranges(scenario, jobs)[1]
    elif scenario.switch.partition == "dynamic":
        yield from _refused_places(jobs)
    else:
        total = scenario.switch.slots
        fixed = {i: jobs[i].slots or 0 for i in sure if jobs[i].first_slot is not None}
        counts = {i: slots for i, slots in fixed.items() if slots}
        yield from _placed(jobs, counts, total)[1]


def windows_too_large(scenario: Scenario) -> Iterator[Finding]:
    """Of jobs whose slots can be divided."""
    ranges, wrong = _ranges(scenario, scenario.jobs)
    for i, job in enumerate(scenario.jobs if not wrong else ()):
        window, slots = job.workload.window or 0, ranges[i][1]
        if window > slots and window != scenario.workload.window:
            what = f"a window of {window} chunks is more than the job has slots"
            yield f"jobs[{i}].workload.window", what, f"at most {slots}"


def _stated(scenario: Scenario) -> Sequence[Job]:
    return scenario.jobs or (Job(workload=scenario.workload),)


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


def _ranges(scenario: Scenario, jobs: Sequence[Job]) -> tuple[dict[int, Range], list[Finding]]:
    """Each job's first slot and their number; or, of a division that cannot be, what is wrong."""
    total = scenario.switch.slots
    if len(jobs) > total:
        what = f"{len(jobs)} jobs need more slots than the switch has"
        return {}, [("jobs", what, f"at most switch.slots, {total}")]
    if scenario.switch.partition == "dynamic":
        return dict.fromkeys(range(len(jobs)), (0, total)), list(_refused_places(jobs))
    fixed = sum(job.slots or 0 for job in jobs)
    open_jobs = [i for i, job in enumerate(jobs) if job.slots is None]
    if fixed + len(open_jobs) > total:
        i = max(i for i, job in enumerate(jobs) if job.slots)
        what = f"the jobs' slots together, {fixed + len(open_jobs)}, are more than the switch has"
        return {}, [(f"jobs[{i}].slots", what, f"together at most switch.slots, {total}")]
    parts = divide(total - fixed, [jobs[i].share for i in open_jobs]) if open_jobs else []
    left = dict(zip(open_jobs, parts, strict=True))
    counts = {i: job.slots or left[i] for i, job in enumerate(jobs)}
    return _placed(jobs, counts, total)


def _refused_places(jobs: Sequence[Job]) -> Iterator[Finding]:
    for i, job in enumerate(jobs):
        for name in ("slots", "first_slot"):
            if getattr(job, name) is not None:
                what = "has no meaning where switch.partition is dynamic"
                yield f"jobs[{i}].{name}", what, "share"


def _placed(
    jobs: Sequence[Job], counts: Mapping[int, int], total: int
) -> tuple[dict[int, Range], list[Finding]]:
    """Jobs that say where they begin are there; the others take the first gap that is free."""
    taken: list[tuple[int, int, int]] = []
    places: dict[int, Range] = {}
    wrong: list[Finding] = []
    for i in sorted(counts, key=lambda i: (jobs[i].first_slot is None, i)):
        first, count = jobs[i].first_slot, counts[i]
        if first is None:
            if wrong:
                break  # which gaps there are is not known
            first = _first_gap(taken, count)
            found = [_no_gap(i, count)] if first + count > total else []
        else:
            found = list(_place_problems(i, first, count, taken, total))
        if not found:
            taken.append((first, first + count, i))
        wrong += found
        places[i] = (first, count)
    return places, wrong


def _no_gap(i: int, count: int) -> Finding:
    what = f"there are not {count} free slots in a row left"
    return f"jobs[{i}]", what, "other places for the jobs with 'first_slot'"


def _first_gap(taken: Sequence[tuple[int, int, int]], count: int) -> int:
    first = 0
    for start, end, _ in sorted(taken):
        if first + count <= start:
            break
        first = max(first, end)
    return first


def _place_problems(
    i: int, first: int, count: int, taken: Sequence[tuple[int, int, int]], total: int
) -> Iterator[Finding]:
    path = f"jobs[{i}].first_slot"
    if first + count > total:
        what = f"slots {first} to {first + count - 1} are beyond the switch's"
        yield path, what, f"slots 0 to {total - 1}"
        return
    for start, end, other in taken:
        if first < end and start < first + count:
            what = f"slots {first} to {first + count - 1} overlap those of jobs[{other}]"
            yield path, what, f"slots that are not {start} to {end - 1}"
            return

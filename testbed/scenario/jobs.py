"""A scenario's jobs as they run: hosts by rank, workloads. One without `jobs` has one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from agglab.testbed.scenario.schema import Job, Scenario, Workload
from agglab.testbed.systems.base import System
from agglab.topologies import Host, Topology

Finding = tuple[str, str, str]
"""Key path, what is wrong, what is allowed."""
FIRST_NUMBER = 1


@dataclass(frozen=True)
class Tenant:
    """One job. number: on the wire. hosts: by rank. share: its weight where something is divided
    among jobs. window: packets that a worker keeps in flight. first_slot, slots: which of the
    switches' slots it may have. These three are the system's choice (`resolved.resolve`), and 0
    where it has no such number."""

    name: str
    number: int
    hosts: tuple[str, ...]
    share: int
    start_s: float
    end_s: float | None
    workload: Workload
    window: int = 0
    first_slot: int = 0
    slots: int = 0


def tenants(scenario: Scenario, graph: Topology | None, system: System) -> tuple[Tenant, ...]:
    """In the scenario's order, numbered from 1; without hosts if the graph is not known."""
    reserved = system.reserved_hosts(scenario, graph) if graph else ()
    return tuple(
        Tenant(
            name=job.name or f"job{FIRST_NUMBER + i}",
            number=FIRST_NUMBER + i,
            hosts=hosts_of(job, graph, reserved) if graph else (),
            share=job.share,
            start_s=job.start_s,
            end_s=job.end_s,
            workload=job.workload,
        )
        for i, job in enumerate(stated(scenario))
    )


def stated(scenario: Scenario) -> Sequence[Job]:
    """The jobs it declares, or the one it is."""
    return scenario.jobs or (Job(workload=scenario.workload),)


def hosts_of(job: Job, graph: Topology, reserved: Collection[str] = ()) -> tuple[str, ...]:
    """The hosts its patterns match, each once: in the patterns' order, then the topology's. A host
    for servers has to be named."""
    hosts = [host for host in graph.hosts if host.name not in reserved]
    found = (host.name for p in job.workers for host in hosts if _is_meant(host, p))
    return tuple(dict.fromkeys(found))


def _is_meant(host: Host, pattern: str) -> bool:
    return host.name == pattern if host.for_servers else fnmatchcase(host.name, pattern)


def inherited(scenario: Scenario, given: Sequence[frozenset[str]]) -> Scenario:
    """Each job's workload completed from the scenario's own; `given`: the fields a job states."""
    own = scenario.workload
    jobs = []
    for job, names in zip(scenario.jobs, given, strict=True):
        own_keys = {name: getattr(job.workload, name) for name in names}
        jobs.append(replace(job, workload=replace(own, **own_keys)))
    return replace(scenario, jobs=tuple(jobs))

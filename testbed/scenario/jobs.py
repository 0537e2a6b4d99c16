"""A scenario's jobs as they run: hosts by rank, workloads. One without `jobs` has one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from agglab.hosts.workloads import Iterated, Work
from agglab.testbed import workloads
from agglab.testbed.scenario.schema import JobSection, Scenario
from agglab.testbed.systems.base import System
from agglab.topologies import Host, Topology

Finding = tuple[str, str, str]
"""Key path, what is wrong, what is allowed."""
FIRST_NUMBER = 1


@dataclass(frozen=True)
class Job:
    """One job, from its section to its result.

    number: on the wire. hosts: of its workers, by rank. servers: hosts of its servers, where the
    system has any. share: its weight where something is divided among jobs. work: what each
    worker does in a round. rounds, worker, give_up_s, on_failure, restarts_max: of its `workload`.
    window: packets that a worker keeps in flight. first_slot, slots: which of the switches' slots
    it may have. These three are the system's choice (`resolved.resolve`): 0 until that is made, and
    where the system has no such number.
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
    on_failure: str
    restarts_max: int
    window: int = 0
    first_slot: int = 0
    slots: int = 0
    servers: tuple[str, ...] = ()
    warmup: int = 0

    @property
    def elements(self) -> int:
        """Values of a worker's input, at most."""
        return self.work.elements

    @property
    def all_reduces(self) -> int:
        """How many a round has, one after the other (Iterated); 1 of other kinds."""
        return len(self.work.buckets) if isinstance(self.work, Iterated) else 1

    @property
    def dtype(self) -> str:
        """Of these values."""
        return self.work.dtype


def jobs_of(scenario: Scenario, graph: Topology | None, system: System) -> tuple[Job, ...]:
    """In the scenario's order, numbered from 1; without hosts if the graph is not known."""
    found = []
    for number, section in enumerate(stated(scenario), FIRST_NUMBER):
        hosts: tuple[str, ...] = ()
        servers: tuple[str, ...] = ()
        if graph:
            hosts = hosts_of(section, graph, system.reserved_hosts(scenario, graph))
            servers = tuple(system.server_hosts(scenario, graph, hosts))
        found.append(_job(section, number, hosts, servers))
    return tuple(found)


def _job(section: JobSection, number: int, hosts: tuple[str, ...], servers: tuple[str, ...]) -> Job:
    workload = section.workload
    return Job(
        name=section.name or f"job{number}",
        number=number,
        hosts=hosts,
        share=section.share,
        start_s=section.start_s,
        end_s=section.end_s,
        work=workloads.KINDS[workload.kind].work(workload, len(hosts)),
        rounds=workload.rounds,
        worker=workload.worker,
        give_up_s=workload.give_up_s,
        on_failure=workload.on_failure,
        restarts_max=workload.restarts_max,
        servers=servers,
        warmup=workload.warmup,
    )


def stated(scenario: Scenario) -> Sequence[JobSection]:
    """The jobs it declares, or the one it is."""
    return scenario.jobs or (JobSection(workload=scenario.workload),)


def hosts_of(
    section: JobSection, graph: Topology, reserved: Collection[str] = ()
) -> tuple[str, ...]:
    """The hosts its patterns match, each once: in the patterns' order, then the topology's. A host
    for servers has to be named."""
    hosts = [host for host in graph.hosts if host.name not in reserved]
    found = (host.name for p in section.workers for host in hosts if _is_meant(host, p))
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

"""Lists the jobs of a scenario, with their hosts by rank and what each worker does in a round."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from agglab.testbed.scenario import workloads
from agglab.testbed.schema.jobs import Job, stated
from agglab.testbed.schema.scenario import JobSection, Scenario
from agglab.testbed.systems.base import System
from agglab.topologies import Host, Topology

FIRST_NUMBER = 1


def jobs_of(scenario: Scenario, graph: Topology | None, system: System) -> tuple[Job, ...]:
    """Returns the jobs in the scenario's order, numbered from 1. They have no hosts if the graph is
    not known."""
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
        first_timeout_s=workload.first_timeout_s,
        on_failure=workload.on_failure,
        restarts_max=workload.restarts_max,
        servers=servers,
        warmup=workload.warmup,
    )


def hosts_of(
    section: JobSection, graph: Topology, reserved: Collection[str] = ()
) -> tuple[str, ...]:
    """Returns the hosts that the section's patterns match, each once, in the order of the patterns
    and then of the topology. Hosts in `reserved` are left out. A host that the topology made for
    servers matches only its full name."""
    hosts = [host for host in graph.hosts if host.name not in reserved]
    found = (host.name for p in section.workers for host in hosts if _is_meant(host, p))
    return tuple(dict.fromkeys(found))


def _is_meant(host: Host, pattern: str) -> bool:
    return host.name == pattern if host.for_servers else fnmatchcase(host.name, pattern)

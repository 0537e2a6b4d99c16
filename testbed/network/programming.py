"""What a switch running p4/switchml.p4 is filled with for its hosts and jobs, as plain values."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from topologies import Host, Topology

# Constants of p4/switchml.p4 and p4/include/forwarding.p4.
FLOOD_GROUP = 1
FIRST_JOB_GROUP = 2
MAX_JOBS = 16
# p4/switchml.p4: this switch is the job's root.
NO_PARENT = 511
# docs/protocol.md: a worker listens on 48865 + job.
FIRST_WORKER_UDP_PORT = 48865
MAX_UDP_PORT = 65535


@dataclass(frozen=True)
class Job:
    """One tenant as the switch sees it.

    number: on the wire; hosts: names in order of rank; first_slot, slots: its own part of the pool.
    """

    number: int
    hosts: tuple[str, ...]
    first_slot: int
    slots: int


@dataclass(frozen=True)
class TableEntry:
    """table, action, match fields and parameters by P4Info name, or by a unique last part of it.

    match: field name -> value (exact) or (value, prefix length) (lpm). Values are unsigned.
    """

    table: str
    match: dict[str, int | tuple[int, int]]
    action: str
    parameters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entries:
    """What a switch is to be filled with. groups: multicast group id -> ports."""

    tables: tuple[TableEntry, ...]
    groups: dict[int, tuple[int, ...]]


def job_entries(topology: Topology, switch: str, jobs: Sequence[Job]) -> Entries:
    """Entries of p4/switchml.p4 on one switch: forwarding and flooding for its hosts, and the jobs.

    A job's index in `jobs` is its index in the program's counters. Raises ValueError naming the
    job for overlapping slots, an unknown host, a number whose UDP port does not exist, or too many
    jobs.
    """
    _check(topology, jobs)
    groups = {FLOOD_GROUP: tuple(topology.ports(switch))}
    tables = [entry for host in topology.hosts for entry in _host_entries(topology, switch, host)]
    for index, job in enumerate(jobs):
        group = FIRST_JOB_GROUP + index
        groups[group] = tuple(topology.port_towards(switch, host) for host in job.hosts)
        tables += _job_tables(topology, switch, job, index, group)
    return Entries(tuple(tables), groups)


def _check(topology: Topology, jobs: Sequence[Job]) -> None:
    if len(jobs) > MAX_JOBS:
        raise ValueError(f"{len(jobs)} jobs: the program holds at most {MAX_JOBS}")
    known = {host.name for host in topology.hosts}
    end, previous = 0, None
    for job in sorted(jobs, key=lambda job: job.first_slot):
        unknown = sorted(set(job.hosts) - known)
        if unknown:
            raise ValueError(f"job {job.number}: host {unknown[0]} does not exist")
        if len(set(job.hosts)) < len(job.hosts):
            raise ValueError(f"job {job.number}: a host appears twice")
        if FIRST_WORKER_UDP_PORT + job.number > MAX_UDP_PORT:
            limit = MAX_UDP_PORT - FIRST_WORKER_UDP_PORT
            raise ValueError(f"job {job.number}: the largest job number is {limit}")
        if previous is not None and job.first_slot < end:
            raise ValueError(f"job {job.number}: its slots overlap those of job {previous}")
        end, previous = job.first_slot + job.slots, job.number


def _host_entries(topology: Topology, switch: str, host: Host) -> Iterator[TableEntry]:
    port, mac = topology.port_towards(switch, host.name), mac_number(host.mac)
    yield TableEntry("macs", {"dst": mac}, "forward", {"port": port})
    route = {"next_hop": mac, "port": port}
    yield TableEntry("routes", {"dst": (ip_number(host.ip), 32)}, "route", route)


def _job_tables(
    topology: Topology, switch: str, job: Job, index: int, group: int
) -> Iterator[TableEntry]:
    for rank, name in enumerate(job.hosts):
        port, host = topology.port_towards(switch, name), topology.host(name)
        yield TableEntry(
            "members",
            {"ingress_port": port, "job": job.number},
            "contribute",
            {
                "job_index": index,
                "worker": 1 << rank,
                "all_workers": (1 << len(job.hosts)) - 1,
                "first_slot": job.first_slot,
                "slots": job.slots,
                "group": group,
                "parent": NO_PARENT,
            },
        )
        yield TableEntry(
            "results",
            {"egress_port": port, "job": job.number},
            "to_worker",
            {
                "mac": mac_number(host.mac),
                "address": ip_number(host.ip),
                "udp_port": FIRST_WORKER_UDP_PORT + job.number,
            },
        )


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def ip_number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))

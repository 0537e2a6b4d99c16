"""The table entries and job trees of switches that sum in slots, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agglab.hosts import wire
from agglab.testbed.systems.plan import (
    Branch,
    Entries,
    Replica,
    TableEntry,
    Tree,
    Wiring,
    aggregation_tree,
)
from agglab.testbed.systems.plan.entries import ip_number, mac_number
from agglab.testbed.systems.plan.forwarding import flooding_groups, forwarding_tables, wiring_of
from agglab.topologies import Host, Topology

# Constants of the programs; group 1 is plan.forwarding's.
FIRST_JOB_GROUP = 2
MAX_JOBS = 16
MAX_CHILDREN = 64
# In the programs: this switch is the job's root.
NO_PARENT = 511
# docs/protocol.md: switches talk to each other from and to the aggregator's port; a worker listens
# on 48865 + job.
FIRST_WORKER_UDP_PORT = wire.AGGREGATOR_PORT + 1
MAX_UDP_PORT = 65535


@dataclass(frozen=True)
class PlacedJob:
    """One job in the form that the plan of switches needs.

    number: its number on the wire. hosts: the names of its workers' hosts, in order of rank.
    first_slot, slots: the job's part of the slots, which is the same at every switch.
    """

    number: int
    hosts: tuple[str, ...]
    first_slot: int
    slots: int


@dataclass(frozen=True)
class Plan:
    """The entries of every switch, and the tree of each job by the job's number."""

    entries: Mapping[str, Entries]
    trees: Mapping[int, Tree]


def plan(topology: Topology, jobs: Sequence[PlacedJob | None]) -> Plan:
    """Returns the trees of the jobs and the entries of every switch.

    A job's index in `jobs` is its index in the program's counters, and decides between roots that
    are equally good. A None in `jobs` reserves an index without a job. Raises ValueError with the
    job's number for overlapping slots, an unknown host, a number whose UDP port does not exist, or
    too many jobs. It is also raised if hosts have no path between them, or if a switch has more
    children than the program has bits.
    """
    wiring = wiring_of(topology)
    trees = job_trees(topology, jobs)
    indexed = [(index, job) for index, job in enumerate(jobs) if job]
    entries = {switch: _entries(wiring, switch, indexed, trees) for switch in wiring.switches}
    return Plan(entries, trees)


def job_trees(topology: Topology, jobs: Sequence[PlacedJob | None]) -> dict[int, Tree]:
    """Returns only the trees of `plan`, by the jobs' numbers. Raises the same errors."""
    _check(topology, [job for job in jobs if job])
    wiring = wiring_of(topology)
    return {job.number: _tree(wiring, job, index) for index, job in enumerate(jobs) if job}


def job_entries(topology: Topology, switch: str, jobs: Sequence[PlacedJob | None]) -> Entries:
    """Returns the entries of one switch of `plan`."""
    return plan(topology, jobs).entries[switch]


def _check(topology: Topology, jobs: Sequence[PlacedJob]) -> None:
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


def _tree(wiring: Wiring, job: PlacedJob, index: int) -> Tree:
    try:
        tree = aggregation_tree(wiring, job.hosts, index)
    except ValueError as error:
        raise ValueError(f"job {job.number}: {error}") from None
    for branch in tree.branches.values():
        if len(branch.children) > MAX_CHILDREN:
            count = f"{len(branch.children)} children at switch {branch.switch}"
            raise ValueError(
                f"job {job.number}: {count}, but the program has only {MAX_CHILDREN} bits for them"
            )
    return tree


def _entries(
    wiring: Wiring, switch: str, jobs: Sequence[tuple[int, PlacedJob]], trees: Mapping[int, Tree]
) -> Entries:
    groups = flooding_groups(wiring, switch)
    tables = list(forwarding_tables(wiring, switch))
    for index, job in jobs:
        branch = trees[job.number].branches.get(switch)
        if branch is not None:
            group = FIRST_JOB_GROUP + index
            groups[group] = tuple(Replica(port) for port, _ in branch.children)
            tables += _job_tables(wiring.topology, branch, job, index, group)
    return Entries(tuple(tables), groups)


def _job_tables(
    topology: Topology, branch: Branch, job: PlacedJob, index: int, group: int
) -> Iterator[TableEntry]:
    cell = {
        "job_index": index,
        "all_workers": (1 << len(branch.children)) - 1,
        "first_slot": job.first_slot,
        "slots": job.slots,
        "group": group,
    }
    hosts = set(job.hosts)
    for bit, (port, node) in enumerate(branch.children):
        parent = NO_PARENT if branch.parent is None else branch.parent[0]
        child = {**cell, "worker": 1 << bit, "parent": parent}
        yield TableEntry("members", {"ingress_port": port, "job": job.number}, "contribute", child)
        to_host = topology.host(node) if node in hosts else None
        yield _receiver(port, job.number, to_host)
    if branch.parent is not None:
        port = branch.parent[0]
        yield TableEntry("members", {"ingress_port": port, "job": job.number}, "conclude", cell)
        yield _receiver(port, job.number, None)


def _receiver(port: int, job: int, host: Host | None) -> TableEntry:
    """Returns the entry for a port. host: the worker's host behind the port; None for another
    switch."""
    mac, ip = (
        (wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS) if host is None else (host.mac, host.ip)
    )
    parameters = {
        "mac": mac_number(mac),
        "address": ip_number(ip),
        "udp_port": wire.AGGREGATOR_PORT if host is None else FIRST_WORKER_UDP_PORT + job,
    }
    return TableEntry("results", {"egress_port": port, "job": job}, "to_worker", parameters)

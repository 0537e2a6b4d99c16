"""The table entries of switches for NetRPC. They say who may call, which methods there are, and
where answers go.

A job's calls are executed at one switch, the root of its tree. The switches between a worker and
the root only forward the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from agglab.hosts import wire as lower
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.service import RESERVED, Method, Service
from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.systems.plan import Entries, Replica, TableEntry, Tree, Wiring
from agglab.testbed.systems.plan.entries import ip_number, mac_number
from agglab.testbed.systems.plan.forwarding import flooding_groups, forwarding_tables, wiring_of
from agglab.testbed.systems.summing.plan import FIRST_JOB_GROUP, MAX_JOBS
from agglab.testbed.systems.summing.trees import tree_of
from agglab.topologies import Topology

WORKERS_MAX = 64
"""The largest number of callers of a job, which is CALLERS / JOBS of p4/netrpc.p4."""

Groups = dict[int, tuple[Replica, ...]]


def tables(
    graph: Topology, jobs: Sequence[ActiveJob], services: Sequence[type[Service]], cells: int
) -> dict[str, Entries]:
    """Returns the entries (see System.tables). services: the services of these jobs. cells: the
    number of entries of a map for each pair of a packet, for all jobs together."""
    wiring = wiring_of(graph)
    groups = {name: flooding_groups(wiring, name) for name in wiring.switches}
    entries = {name: list(forwarding_tables(wiring, name)) for name in wiring.switches}
    for job, service in zip(jobs, services, strict=True):
        root = tree_of(graph, job).root
        entries[root] += _executed(graph, wiring, job, service, cells)
        groups[root][FIRST_JOB_GROUP + job.index] = _copies(wiring, job, root)
        for switch, more in _passed(graph, wiring, job).items():
            entries[switch] += [entry for entry in more if entry not in entries[switch]]
    return {name: Entries(tuple(entries[name]), groups[name]) for name in wiring.switches}


def climb(tree: Tree, wiring: Wiring, host: str) -> list[str]:
    """Returns the switches from a host's own switch to the root."""
    switch = wiring.attached[host][0]
    found = [switch]
    while (above := tree.branches[switch].parent) is not None:
        switch = above[1]
        found.append(switch)
    return found


def _port_below(wiring: Wiring, way: Sequence[str], switch: str, host: str) -> int:
    """Returns the port of a switch on the path that leads towards the host."""
    at = way.index(switch)
    return wiring.attached[host][1] if at == 0 else wiring.port_to(switch, way[at - 1])


def _copies(wiring: Wiring, job: ActiveJob, root: str) -> tuple[Replica, ...]:
    tree = tree_of(wiring.topology, job)
    ways = {host: climb(tree, wiring, host) for host in job.hosts}
    return tuple(
        Replica(_port_below(wiring, ways[host], root, host), 1 + rank)
        for rank, host in zip(job.members, job.hosts, strict=True)
    )


def _executed(
    graph: Topology, wiring: Wiring, job: ActiveJob, service: type[Service], cells: int
) -> Iterator[TableEntry]:
    """Yields the root's entries: each worker as a caller and as a receiver, and the methods of the
    service."""
    tree, number = tree_of(graph, job), job.job.number
    first_slot, slots, *_ = job.share
    for rank, name in zip(job.members, job.hosts, strict=True):
        host = graph.host(name)
        port = _port_below(wiring, climb(tree, wiring, name), tree.root, name)
        yield TableEntry(
            "members",
            {"ingress_port": port, "job": number, "src": ip_number(host.ip)},
            "execute",
            {
                "job_index": job.index,
                "workers": len(job.members),
                "flow": (job.index * WORKERS_MAX + rank) * wire.POSITIONS,
                "receiver": 1 + rank,
                "window": wire.POSITIONS,
                "first_slot": first_slot,
                "slots": slots,
                "group": FIRST_JOB_GROUP + job.index,
                "first_cell": job.index * (cells // MAX_JOBS),
                "cells": cells // MAX_JOBS,
            },
        )
        address = {
            "mac": mac_number(host.mac),
            "address": ip_number(host.ip),
            "udp_port": lower.WORKER_PORT_BASE + number,
        }
        yield TableEntry("receivers", {"job": number, "receiver": 1 + rank}, "to_worker", address)
    for method in (*RESERVED, *service.methods):
        yield _method(number, method)


def _method(job: int, method: Method) -> TableEntry:
    primitives = {
        "argument": int(method.argument),
        "opens": int(method.number == RESERVED[0].number),
        "gathers": int(method.gathers),
        "adds": int(method.add_to),
        "gets": int(method.get),
        "clears": int(bool(method.clear) and not method.gathers),
        "counts": int(method.counts),
    }
    return TableEntry("methods", {"job": job, "method": method.number}, "set_method", primitives)


def _passed(graph: Topology, wiring: Wiring, job: ActiveJob) -> Mapping[str, list[TableEntry]]:
    """Returns the entries of the switches below the root, which pass calls up and answers down."""
    tree, number = tree_of(graph, job), job.job.number
    found: dict[str, list[TableEntry]] = {}
    for name in job.hosts:
        way, address = climb(tree, wiring, name), ip_number(graph.host(name).ip)
        for switch, above in pairwise(way):
            below, up = _port_below(wiring, way, switch, name), wiring.port_to(switch, above)
            found.setdefault(switch, []).extend(
                (
                    TableEntry(
                        "members",
                        {"ingress_port": below, "job": number, "src": address},
                        "forward_unchanged",
                        {"job_index": job.index, "port": up},
                    ),
                    TableEntry(
                        "deliveries",
                        {"ingress_port": up, "dst": address},
                        "deliver",
                        {"port": below},
                    ),
                )
            )
    return found

"""The table entries of switches for MLfabric. A switch sums the packets of several workers on the
way to a server that is attached to it. The entries say which workers these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agglab.hosts.part import SCHEDULER, SERVER, WORKER
from agglab.hosts.wire import WORKER_PORT_BASE
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob, NumberedSessions, ResolvedScenario
from agglab.testbed.systems.plan import Entries, TableEntry, forwarding
from agglab.testbed.systems.plan.entries import ip_number
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.plan.paths import path
from agglab.topologies import Topology

Cells = tuple[int, int]
"""A job's first cell, and the number of its cells."""
Place = tuple[str, str, int, int]
"""An agent's role, host, UDP port and rank."""
SERVER_PORTS, PORTS_OF_JOB = 0xB000, 4
"""The UDP ports of a job's servers and scheduler. They are SERVER_PORTS plus PORTS_OF_JOB times the
job's number, and the following ports. The program inspects packets to the 256 ports from
SERVER_PORTS on."""
JOBS_MAX = 16


def server_port(job: int, index: int) -> int:
    """Returns the UDP port of the server with this index."""
    return SERVER_PORTS + PORTS_OF_JOB * job + index


def scheduler_port(job: int) -> int:
    """Returns the UDP port of the scheduler."""
    return SERVER_PORTS + PORTS_OF_JOB * job + PORTS_OF_JOB - 1


def places(job: ActiveJob) -> list[Place]:
    """Returns the place of every agent of a job. The scheduler is on the last server's host."""
    declared = job.job
    port = WORKER_PORT_BASE + declared.number
    found = [(WORKER, declared.hosts[rank], port, rank) for rank in job.members]
    first = len(declared.hosts)
    for index, host in enumerate(declared.servers):
        found.append((SERVER, host, server_port(declared.number, index), first + index))
    port, rank = scheduler_port(declared.number), first + len(declared.servers)
    return [*found, (SCHEDULER, declared.servers[-1], port, rank)]


def cells_of(slots: int, index: int, jobs: int) -> Cells:
    """Returns the cells of a job in the switches' registers. Every job has the same number of
    cells."""
    cells = slots // jobs
    return index * cells, cells


class CellSessions(NumberedSessions):
    """Sessions (systems.base) of jobs whose cells do not change during a run."""

    def __init__(self, resolved: ResolvedScenario) -> None:
        super().__init__()
        jobs = resolved.jobs
        self._cells = {
            job.number: cells_of(resolved.slots, index, len(jobs)) for index, job in enumerate(jobs)
        }

    def reserved(self, job: Job) -> Cells:
        return self._cells[job.number]

    def held(self, job: Job) -> Cells:
        return self._cells[job.number]

    def take(self, job: Job) -> Cells:
        return self._cells[job.number]


def tables(graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
    """Returns the entries of every switch. A job's cells are its `share`."""
    filled = dict(forwarding(graph))
    for switch, entry in _entries(graph, jobs):
        known = filled[switch]
        filled[switch] = Entries((*known.tables, entry), known.groups)
    return filled


def _entries(graph: Topology, jobs: Sequence[ActiveJob]) -> Iterator[tuple[str, TableEntry]]:
    for job in jobs:
        first_cell, cells = job.share
        for index, server in enumerate(job.job.servers):
            for place, worker in enumerate(job.hosts):
                if worker == server:
                    continue
                *_, before, _ = path(graph, worker, server)
                came_from, _, switch = before.partition("->")
                port = wiring_of(graph).port_to(switch, came_from)
                key: dict[str, int | tuple[int, int]] = {
                    "ingress_port": port,
                    "hdr.ipv4.src": ip_number(graph.host(worker).ip),
                    "hdr.ipv4.dst": ip_number(graph.host(server).ip),
                    "hdr.udp.dst_port": server_port(job.job.number, index),
                    "hdr.message.job": job.job.number,
                }
                action = {
                    "job_index": job.index,
                    "worker": 1 << place,
                    "first_cell": first_cell,
                    "cells": cells,
                }
                yield switch, TableEntry("members", key, "contribute", action)

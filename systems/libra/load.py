"""Computes how many bytes a round's pushes and pulls put on the links, from the keys that its
workers have.

The hot keys are computed here without the servers' code. They are the keys that most workers pushed
in the last round that was a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from agglab.hosts.workloads import InputKey, PushPull
from agglab.systems.libra import wire
from agglab.systems.libra.keys import LibraKeys
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.plan.paths import path, through_switch
from agglab.topologies import Topology

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Setting:
    """Everything that determines a job's load, except the number of the round."""

    seed: int
    job: Job
    members: tuple[int, ...]
    own: LibraKeys
    lanes: int

    @property
    def servers(self) -> int:
        return len(self.job.servers)

    def most(self, server: int) -> int:
        """Returns the largest number of hot keys that a server may have."""
        return len(range(server, self.own.hot, self.servers))


@dataclass(frozen=True)
class Load:
    """The load of one round. groups: for each server, the number of groups of hot keys that are
    pushed to it. pages: for each server, the number of packets in which it announces its hot keys.
    cold: for each member by rank, the number of pairs with cold keys that it pushes to each server.
    """

    groups: tuple[int, ...]
    pages: tuple[int, ...]
    cold: Mapping[int, tuple[int, ...]]

    def chunks(self, rank: int, server: int, lanes: int) -> int:
        """Returns the number of packets with cold keys that a worker pushes to a server. It is at
        least one, because the last packet tells the server that no more follow."""
        return max(1, -(-self.cold[rank][server] // lanes))

    def least_requests(self, setting: Setting) -> int:
        """Returns the smallest number of requests that a worker sends to all servers together."""
        of_all = sum(self.groups) + sum(self.pages)
        return min(
            of_all + sum(2 * self.chunks(rank, at, setting.lanes) for at in range(setting.servers))
            for rank in self.cold
        )


@lru_cache(maxsize=1 << 14)
def load(setting: Setting, number: int) -> Load:
    """Returns the load of round `number`, if the job's session has not changed since its first
    round."""
    hot = _hot(setting, number)
    cold = {}
    for rank in setting.members:
        keys = _pushed(setting.seed, setting.job, rank, number)
        left = keys[~np.isin(keys, np.concatenate(hot))]
        cold[rank] = tuple(part.size for part in _by_server(left, setting.servers))
    return Load(
        tuple(-(-keys.size // setting.lanes) for keys in hot),
        _pages(setting, number),
        cold,
    )


def is_sample(own: LibraKeys, number: int) -> bool:
    return own.hot > 0 and number % own.sample_every == 0


@lru_cache(maxsize=64)
def _pushed(seed: int, job: Job, rank: int, number: int) -> Keys:
    assert isinstance(job.work, PushPull), "the only workload with keys that Libra has"
    return job.work.keys(InputKey(seed, job.number, rank, number))


def _by_server(keys: Keys, servers: int) -> list[Keys]:
    """Returns the keys of each server. Each server has an equal part of the 64-bit range."""
    owners = np.array([key * servers >> 64 for key in keys.tolist()])
    return [keys[owners == server] for server in range(servers)]


def _hot(setting: Setting, number: int) -> list[Keys]:
    """Returns each server's hot keys in a round."""
    if setting.own.hot == 0 or is_sample(setting.own, number):
        return [np.zeros(0, np.uint64)] * setting.servers
    return _chosen(setting, number - number % setting.own.sample_every)


def _pages(setting: Setting, number: int) -> tuple[int, ...]:
    """Returns in how many packets each server announces the keys that are hot from now on. A server
    that may have hot keys but has chosen none sends one packet."""
    if not is_sample(setting.own, number):
        return (0,) * setting.servers
    chosen = _chosen(setting, number)
    return tuple(
        max(1, -(-keys.size // setting.lanes)) if setting.most(server) else 0
        for server, keys in enumerate(chosen)
    )


@lru_cache(maxsize=64)
def _chosen(setting: Setting, sample: int) -> list[Keys]:
    """Returns the hot keys that each server chooses after a sample. Of the keys that more than one
    worker pushed, these are the ones that most workers pushed."""
    every = [_pushed(setting.seed, setting.job, rank, sample) for rank in setting.members]
    keys, counts = np.unique(np.concatenate(every), return_counts=True)
    keys, counts = keys[counts > 1], counts[counts > 1]
    found = []
    for server, own in enumerate(_by_server(keys, setting.servers)):
        heat = counts[np.isin(keys, own)]
        order = sorted(range(own.size), key=lambda at: (-heat[at], own[at]))
        found.append(own[order[: setting.most(server)]])
    return found


def racks_of(graph: Topology, job: ActiveJob) -> dict[str, list[int]]:
    """Returns for each switch the ranks of the members whose hosts are attached to it."""
    found: dict[str, list[int]] = {}
    attached = wiring_of(graph).attached
    for rank in job.members:
        found.setdefault(attached[job.job.hosts[rank]][0], []).append(rank)
    return found


def addressed_worker(job: ActiveJob, ranks: list[int], server: str) -> int:
    """Returns the worker to which a server addresses packets for all workers at a switch. Such a
    packet must cross the switch, so the worker should not be on the server's host. If all these
    workers are on that host, returns the first."""
    return next((rank for rank in ranks if job.job.hosts[rank] != server), ranks[0])


def crossed(graph: Topology, setting: Setting, job: ActiveJob, number: int) -> dict[str, int]:
    """Returns the bytes in each direction in a round without loss."""
    sizes: dict[str, int] = {}
    for direction, size in _crossings(graph, setting, job, load(setting, number)):
        sizes[direction] = sizes.get(direction, 0) + size
    return sizes


def _crossings(
    graph: Topology, setting: Setting, job: ActiveJob, of: Load
) -> Iterator[tuple[str, int]]:
    for server, home in enumerate(job.job.servers):
        for rank in job.members:
            host = job.job.hosts[rank]
            asked, answered = _cold_bytes(setting, of, rank, server)
            up = through_switch(graph, host, home) if setting.own.hot else path(graph, host, home)
            yield from ((direction, asked) for direction in up)
            yield from ((direction, answered) for direction in path(graph, home, host))
        for switch, ranks in racks_of(graph, job).items():
            yield from _group_crossings(graph, setting, job, of, server, switch, ranks)


def _cold_bytes(setting: Setting, of: Load, rank: int, server: int) -> tuple[int, int]:
    """Returns the bytes that a worker sends to a server and receives from it, for pushes, pulls and
    requests for hot keys."""
    pairs, pages = of.cold[rank][server], of.pages[server]
    chunks = of.chunks(rank, server, setting.lanes)
    asked = wire.PAIR_BYTES * pairs + (2 * chunks + pages) * wire.BARE_BYTES
    answered = wire.VALUE_BYTES * pairs + 2 * chunks * wire.BARE_BYTES
    return asked, answered + pages * wire.keys_bytes(setting.lanes)


def _group_crossings(
    graph: Topology,
    setting: Setting,
    job: ActiveJob,
    of: Load,
    server: int,
    switch: str,
    ranks: list[int],
) -> Iterator[tuple[str, int]]:
    """Yields (direction, bytes) for the sums that one switch computes for one server. They cross
    the links of all workers at the switch, and each link beyond the switch once."""
    hosts, home, groups = job.job.hosts, job.job.servers[server], of.groups[server]
    if not groups:
        return
    pushed = groups * wire.pairs_bytes(setting.lanes)
    summed = groups * wire.values_bytes(setting.lanes)
    told = hosts[addressed_worker(job, ranks, home)]
    for rank in ranks:
        yield f"{hosts[rank]}->{switch}", pushed
    yield from ((direction, pushed) for direction in through_switch(graph, told, home)[1:])
    down = path(graph, home, told)
    yield from ((direction, summed) for direction in down[:-1])
    if told == home:
        yield down[-1], summed  # alone behind its switch, at the server's own host
    else:
        for rank in ranks:
            yield f"{switch}->{hosts[rank]}", summed

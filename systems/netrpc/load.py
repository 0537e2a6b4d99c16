"""Computes how many bytes a round of NetRPC puts on the links, how many of them were sent again,
and the least time of a round of critical sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads import Calls, InputKey
from agglab.hosts.workloads.calls import LOCKS
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.plan import climb
from agglab.systems.netrpc.wire import Kind
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob, ByteRange, Cells
from agglab.testbed.systems.plan import Tree
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.plan.paths import path
from agglab.testbed.systems.summing.bounds import Load
from agglab.topologies import Topology

ROUND_TRIPS = 2
"""One agrees on the round, and one brings the results."""
BANK_EXCESS = 4
"""How many more keys than the mean the fullest bank has at most, as a rule."""


@dataclass(frozen=True)
class Place:
    """Where a job runs: the network, the tree of the job, the job, and the lanes of its packets."""

    graph: Topology
    tree: Tree
    job: ActiveJob
    lanes: int

    @property
    def servers(self) -> tuple[str, ...]:
        return self.job.job.servers

    def frame(self, kind: Kind) -> int:
        """Returns the bytes of a frame of this kind."""
        return wire.frame_bytes(kind, self.lanes)

    def links(self, host: str) -> list[tuple[str, str]]:
        """Returns both directions (up, down) of each link between a host and the root. The host's
        own link comes first."""
        nodes = [host, *climb(self.tree, wiring_of(self.graph), host)]
        return [(f"{a}->{b}", f"{b}->{a}") for a, b in pairwise(nodes)]

    def paths(self, host: str) -> Iterator[str]:
        """Yields the directions of the paths between a host and the servers, from and to the
        host."""
        for server in self.servers:
            yield from path(self.graph, host, server)
            yield from path(self.graph, server, host)


@dataclass(frozen=True)
class WorkerBytes:
    """The bytes of one worker in a round without loss. up, down: the bytes to the switch and from
    it. keyed: the bytes to the server, which sends as many back."""

    host: str
    up: int
    down: int
    keyed: int = 0


def all_reduce(at: Place, elements: int, is_float: bool) -> Load:
    """Returns the load of a round: an OPEN, for floats an AGREE at each position in use, and the
    chunks. Switches below the root add nothing, so each link carries what all workers below it send
    and receive."""
    chunks, window = -(-elements // at.lanes), at.job.job.window
    size = (1 + chunks) * at.frame(Kind.ARRAY)
    if is_float:
        size += min(chunks, window) * at.frame(Kind.NOTHING)
    traffic = [WorkerBytes(host, size, size) for host in at.job.hosts]
    return Load(_sent(at, traffic), chunks, -(-chunks // window))


def word_count(at: Place, seed: int, number: int) -> Load:
    """Returns the load of a round in which every key has an entry: requests for entries, additions
    and gets. The number of packets follows from the keys, because a key determines in which pair of
    a packet it is sent."""
    traffic, meeting = [], at.frame(Kind.ARRAY) + at.frame(Kind.NOTHING)
    pairs, bare = at.frame(Kind.MAP), at.frame(Kind.NOTHING)
    for rank, host in zip(at.job.members, at.job.hosts, strict=True):
        keys = keys_of(seed, at.job, rank, number)
        before = [keys_of(seed, at.job, rank, earlier) for earlier in range(number)]
        unknown = np.setdiff1d(keys, np.concatenate(before)) if before else keys
        packets = int(fullest_bank(keys))
        up, down = meeting + 2 * packets * pairs, meeting + packets * (bare + pairs)
        asked = -(-unknown.size // wire.PAIRS) * at.frame(Kind.KEYS)
        traffic.append(WorkerBytes(host, up, down, asked))
    return Load(_sent(at, traffic), 0, 0)


def round_trips(job: Job) -> int:
    """Returns the number of calls of a round that follow one another. In a word count, workers ask
    for places, add, meet and read, and the calls for all words in one bank may share one
    position."""
    if not isinstance(job.work, Calls):
        return ROUND_TRIPS
    calls = min(job.elements, job.elements // wire.PAIRS + BANK_EXCESS)
    return ROUND_TRIPS + 1 + 2 * calls


def lock_s(at: Place, seed: int, number: int) -> float:
    """Returns the least time, in seconds, of a round of critical sections through empty queues.
    Each worker's own sections follow one another, and so do those of each lock."""
    nearest_s = [_crossing_s(at, host) for host in at.job.hosts]
    inputs = {
        rank: at.job.job.work.inputs(InputKey(seed, at.job.job.number, rank, number))
        for rank in at.job.members
    }
    own_s = max(
        inputs[rank].size * (4 * up + 3 * answer + got)
        for rank, (up, answer, got) in zip(at.job.members, nearest_s, strict=True)
    )
    sections = sum(np.bincount(each, minlength=LOCKS) for each in inputs.values())
    held_s = min(3 * up + 2 * answer + got for up, answer, got in nearest_s)
    return max(own_s, int(np.max(sections)) * held_s)


def _crossing_s(at: Place, host: str) -> tuple[float, float, float]:
    """Returns three times, in seconds: that of a map's call to the root, that of an answer to the
    host without the call's argument, and that of an answer with it."""
    ways = {name: way for link in at.graph.links for name, _, _, way in link.directions()}

    def crossed_s(directions: Iterable[str], size: int) -> float:
        found = (ways[name] for name in directions)
        return sum((size * 8 / w.rate_bps if w.rate_bps else 0.0) + w.delay_us / 1e6 for w in found)

    ups, downs = zip(*at.links(host), strict=True)
    pairs, bare = at.frame(Kind.MAP), at.frame(Kind.NOTHING)
    return crossed_s(ups, pairs), crossed_s(downs, bare), crossed_s(downs, pairs)


@lru_cache(maxsize=4096)
def keys_of(seed: int, job: ActiveJob, rank: int, number: int) -> NDArray[np.uint64]:
    """Returns the keys that a worker counts in this round of a word count."""
    keys: NDArray[np.uint64] = job.job.work.inputs(InputKey(seed, job.job.number, rank, number))[
        "key"
    ]
    return keys


def fullest_bank(keys: NDArray[np.uint64]) -> int:
    """Returns the largest number of these keys that belong to the same pair of a packet."""
    banks = (keys % np.uint64(wire.PAIRS)).astype(np.int64)
    return int(np.bincount(banks, minlength=1).max())


def _sent(at: Place, traffic: Iterable[WorkerBytes]) -> dict[str, int]:
    sent: dict[str, int] = {}
    for one in traffic:
        for up, down in at.links(one.host):
            sent[up] = sent.get(up, 0) + one.up
            sent[down] = sent.get(down, 0) + one.down
        for direction in at.paths(one.host):
            sent[direction] = sent.get(direction, 0) + one.keyed
    return sent


def retransmitted_bytes(
    at: Place, more: Mapping[str, int], counters: Mapping[str, Mapping[str, Cells]]
) -> dict[str, ByteRange]:
    """Returns the retransmitted bytes by direction (see Traffic).

    A worker's own link carried everything that the worker sent again, unless part of it was for a
    server on the same host. Other links carried at most as much. An answer to a call that had
    already been executed is never longer than the call.
    """
    answered = counters[at.tree.root].get("duplicate", {}).get(at.job.index, (0, 0))[1]
    again: dict[str, ByteRange] = {}

    def add(direction: str, least: int, most: int) -> None:
        before = again.get(direction, ByteRange(0, 0))
        again[direction] = ByteRange(before.least + least, before.most + most)

    for host in at.job.hosts:
        size = more.get(host, 0)
        for hop, (up, down) in enumerate(at.links(host)):
            add(up, size if hop == 0 and host not in at.servers else 0, size)
            again[down] = ByteRange(0, max(answered, again.get(down, ByteRange(0, 0)).most))
    everybody = sum(more.values()) if at.servers else 0
    for direction in {name for host in at.job.hosts for name in at.paths(host)}:
        if direction in again:
            again[direction] = ByteRange(again[direction].least, again[direction].most + everybody)
        else:
            again[direction] = ByteRange(0, everybody)
    return again

"""Computes how many bytes a round of OmniReduce puts on the links, from the tensors of its
workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from agglab.systems.omnireduce.wire import (
    ENTRY_BYTES,
    HEADER_BYTES,
    OPENING_BYTES,
    entries_behind,
    full_bytes,
    longest_datagram_bytes,
)
from agglab.testbed.scenario.workloads.all_reduce import tensor
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob, Array
from agglab.testbed.systems.plan import Tree
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.trees import tree_of
from agglab.topologies import Topology

Blocks = npt.NDArray[np.bool_]
"""For each block of a tensor, whether one of its values is not zero."""
IPV4_AND_UDP_BYTES = 28
PIECE_BLOCKS = 4096
"""The number of blocks of a tensor that are processed at a time."""


@dataclass(frozen=True)
class EntryCapacity:
    """How many entries fit into one packet behind an OPENING, behind headers without values, and
    behind values. An entry stands for a packet without values that is fused with this one."""

    opening: int
    bare: int
    values: int


def longest_bytes(graph: Topology) -> int:
    """Returns the length of the longest UDP payload that every link can carry."""
    return min(link.mtu for link in graph.links) - IPV4_AND_UDP_BYTES


def entry_capacity(graph: Topology, lanes: int) -> EntryCapacity:
    longest = longest_datagram_bytes(lanes, longest_bytes(graph))
    alone = (OPENING_BYTES, HEADER_BYTES, full_bytes(lanes))
    return EntryCapacity(*(entries_behind(longest, size) for size in alone))


@lru_cache(maxsize=4096)
def load(graph: Topology, seed: int, lanes: int, job: ActiveJob, number: int, sizes: Sizes) -> Load:
    """Returns the load of this round.

    Every link carries an OPENING for each column in both directions. Upwards, it also carries a
    packet for each block that any worker has. This packet has the values if a worker below the link
    has the block, and only headers otherwise. Downwards, it carries the values. Packets that a
    worker sends without values are fused with others as far as possible.
    """
    own = _own(seed, lanes, job, number)
    tree, room = tree_of(graph, job), entry_capacity(graph, lanes)
    window, everybody = job.job.window, _union(own)
    summed, columns = int(np.count_nonzero(everybody)), max(1, min(window, everybody.size))
    sent: dict[str, int] = {}
    for switch, node, below in _links(tree, tree.root, own):
        filled = int(np.count_nonzero(below))
        alone = columns * sizes.opening + (summed - filled) * sizes.bare
        entries = most_entries(room, columns, filled, summed - filled) if node in own else (0, 0)
        sent[f"{node}->{switch}"] = filled * sizes.full(lanes) + alone - saved(*entries, sizes)
        sent[f"{switch}->{node}"] = columns * sizes.opening + summed * sizes.full(lanes)
    steps = max(int(np.count_nonzero(everybody[column::window])) for column in range(window))
    return Load(sent, summed, steps)


def saved(openings: int, blocks: int, sizes: Sizes) -> int:
    """Returns how many bytes are saved if this many openings and this many packets of headers alone
    are fused with other packets."""
    return openings * (sizes.opening - ENTRY_BYTES) + blocks * (sizes.bare - ENTRY_BYTES)


def most_entries(room: EntryCapacity, columns: int, filled: int, bare: int) -> tuple[int, int]:
    """Returns how many of a worker's openings can be entries behind other packets, and how many of
    its packets of headers alone. columns: the number of its openings. filled: the number of blocks
    whose values it sends. bare: the number of blocks for which it sends headers alone."""
    alone = max(0, bare - filled * room.values)
    return columns - -(-columns // (1 + room.opening)), bare - -(-alone // (1 + room.bare))


@dataclass(frozen=True)
class FilledPackets:
    """How many packets of a round have a value other than zero. all: the packets of a tensor.
    anywhere: those that at least one worker fills. of_worker: those that a worker fills, on
    average. zeros: the share of zeros among the values of the packets that workers fill."""

    all: int
    anywhere: int
    of_worker: float
    zeros: float


def filled_packets(seed: int, lanes: int, job: ActiveJob, number: int) -> FilledPackets:
    own = _own(seed, lanes, job, number)
    everybody, filled = _union(own), sum(map(np.count_nonzero, own.values()))
    values = sum(_values(seed, lanes, job.job, rank, number) for rank in job.members)
    zeros = 1 - values / (int(filled) * lanes) if filled else 0.0
    anywhere = int(np.count_nonzero(everybody))
    return FilledPackets(everybody.size, anywhere, int(filled) / len(own), zeros)


def _values(seed: int, lanes: int, job: Job, rank: int, number: int) -> int:
    """Returns how many values of a worker's tensor are not zero."""
    pieces = _pieces(seed, lanes, job, rank, number)
    return sum(int(np.count_nonzero(values)) for _, values in pieces)


@lru_cache(maxsize=4096)
def taken_for_saved(
    seed: int, lanes: int, room: EntryCapacity, job: ActiveJob, number: int, sizes: Sizes
) -> dict[str, int]:
    """Returns for each host how many bytes fusing saves in its worker's packets of that round, as
    `load` assumes."""
    own = _own(seed, lanes, job, number)
    everybody = _union(own)
    summed, columns = np.count_nonzero(everybody), max(1, min(job.job.window, everybody.size))
    found = {}
    for host, blocks in own.items():
        filled = int(np.count_nonzero(blocks))
        entries = most_entries(room, columns, filled, int(summed) - filled)
        found[host] = saved(*entries, sizes)
    return found


def _own(seed: int, lanes: int, job: ActiveJob, number: int) -> dict[str, Blocks]:
    """Returns for each host the blocks that its worker has."""
    hosts = job.job.hosts
    return {hosts[rank]: _blocks(seed, lanes, job.job, rank, number) for rank in job.members}


def _links(tree: Tree, switch: str, own: Mapping[str, Blocks]) -> Iterator[tuple[str, str, Blocks]]:
    """Yields (switch, node below, blocks of the workers below) for each cable of the tree."""
    for _, node in tree.branches[switch].children:
        if node in own:
            yield switch, node, own[node]
            continue
        below = list(_links(tree, node, own))
        yield from below
        yield switch, node, _union({n: blocks for at, n, blocks in below if at == node})


def _union(own: Mapping[str, Blocks]) -> Blocks:
    found: Blocks = np.logical_or.reduce(list(own.values()))
    return found


def _blocks(seed: int, lanes: int, job: Job, rank: int, number: int) -> Blocks:
    found = np.zeros(-(-job.elements // lanes), np.bool_)
    for first, values in _pieces(seed, lanes, job, rank, number):
        found[first : first + PIECE_BLOCKS] = _filled(values, lanes)
    return found


def _pieces(seed: int, lanes: int, job: Job, rank: int, number: int) -> Iterator[tuple[int, Array]]:
    """Yields the parts of a tensor, each with the number of its first block."""
    for start in range(0, job.elements, PIECE_BLOCKS * lanes):
        count = min(PIECE_BLOCKS * lanes, job.elements - start)
        yield start // lanes, tensor(seed, job, rank, number, start, count)


def _filled(values: Array, lanes: int) -> Blocks:
    missing = -values.size % lanes
    rows: Array = np.pad(values, (0, missing)).reshape(-1, lanes)
    filled: Blocks = (rows != 0).any(axis=1)
    return filled

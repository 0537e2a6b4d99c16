"""What a round puts on the links, from the tensors that its workers have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from agglab.testbed.plan import Tree
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.systems.base import ActiveJob, Array
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.trees import tree_of
from agglab.testbed.workloads.all_reduce import tensor
from agglab.topologies import Topology

Blocks = npt.NDArray[np.bool_]
"""Of each block of a tensor, whether it has a value that is not zero."""
PIECE_BLOCKS = 4096
"""Of a tensor at a time."""


@lru_cache(maxsize=4096)
def load(graph: Topology, seed: int, lanes: int, job: ActiveJob, number: int, sizes: Sizes) -> Load:
    """Of the round of that number: an OPENING for each column; up, of each block that anybody has,
    the values of those below, or headers alone where none of them has any; down, the values."""
    own = {job.job.hosts[rank]: _blocks(seed, lanes, job.job, rank, number) for rank in job.members}
    tree = tree_of(graph, job)
    window, everybody = job.job.window, _union(own)
    summed = int(np.count_nonzero(everybody))
    openings = max(1, min(window, everybody.size)) * sizes.opening
    sent: dict[str, int] = {}
    for switch, node, below in _links(tree, tree.root, own):
        filled = int(np.count_nonzero(below))
        up = filled * sizes.full(lanes) + (summed - filled) * sizes.bare
        sent[f"{node}->{switch}"] = openings + up
        sent[f"{switch}->{node}"] = openings + summed * sizes.full(lanes)
    steps = max(int(np.count_nonzero(everybody[column::window])) for column in range(window))
    return Load(sent, summed, steps)


def _links(tree: Tree, switch: str, own: Mapping[str, Blocks]) -> Iterator[tuple[str, str, Blocks]]:
    """(switch, node below, what the workers below have) of each cable of the tree."""
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
    elements = job.elements
    found = np.zeros(-(-elements // lanes), np.bool_)
    for first in range(0, found.size, PIECE_BLOCKS):
        start, count = first * lanes, min(PIECE_BLOCKS * lanes, elements - first * lanes)
        values = tensor(seed, job, rank, number, start, count)
        found[first : first + PIECE_BLOCKS] = _filled(values, lanes)
    return found


def _filled(values: Array, lanes: int) -> Blocks:
    missing = -values.size % lanes
    rows: Array = np.pad(values, (0, missing)).reshape(-1, lanes)
    filled: Blocks = (rows != 0).any(axis=1)
    return filled

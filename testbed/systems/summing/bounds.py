"""Computes the least time that an all-reduce can take, from what crosses the links of a job's
tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.bfloat16 import dtype_of
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import Bounds, ResolvedScenario
from agglab.testbed.systems.common import independent_loss
from agglab.testbed.systems.plan import Tree
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.topologies import Direction, Topology

COUNTED = 256
"""The number of losses of one chunk, on the way to one worker, up to which probabilities are
computed. More losses are practically impossible."""


@dataclass(frozen=True)
class Load:
    """What a round without loss puts on the links of a job's tree. sent: bytes by direction.
    chunks: the number of chunks that switches sum. steps: the largest number of chunks that are
    summed one after the other in one slot. shorter: the directions in which fewer bytes are sent
    for each value than its type has, or than the system usually sends."""

    sent: Mapping[str, int]
    chunks: int
    steps: int
    shorter: Mapping[str, Widths] = field(default_factory=dict)


@dataclass(frozen=True)
class Widths:
    """The bytes of a value in one direction, and of a frame that carries a chunk."""

    value_bytes: float
    frame_bytes: int


def tree_directions(graph: Topology, tree: Tree) -> Iterator[tuple[str, str, int | None]]:
    """Yields (link, direction, rate) for both directions of every link of a job's tree."""
    for branch in tree.branches.values():
        ports = graph.ports(branch.switch)
        for port, _ in branch.children:
            for name, _, _, way in ports[port].directions():
                yield ports[port].name, name, way.rate_bps


def bounds(resolved: ResolvedScenario, job: Job, tree: Tree, load: Load, sizes: Sizes) -> Bounds:
    """Returns the bounds of a job that is alone on the network. Each link carries its bytes once in
    each direction."""
    graph = resolved.graph
    plain = Widths(dtype_of(job.dtype).itemsize, sizes.full(resolved.lanes))
    widths = defaultdict(lambda: plain, load.shorter)
    rates = {name: rate for _, name, rate in tree_directions(graph, tree) if rate}
    trip_s = _trip_s(graph, tree, lambda name: widths[name].frame_bytes)
    crossing_s = {name: load.sent[name] * 8 / rate for name, rate in rates.items()}
    trips_s = load.steps * trip_s + _trip_s(graph, tree, lambda name: sizes.opening)
    chunk_s = max(widths[name].frame_bytes * 8 / rate for name, rate in rates.items())
    filled = job.window * chunk_s / trip_s if load.chunks > job.window else 1.0
    return Bounds(
        max(job.elements * widths[name].value_bytes * 8 / rate for name, rate in rates.items()),
        max(crossing_s.values()),
        _lossy_s(graph, tree, crossing_s, trips_s),
        min(1.0, filled),
    )


def _lossy_s(graph: Topology, tree: Tree, crossing_s: Mapping[str, float], trips_s: float) -> float:
    """Returns the larger of two bounds. First, every frame crosses its link 1 / (1 - p) times on
    average. Second, the chunks of a slot follow one another. Each takes a round trip through empty
    queues, and one more for every loss on the worst path to a worker and back."""
    ways = {n: way for link in graph.links for n, _, _, way in link.directions()}
    crossed_s = [s / (1 - independent_loss(ways[name])) for name, s in crossing_s.items()]
    return max(*crossed_s, trips_s * (1 + _worst_losses(graph, tree)))


def _edges(graph: Topology, tree: Tree) -> Iterator[tuple[str, Mapping[str, Direction]]]:
    """Yields, for every link of a job's tree, the node below it and both directions by name."""
    for branch in tree.branches.values():
        ports = graph.ports(branch.switch)
        for port, node in branch.children:
            yield node, {name: way for name, _, _, way in ports[port].directions()}


def _trip_s(graph: Topology, tree: Tree, frame_bytes: Callable[[str], int]) -> float:
    """Returns the round trip to the root from the worker nearest to it, through empty queues.
    frame_bytes: returns the length of the frame that crosses a direction."""
    down = {
        node: sum(
            (frame_bytes(name) * 8 / way.rate_bps if way.rate_bps else 0.0) + way.delay_us / 1e6
            for name, way in ways.items()
        )
        for node, ways in _edges(graph, tree)
    }

    def nearest_s(node: str) -> float:
        branch = tree.branches.get(node)
        if branch is None:
            return 0.0
        return min(down[child] + nearest_s(child) for _, child in branch.children)

    return nearest_s(tree.root)


def _worst_losses(graph: Topology, tree: Tree) -> float:
    """Returns the mean number of losses that a chunk has on the way up from a worker and back down,
    for the worker with most losses."""
    edges = {
        node: tuple(independent_loss(way) for way in ways.values())
        for node, ways in _edges(graph, tree)
    }
    counts = np.arange(COUNTED)

    @cache
    def at_most(below_link: bytes, losses: tuple[float, ...]) -> NDArray[np.float64]:
        """Returns the probability of at most each number of losses on a link and below it. losses:
        the shares that the link loses in each direction. Most links of a network are the same."""
        chances = np.frombuffer(below_link)
        for loss in losses:
            chances = np.convolve(chances, loss**counts * (1 - loss))[:COUNTED]
        return np.cumsum(chances)

    def below(node: str) -> NDArray[np.float64]:
        """Returns the probability of each number of losses between this node and the worker below
        it with most losses."""
        branch = tree.branches.get(node)
        if branch is None:
            return (counts == 0).astype(np.float64)
        of_all = np.ones(COUNTED)
        for _, child in branch.children:
            of_all *= at_most(below(child).tobytes(), edges[child])
        return np.diff(of_all, prepend=0.0)

    return float(below(tree.root) @ counts)

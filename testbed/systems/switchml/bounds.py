"""What must cross each link in a round, and the time no all-reduce can undercut."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import wire
from agglab.testbed.plan import Tree
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.base import Bounds
from agglab.testbed.systems.common import independent_loss
from agglab.topologies import Direction, Topology

COUNTED = 256
"""Losses of one chunk on the way to one worker; more are as good as impossible."""


def round_bytes(scenario: Scenario, tenant: Tenant, window: int | None = None) -> int:
    """Bytes one round sends over each link of the job's tree, each way: every chunk once, whatever
    is below, and an OPENING frame: for floats one for each slot in use."""
    lanes = scenario.switch.lanes
    window = window or tenant.workload.window
    assert lanes and window, "a resolved scenario"
    chunks = ceil(tenant.workload.elements / lanes)
    size = chunks * wire.frame_bytes(lanes)
    openings = min(chunks, window) if tenant.workload.dtype == "float32" else 1
    return size + openings * wire.opening_frame_bytes()


def tree_directions(graph: Topology, tree: Tree) -> Iterator[tuple[str, str, int | None]]:
    """(link, direction, rate) of both ways of every link of a job's tree."""
    for branch in tree.branches.values():
        ports = graph.ports(branch.switch)
        for port, _ in branch.children:
            for name, _, _, way in ports[port].directions():
                yield ports[port].name, name, way.rate_bps


def bounds(scenario: Scenario, graph: Topology, tenant: Tenant, tree: Tree) -> Bounds:
    """Of one job alone on the network: its slowest link carries everything once each way."""
    rates = [rate for _, _, rate in tree_directions(graph, tree) if rate]
    payload_bits = tenant.workload.elements * wire.VALUE_BYTES * 8
    slowest_bps = min(rates)
    link_s = round_bytes(scenario, tenant) * 8 / slowest_bps
    return Bounds(
        payload_bits / slowest_bps,
        link_s,
        _lossy_s(scenario, graph, tenant, tree),
        _window_share(scenario, graph, tenant, tree, slowest_bps),
    )


def _window_share(
    scenario: Scenario, graph: Topology, tenant: Tenant, tree: Tree, slowest_bps: int
) -> float:
    lanes, window = scenario.switch.lanes, tenant.workload.window
    assert lanes and window, "a resolved scenario"
    if ceil(tenant.workload.elements / lanes) <= window:
        return 1.0
    frame = wire.frame_bytes(lanes)
    return min(1.0, window * frame * 8 / slowest_bps / _trip_s(graph, tree, frame))


def _lossy_s(scenario: Scenario, graph: Topology, tenant: Tenant, tree: Tree) -> float:
    """The larger of two. Every frame crosses its link, sent 1 / (1 - p) times on average. And a
    slot's chunks follow each other, each taking a round trip of empty queues and one more for every
    loss on the worst way to a worker and back."""
    lanes, window = scenario.switch.lanes, tenant.workload.window
    assert lanes and window, "a resolved scenario"
    frame = wire.frame_bytes(lanes)
    size = round_bytes(scenario, tenant)
    ways = [way for _, ways in _edges(graph, tree) for way in ways]
    crossing_s = max(
        (size * 8 / way.rate_bps / (1 - independent_loss(way)) for way in ways if way.rate_bps),
        default=0.0,
    )
    trips_s = ceil(ceil(tenant.workload.elements / lanes) / window) * _trip_s(graph, tree, frame)
    trips_s += _trip_s(graph, tree, wire.opening_frame_bytes())
    return max(crossing_s, trips_s * (1 + _worst_losses(graph, tree)))


def _edges(graph: Topology, tree: Tree) -> Iterator[tuple[str, tuple[Direction, Direction]]]:
    """(the node below, both ways) of every link of a job's tree."""
    for branch in tree.branches.values():
        ports = graph.ports(branch.switch)
        for port, node in branch.children:
            link = ports[port]
            yield node, (link.a_to_b, link.b_to_a)


def _trip_s(graph: Topology, tree: Tree, frame_bytes: int) -> float:
    """From the worker that is nearest to the root to the root and back, through empty queues."""
    down = {
        node: sum(
            (frame_bytes * 8 / way.rate_bps if way.rate_bps else 0.0) + way.delay_us / 1e6
            for way in ways
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
    """Mean over chunks of the number of losses on the unluckiest worker's way, up and down."""
    edges = dict(_edges(graph, tree))
    counts = np.arange(COUNTED)

    def below(node: str) -> NDArray[np.float64]:
        """Chance of each number of losses between this node and the unluckiest worker."""
        branch = tree.branches.get(node)
        if branch is None:
            return (counts == 0).astype(np.float64)
        at_most = np.ones(COUNTED)
        for _, child in branch.children:
            chances = below(child)
            for way in edges[child]:
                repeats = independent_loss(way) ** counts * (1 - independent_loss(way))
                chances = np.convolve(chances, repeats)[:COUNTED]
            at_most *= np.cumsum(chances)
        return np.diff(at_most, prepend=0.0)

    return float(below(tree.root) @ counts)

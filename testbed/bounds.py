"""What must cross each link in a round, and the time no all-reduce can undercut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from hosts import wire
from testbed.plan import Tree
from testbed.scenario import Scenario
from testbed.scenario.jobs import Tenant
from topologies import Topology


@dataclass(frozen=True)
class Bounds:
    """Seconds that no all-reduce can undercut."""

    payload_s: float
    link_s: float


def round_bytes(scenario: Scenario, tenant: Tenant, window: int | None = None) -> int:
    """Bytes one round sends over each link of the job's tree, each way: every chunk once, whatever
    is below; for floats an EXPONENTS frame for each slot of the window too."""
    lanes = scenario.switch.lanes
    window = window or tenant.workload.window
    assert lanes and window, "a resolved scenario"
    chunks = ceil(tenant.workload.elements / lanes)
    size = chunks * wire.frame_bytes(lanes)
    if tenant.workload.dtype == "float32":
        size += min(chunks, window) * wire.frame_bytes(0)
    return size


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
    return Bounds(payload_bits / slowest_bps, round_bytes(scenario, tenant) * 8 / slowest_bps)

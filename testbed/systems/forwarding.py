"""Computes the bytes that hosts put on links by what they send each other, and the times that
these bytes and single frames need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agglab.testbed.systems.base import ByteRange
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.plan.paths import path as path
from agglab.testbed.systems.plan.paths import through_switch
from agglab.testbed.systems.plan.tree import Wiring
from agglab.topologies import Topology


@dataclass(frozen=True)
class Flow:
    """What one host sends to another in a round without loss. bytes: the total length of the
    Ethernet frames. by_switch: whether it goes to the switch even if both hosts are the same."""

    source: str
    target: str
    bytes: int
    by_switch: bool = False

    def crosses(self, graph: Topology) -> list[str]:
        """Returns the directions that its frames cross."""
        route = through_switch if self.by_switch else path
        return route(graph, self.source, self.target)


def bytes_by_direction(graph: Topology, flows: Iterable[Flow]) -> dict[str, int]:
    """Returns the bytes that all flows together put on each direction."""
    sizes: dict[str, int] = {}
    for flow in flows:
        for direction in flow.crosses(graph):
            sizes[direction] = sizes.get(direction, 0) + flow.bytes
    return sizes


def spread_bytes(graph: Topology, flows: Iterable[Flow]) -> dict[str, float]:
    """Returns the bytes on each direction if every switch divided what it forwards equally among
    all shortest paths, which the programs of Agglab do not do."""
    wiring = wiring_of(graph)
    sizes: dict[str, float] = {}
    between: dict[str, dict[str, float]] = {}
    for flow in flows:
        if flow.source == flow.target:
            continue
        source, target = (wiring.attached[host][0] for host in (flow.source, flow.target))
        for name in (f"{flow.source}->{source}", f"{target}->{flow.target}"):
            sizes[name] = sizes.get(name, 0) + flow.bytes
        waiting = between.setdefault(target, {})
        waiting[source] = waiting.get(source, 0) + flow.bytes
    for target, waiting in between.items():
        _spread(wiring, target, waiting, sizes)
    return sizes


def _spread(
    wiring: Wiring, target: str, waiting: dict[str, float], sizes: dict[str, float]
) -> None:
    """Adds to `sizes` what goes to one switch. waiting: the bytes for it, by the switch where they
    enter the network."""
    distances = wiring.distances(target)
    for switch in reversed(distances):
        if switch == target or not waiting.get(switch):
            continue
        following = wiring.next_hops(switch, distances)
        share = waiting[switch] / len(following)
        for other in following:
            waiting[other] = waiting.get(other, 0) + share
            name = f"{switch}->{other}"
            sizes[name] = sizes.get(name, 0) + share


def retransmitted_bytes(
    graph: Topology, flows: Sequence[Flow], more: Mapping[str, int]
) -> dict[str, ByteRange]:
    """Returns the retransmitted bytes by direction (see Traffic).

    All bytes that a host sent beyond the prediction crossed its own link, unless its agents also
    send to each other. Each other direction on the paths of the host's flows may have carried any
    part of these bytes. Switches retransmit nothing.
    """
    partly = {flow.source for flow in flows if flow.source == flow.target}
    sources: dict[str, set[str]] = {}
    for flow in flows:
        for direction in flow.crosses(graph):
            sources.setdefault(direction, set()).add(flow.source)
    most = {name: sum(more.get(host, 0) for host in hosts) for name, hosts in sources.items()}
    return {
        direction: ByteRange(size if _sender(direction) in more.keys() - partly else 0, size)
        for direction, size in most.items()
    }


def _sender(direction: str) -> str:
    return direction.partition("->")[0]


def path_s(graph: Topology, source: str, target: str, frame_bytes: int) -> float:
    """Returns how long a frame takes from one host to another through empty queues, in seconds."""
    ways = {name: way for link in graph.links for name, _, _, way in link.directions()}
    crossed = [ways[name] for name in path(graph, source, target) if name in ways]
    return sum(
        (frame_bytes * 8 / way.rate_bps if way.rate_bps else 0.0) + way.delay_us / 1e6
        for way in crossed
    )


def rates(graph: Topology) -> Iterator[tuple[str, int]]:
    """Yields (direction, rate) of all directions whose rate is limited."""
    for link in graph.links:
        for name, _, _, way in link.directions():
            if way.rate_bps:
                yield name, way.rate_bps


def slowest_crossing_s(graph: Topology, sizes: Mapping[str, float]) -> float:
    """Returns the longest time that any direction needs for its bytes."""
    return max((sizes.get(name, 0) * 8 / rate for name, rate in rates(graph)), default=0.0)

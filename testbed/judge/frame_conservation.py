"""Checks that the counters of a run agree: each part must have received exactly the frames that the
part before it sent.

For each direction of each link, the frames that the sender sent are those that entered the link
plus those that its queue refused. Each frame that entered has reached the far end or is still in
flight. Each frame that reached the far end was dropped there, lost because the link was down, or
delivered. For each host, the workers' own counts must match. Only virtual time can read all
counters at the same moment, so that no frame is unaccounted for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agglab.testbed.base.traffic_counters import DirectionStatistics, NodeStatistics
from agglab.testbed.run.measurements import Measurements

ON_REAL_LINKS = "on real links parts are counted one after the other, while frames move"


def imbalances(measured: Measurements) -> list[str]:
    """Returns a sentence for each group of counters that do not agree. The run must be in virtual
    time."""
    statistics = measured.statistics
    assert statistics.nodes, "a run in virtual time"
    ways = {way.direction: way for way in statistics.directions}
    found = [text for way in ways.values() for text in _of_link(way)]
    at = _ways_at(ways)
    for node in statistics.nodes:
        found += _of_node(node, at[node.name])
    sent, received = _by_workers(measured)
    for node in statistics.nodes:
        if node.name in sent:
            found += _of_workers(
                node, sent[node.name], received[node.name], _injected(measured, node)
            )
    return found


def _of_link(way: DirectionStatistics) -> Iterator[str]:
    if way.packets != way.seen + way.in_flight:
        yield (
            f"{way.direction}: {way.packets} frames entered the link, but {way.seen} arrived "
            f"and {way.in_flight} are still in flight"
        )
    assert way.handed_over is not None, "virtual time counts it"
    gone = way.dropped_injected + way.lost_link_down
    if way.seen + way.duplicated != gone + way.held + way.handed_over:
        yield (
            f"{way.direction}: {way.seen} frames arrived and {way.duplicated} copies were made, "
            f"but {gone} were lost, {way.held} are being delayed and {way.handed_over} were "
            "delivered"
        )


@dataclass
class _WaysAt:
    """The directions of the links of one node."""

    into: list[DirectionStatistics] = field(default_factory=list)
    out: list[DirectionStatistics] = field(default_factory=list)


def _ways_at(ways: dict[str, DirectionStatistics]) -> Mapping[str, _WaysAt]:
    """Returns the directions that end and begin at each node, by the node's name."""
    found: dict[str, _WaysAt] = defaultdict(_WaysAt)
    for name, way in ways.items():
        sender, receiver = name.split("->")
        found[sender].out.append(way)
        found[receiver].into.append(way)
    return found


def _of_node(node: NodeStatistics, at: _WaysAt) -> Iterator[str]:
    handed_over = sum(way.handed_over or 0 for way in at.into)
    if handed_over != node.received:
        yield (
            f"{node.name}: its links delivered {handed_over} frames, but it received "
            f"{node.received}"
        )
    if node.received != node.used + node.ignored + node.waiting:
        yield (
            f"{node.name}: it received {node.received} frames, but used {node.used}, ignored "
            f"{node.ignored} and still has {node.waiting} waiting"
        )
    for way in at.out:
        entered, sent = way.packets + way.dropped_by_queue, node.sent.get(way.direction, 0)
        if entered != sent:
            yield f"{way.direction}: {node.name} sent {sent} frames, but {entered} entered the link"


def _by_workers(measured: Measurements) -> tuple[dict[str, int], dict[str, int]]:
    """Returns two mappings from hosts to numbers of frames: those that the host's agents counted as
    sent, and those that they counted as received."""
    sent: dict[str, int] = {}
    received: dict[str, int] = {}
    for result in measured.outcome.jobs:
        hosts = result.job.hosts
        for host in hosts:
            sent.setdefault(host, 0)
            received.setdefault(host, 0)
        for report in result.reports:
            sent[hosts[report["rank"]]] += report["stats"]["sent"]
            received[hosts[report["rank"]]] += report["stats"]["received"]
        for report in result.served:
            host = result.servers[report["rank"]]
            sent[host] = sent.get(host, 0) + report["stats"]["sent"]
            received[host] = received.get(host, 0) + report["stats"]["received"]
    return sent, received


def _injected(measured: Measurements, node: NodeStatistics) -> int:
    return measured.outcome.injected.get(node.name, 0)


def _of_workers(node: NodeStatistics, sent: int, received: int, injected: int) -> Iterator[str]:
    put_out, used = sum(node.sent.values()) + node.local_sent, node.used + node.local_received
    sent, received = sent + node.unreported_sent, received + node.unreported_received
    if put_out != sent + injected:
        yield (
            f"{node.name}: its workers counted {sent} sent frames, but it put "
            f"{put_out - injected} on its links"
        )
    if used != received + node.unread:
        yield (
            f"{node.name}: its workers counted {received} received frames, but {used} arrived "
            f"for them and {node.unread} more that nobody read"
        )

"""Draws the network. Its nodes form a tree from the middle outwards. Beside each link are its rate,
the bytes that crossed it in each direction and the packets that it lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agglab.testbed.report.svg import Canvas
from agglab.testbed.schema.kinds import rate
from agglab.topologies.distances import distances

Metrics = Mapping[str, Any]
ALIKE_MAX = 8
"""If a switch has more hosts than this below it, one symbol stands for all of them."""
ROW, TOP, BOX = 46, 40, 10
WIDE, NARROW = 680, 350
STEP_MAX = 150.0
TEXT = 290
"""The width, in pixels, of the words beside a node."""
TITLE = "Topology: the bytes that crossed each link, and the packets that it lost"
LINK, LOSING, NODE, SWITCH = "#888888", "#D55E00", "#0072B2", "#009E73"


@dataclass(frozen=True)
class DirectionTotals:
    """One direction of a link, or the sum of the same direction of several links."""

    name: str
    bytes: int
    lost: int


@dataclass(frozen=True)
class DrawnNode:
    """A node of the drawn tree, and the link to the node above it. rate: the link's rate. ways: the
    link's two directions, the outward one last. label: the node's name or, for a symbol that stands
    for several hosts, their number."""

    label: str
    is_switch: bool
    rate: str = ""
    ways: Sequence[DirectionTotals] = ()
    below: list[DrawnNode] = field(default_factory=list)


def topology(root: DrawnNode, width: int) -> str:
    """Returns SVG of the network whose tree has this root."""
    places = list(_places(root))
    depth = max(level for level, *_ in places)
    canvas = Canvas(width, TOP + ROW * len(places), "Topology")
    canvas.text(8, 20, TITLE, size=14 if width == WIDE else 13)
    step = min(STEP_MAX, (width - TEXT) / max(1, depth))
    most = max((way.bytes for *_, node in places for way in node.ways), default=0)
    at: dict[int, tuple[float, float]] = {}
    for number, (level, above, node) in enumerate(places):
        x, y = 20.0 + step * level, TOP + ROW * number + ROW / 2
        at[id(node)] = x, y
        if above is not None:
            _link(canvas, at[id(above)], (x, y), node, most)
        _node(canvas, x, y, node)
    return canvas.render()


def tree(metrics: Metrics) -> DrawnNode:
    """Returns the tree. Its root is the switch in the middle or, without switches, the node in the
    middle. A link that closes a cycle ends at a separate copy of the node."""
    links = {name: tuple(next(iter(ways)).split("->")) for name, ways in metrics["links"].items()}
    beside: dict[str, list[tuple[str, str]]] = {}
    for link, (one, other) in links.items():
        beside.setdefault(one, []).append((other, link))
        beside.setdefault(other, []).append((one, link))
    switches = set(metrics["switches"]) & set(beside)
    root = _middle(beside, switches)
    drawn = {root: DrawnNode(root, root in switches)}
    queue, used = deque([root]), set()
    while queue:
        name = queue.popleft()
        for other, link in beside[name]:
            if link in used:
                continue
            used.add(link)
            again = other in drawn
            label = f"{other} (above)" if again else other
            ways = _ways(metrics["links"][link], name)
            rate = _rate(metrics["links"][link], ways)
            node = DrawnNode(label, other in switches, rate, ways)
            drawn[name].below.append(node)
            if not again:
                drawn[other] = node
                queue.append(other)
    for node in drawn.values():
        node.below[:] = _together(node.below)
    return drawn[root]


def _middle(beside: Mapping[str, Sequence[tuple[str, str]]], switches: set[str]) -> str:
    """Returns the switch with the smallest distance to its farthest node. Among several, returns
    the one with most links. Without switches, all nodes are compared."""
    names = sorted(switches) or sorted(beside)
    neighbours = {name: _unlike(beside, name) for name in beside}

    def rank(name: str) -> tuple[int, int]:
        return max(distances(neighbours, [name]).values()), -len(beside[name])

    return min(names, key=rank)


def _unlike(beside: Mapping[str, Sequence[tuple[str, str]]], name: str) -> list[str]:
    """Returns the neighbours of a node, but only one of those that have no other neighbour, because
    these are all equally far from every other node."""
    others = dict.fromkeys(other for other, _ in beside[name])
    return list({other if len(beside[other]) > 1 else "": other for other in others}.values())


def _ways(ways: Mapping[str, Metrics], inner: str) -> tuple[DirectionTotals, ...]:
    """Returns both directions of a link, the inward one first."""
    ordered = sorted(ways.items(), key=lambda item: item[0].startswith(f"{inner}->"))
    lost = ("dropped", "queue_drops", "lost_down", "corrupted")
    return tuple(
        DirectionTotals(name, way["bytes"], sum(way.get(key, 0) for key in lost))
        for name, way in ordered
    )


def _rate(counted: Mapping[str, Metrics], ways: Sequence[DirectionTotals]) -> str:
    """Returns the link's rate, or both directions' rates if they differ; empty if it has none."""
    rates_bps = dict.fromkeys(counted[way.name].get("rate_bps") for way in ways)
    return " / ".join(rate().write(rate_bps) for rate_bps in rates_bps if rate_bps)


def _together(below: Sequence[DrawnNode]) -> list[DrawnNode]:
    """Returns the nodes with many hosts combined into one, which has the sums of their links."""
    hosts = [node for node in below if not node.is_switch and not node.below]
    if len(hosts) <= ALIKE_MAX:
        return list(below)
    ways = [
        DirectionTotals(
            name, sum(h.ways[i].bytes for h in hosts), sum(h.ways[i].lost for h in hosts)
        )
        for i, name in enumerate(("all of them inwards", "outwards"))
    ]
    rates = " / ".join(dict.fromkeys(host.rate for host in hosts))
    label = f"{len(hosts)} hosts, {hosts[0].label} to {hosts[-1].label}"
    return [node for node in below if node not in hosts] + [DrawnNode(label, False, rates, ways)]


def _places(root: DrawnNode) -> Iterator[tuple[int, DrawnNode | None, DrawnNode]]:
    """Yields (depth, node above, node) for each row of the drawing, from the top."""
    waiting: list[tuple[int, DrawnNode | None, DrawnNode]] = [(0, None, root)]
    while waiting:
        level, above, node = waiting.pop()
        yield level, above, node
        waiting += [(level + 1, node, other) for other in reversed(node.below)]


def _link(
    canvas: Canvas, start: tuple[float, float], end: tuple[float, float], node: DrawnNode, most: int
) -> None:
    """Draws a link: down from the node above it, and then across to the node. A link that carried
    more bytes is drawn thicker."""
    colour = LOSING if any(way.lost for way in node.ways) else LINK
    carried = max((way.bytes for way in node.ways), default=0)
    thick = 1 + 4 * carried / most if most else 1.0
    (x1, y1), (x2, y2) = start, end
    canvas.polyline([(x1, y1 + BOX), (x1, y2), (x2 - BOX, y2)], colour, thick=thick)


def _node(canvas: Canvas, x: float, y: float, node: DrawnNode) -> None:
    colour = SWITCH if node.is_switch else NODE
    canvas.rectangle(x - BOX, y - BOX, 2 * BOX, 2 * BOX, colour, node.label)
    rate = f", {node.rate}" if node.rate else ""
    canvas.text(x + BOX + 6, y - 6 if node.ways else y + 4, f"{node.label}{rate}", size=12)
    for i, way in enumerate(node.ways):
        lost = f", {way.lost:,} lost" if way.lost else ""
        canvas.text(x + BOX + 6, y + 7 + 12 * i, f"{way.name} {size(way.bytes)}{lost}", size=10)


def size(count: int) -> str:
    """Returns a number of bytes as text for reading."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"

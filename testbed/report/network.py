"""Makes the picture of a network as a Vega-Lite specification: hosts at the bottom, switches above
them by their distance from the hosts. A link is as thick as the bytes it carried require."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agglab.testbed.report.colours import REFERENCE
from agglab.testbed.report.specification import (
    CONFIG,
    LETTER,
    LETTERS,
    SCHEMA,
    WIDTH,
    Spec,
    printable_spec,
    with_letters,
)
from agglab.testbed.schema.kinds import rate
from agglab.topologies.distances import distances

Metrics = Mapping[str, Any]
NAME = "topology"
ALIKE_MAX = 8
"""If a switch has more hosts than this below it, one symbol stands for all of them."""
HOSTS_MAX = 32
"""If there are more hosts than this, one symbol stands for all hosts of a switch that are alike."""
TITLE = "Topology: the bytes that crossed each link, and the packets that it lost"
NOTE = "Thicker links carried more bytes; those that lost packets are orange."
LOST = ("dropped", "queue_drops", "lost_down", "corrupted")
LINK, HOST, SWITCH = "#888888", "#0072B2", "#00805A"
TIER_HEIGHT = 95


@dataclass(frozen=True)
class _Link:
    """A link between two nodes, or all links of a symbol that stands for several hosts. up, down:
    the bytes towards the second node, and towards the first. lost: packets in both directions."""

    name: str
    ends: tuple[str, str]
    rate: str
    up: int
    down: int
    lost: int


def specification(metrics: Metrics) -> Spec:
    """Returns the specification of the network's picture."""
    switches = set(metrics["switches"])
    links, labels = _together(_links(metrics, switches), switches)
    tiers = _tiers(links, switches)
    places = {
        name: (_place(i, len(tier)), level)
        for level, tier in enumerate(tiers)
        for i, name in enumerate(tier)
    }
    nodes = [_node(name, places, links, labels, switches, tiers) for name in places]
    most = max((max(link.up, link.down) for link in links), default=0)
    rows = [row for link in links for row in _link_rows(link, places, most)]
    spec = {
        "$schema": SCHEMA,
        "description": f"{TITLE}. {len(nodes)} nodes, {len(links)} links.",
        "width": WIDTH,
        "height": TIER_HEIGHT * len(tiers),
        "layer": [_link_layer(rows, len(tiers)), *_node_layers(nodes, len(tiers))],
        "config": CONFIG,
        "usermeta": {"title": TITLE, "notes": [NOTE], "longest": 0, "beside": 0},
    }
    return printable_spec(with_letters(spec, WIDTH, LETTERS))


def size(count: int) -> str:
    """Returns a number of bytes as text for reading."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"


def _links(metrics: Metrics, switches: set[str]) -> list[_Link]:
    """Returns the links; the first end of a link between a host and a switch is the host."""
    links = []
    for name, ways in metrics["links"].items():
        one, other = next(iter(ways)).split("->")
        ends = (other, one) if one in switches and other not in switches else (one, other)
        up, down = (ways[f"{a}->{b}"] for a, b in (ends, ends[::-1]))
        rates_bps = dict.fromkeys(way.get("rate_bps") for way in (up, down))
        rates = [rate().write(rate_bps) for rate_bps in rates_bps if rate_bps]
        lost = sum(way.get(key, 0) for way in (up, down) for key in LOST)
        links.append(_Link(name, ends, " / ".join(rates), up["bytes"], down["bytes"], lost))
    return links


def _together(links: Sequence[_Link], switches: set[str]) -> tuple[list[_Link], Mapping[str, str]]:
    """Returns the links with many hosts of one switch combined into one node, and the label of each
    such node. Only hosts with a single link are combined."""
    ends = [end for link in links for end in link.ends]
    leaves: dict[str, list[_Link]] = {}
    for link in links:
        host, above = link.ends
        if host not in switches and above in switches and ends.count(host) == 1:
            leaves.setdefault(above, []).append(link)
    limit = ALIKE_MAX if sum(map(len, leaves.values())) <= HOSTS_MAX else 1
    many = {above: own for above, own in leaves.items() if len(own) > limit}
    joined = {link.name for own in many.values() for link in own}
    labels = {own[0].ends[0]: f"{len(own)} hosts" for own in many.values()}
    sums = [_sum(own) for own in many.values()]
    return [*(link for link in links if link.name not in joined), *sums], labels


def _sum(links: Sequence[_Link]) -> _Link:
    """Returns one link for those of several hosts, with the sums of their counts."""
    name = f"{links[0].name} to {links[-1].name}"
    rates = " / ".join(dict.fromkeys(link.rate for link in links))
    counts = (sum(getattr(link, key) for link in links) for key in ("up", "down", "lost"))
    return _Link(name, links[0].ends, rates, *counts)


def _tiers(links: Sequence[_Link], switches: set[str]) -> list[list[str]]:
    """Returns the nodes of each tier, from the hosts upwards. Those above are in the order of the
    middles of their neighbours below, so that few links cross."""
    beside: dict[str, list[str]] = {}
    for link in links:
        for one, other in (link.ends, link.ends[::-1]):
            beside.setdefault(one, []).append(other)
    hosts = [name for name in beside if name not in switches]
    level = distances(beside, hosts or list(beside)[:1])
    tiers: list[list[str]] = [[] for _ in range(max(level.values(), default=0) + 1)]
    order = sorted(hosts, key=lambda host: list(beside).index(beside[host][0]))
    for name in [*order, *(name for name in beside if name in switches)]:
        tiers[level[name]].append(name)
    at: dict[str, float] = {}
    for tier in tiers:
        middles = {n: fmean([at[o] for o in beside[n] if o in at] or [0.5]) for n in tier}
        if tier is not tiers[0]:
            tier.sort(key=lambda name: middles[name])
        at |= {name: _place(i, len(tier)) for i, name in enumerate(tier)}
    return tiers


def _place(number: int, count: int) -> float:
    return (number + 0.5) / count


def _node(
    name: str,
    places: Mapping[str, tuple[float, int]],
    links: Sequence[_Link],
    labels: Mapping[str, str],
    switches: set[str],
    tiers: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """Returns the row of a node. If it has one link to the tier above, its lines tell what crossed
    this link."""
    x, level = places[name]
    above = [link for link in links if name in link.ends and _is_up(name, link, places)]
    lines = [labels.get(name, name)]
    if len(above) == 1:
        lines += _traffic(above[0], name)
    letters = max(map(len, lines))
    share = len(tiers[level])
    return {
        "x": x,
        "y": level,
        "name": lines[0],
        "lines": lines,
        "kind": "switch" if name in switches else "host",
        "room": share * (letters * LETTERS * LETTER + 8),
        "name_room": share * (len(lines[0]) * LETTERS * LETTER + 4),
    }


def _is_up(name: str, link: _Link, places: Mapping[str, tuple[float, int]]) -> bool:
    other = link.ends[0] if link.ends[1] == name else link.ends[1]
    return places[other][1] > places[name][1]


def _traffic(link: _Link, below: str) -> list[str]:
    up, down = (link.up, link.down) if link.ends[0] == below else (link.down, link.up)
    lost = [f"{link.lost:,} lost"] if link.lost else []
    return [*([link.rate] if link.rate else []), f"↑ {size(up)}", f"↓ {size(down)}", *lost]


def _link_rows(
    link: _Link, places: Mapping[str, tuple[float, int]], most: int
) -> Iterator[dict[str, Any]]:
    """Yields the points of a link. A link between nodes of one tier passes above those between
    them."""
    (x1, y1), (x2, y2) = (places[end] for end in link.ends)
    about = {
        "link": link.name,
        "rate": link.rate,
        "lost": link.lost,
        "up": f"{link.ends[0]} to {link.ends[1]}: {size(link.up)}",
        "down": f"{link.ends[1]} to {link.ends[0]}: {size(link.down)}",
        "thick": 1 + 4 * max(link.up, link.down) / most if most else 1,
        "colour": REFERENCE if link.lost else LINK,
    }
    middle = [((x1 + x2) / 2, y1 + 0.5)] if y1 == y2 else []
    for order, (x, y) in enumerate([(x1, y1), *middle, (x2, y2)]):
        yield {"x": x, "y": y, "order": order, **about}


def _position(tiers: int) -> Spec:
    x = {"field": "x", "type": "quantitative", "axis": None, "scale": {"domain": [0, 1]}}
    y: Spec = {"field": "y", "type": "quantitative", "axis": None}
    y["scale"] = {"domain": [-0.9, tiers - 0.6], "nice": False}
    return {"x": x, "y": y}


def _link_layer(rows: Sequence[Mapping[str, Any]], tiers: int) -> Spec:
    hints = [{"field": key, "type": "nominal"} for key in ("link", "rate", "up", "down", "lost")]
    return {
        "data": {"values": list(rows)},
        "mark": {"type": "line", "interpolate": "basis"},
        "encoding": {
            **_position(tiers),
            "detail": {"field": "link", "type": "nominal"},
            "order": {"field": "order", "type": "quantitative"},
            "strokeWidth": {"field": "thick", "type": "quantitative", "scale": None},
            "color": {"field": "colour", "type": "nominal", "scale": None},
            "tooltip": hints,
        },
    }


def _node_layers(nodes: Sequence[Mapping[str, Any]], tiers: int) -> Iterator[Spec]:
    """Yields the symbols of the nodes, and their texts: all lines where the page has room for them,
    or else the name, or nothing."""
    scale = {"domain": ["switch", "host"], "range": [SWITCH, HOST]}
    data = {"values": list(nodes)}
    yield {
        "data": data,
        "mark": {"type": "point", "shape": "square", "filled": True, "opacity": 1, "size": 260},
        "encoding": {
            **_position(tiers),
            "fill": {"field": "kind", "type": "nominal", "scale": scale, "legend": None},
            "tooltip": {"field": "lines", "type": "nominal"},
        },
    }
    room, name_room = "width >= datum.room", "width >= datum.name_room"
    is_host = "datum.y == 0"
    for host, place in (
        (is_host, {"baseline": "top", "dy": 13}),
        (f"!({is_host})", {"align": "left", "baseline": "middle", "dx": 13}),
    ):
        for field, test in (("lines", room), ("name", f"!({room}) && {name_room}")):
            for style in ({"style": "halo"}, {}):
                yield {
                    "data": data,
                    "transform": [{"filter": f"{host} && {test}"}],
                    "mark": {"type": "text", "fontSize": LETTERS, **style, **place},
                    "encoding": {**_position(tiers), "text": {"field": field}},
                }

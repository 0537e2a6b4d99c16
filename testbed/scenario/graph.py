"""Builds the topology that a scenario describes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from agglab.testbed.scenario.links import impairments, stated
from agglab.testbed.schema.network_sections import OF_KIND
from agglab.testbed.schema.network_sections import Topology as Shape
from agglab.testbed.schema.scenario import Scenario
from agglab.topologies import Direction, Link, Topology, fabrics, kinds
from agglab.topologies.graph import DEFAULT_QUEUE_PACKETS

NUMBERS = tuple(
    name
    for name in dict.fromkeys(name for kind in kinds.KINDS for name in kinds.parameters(kind))
    if getattr(Shape(), name) is None
)
"""The parameters of topologies that may be absent in a scenario and then have a default number."""


@lru_cache(maxsize=32)
def bare(shape: Shape) -> Topology:
    """Returns the topology with nodes and links, but without rates. Raises ValueError with one line
    for an impossible shape. The points of a sweep often have the same shape."""
    if shape.kind == "custom":
        cables = [cable.partition("-") for cable in shape.links]
        return fabrics.custom(shape.switches, [(a, b) for a, _, b in cables])
    whole = resolved(shape)
    return kinds.KINDS[shape.kind](**{name: getattr(whole, name) for name in OF_KIND[shape.kind]})


def with_links(bare: Topology, scenario: Scenario) -> Topology:
    """Returns the graph with every direction's rate, delay, queue, losses and constant
    impairments."""
    return replace(bare, links=tuple(_as_asked(link, scenario) for link in bare.links))


def longest_queue(graph: Topology) -> int:
    """Returns the packets of the longest queue whose size follows from the window; 0 if the
    scenario states the size of every queue."""
    ways = (way for link in graph.links for _, _, _, way in link.directions())
    return max((way.queue_packets or 0 for way in ways), default=0)


def slowest_bps(bare: Topology, scenario: Scenario) -> int:
    """Returns the rate of the slowest direction."""
    return min(
        _value(scenario, link.name, way, "rate")
        for link in bare.links
        for way, _, _, _ in link.directions()
    )


def resolved(shape: Shape) -> Shape:
    """Returns the shape with a number for each absent parameter of its kind, and None for each
    parameter that its kind does not have."""
    has = {} if shape.kind == "custom" else kinds.parameters(shape.kind)
    numbers: dict[str, Any] = {
        name: getattr(shape, name) or has[name] if name in has else None for name in NUMBERS
    }
    return replace(shape, **numbers)


def _as_asked(link: Link, scenario: Scenario) -> Link:
    up, down = (_direction(scenario, link.name, name) for name, _, _, _ in link.directions())
    return replace(link, a_to_b=up, b_to_a=down, mtu=scenario.links.mtu_bytes)


def _value(scenario: Scenario, link: str, name: str, key: str) -> Any:
    return stated(scenario.links, key, link, name)[1]


def _direction(scenario: Scenario, link: str, name: str) -> Direction:
    window = scenario.workload.window or scenario.switch.slots
    queue_bytes = _value(scenario, link, name, "queue")
    return Direction(
        rate_bps=_value(scenario, link, name, "rate"),
        delay_us=round(_value(scenario, link, name, "delay") * 1e6),
        queue_bytes=queue_bytes,
        queue_packets=None if queue_bytes else max(DEFAULT_QUEUE_PACKETS, 2 * window),
        impairments=impairments(scenario, link, name),
    )

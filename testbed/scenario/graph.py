"""A scenario to the topology it describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from agglab.testbed.scenario.faults import constant_impairments
from agglab.testbed.scenario.schema import OF_KIND, LinkOverride, Scenario
from agglab.testbed.scenario.schema import Topology as Shape
from agglab.topologies import Direction, Drop, Link, Topology, fabrics, rack
from agglab.topologies.graph import DEFAULT_QUEUE_PACKETS

RACKS, RING_RACKS, SPINES, PORTS = 2, 3, 2, 4


def _custom(shape: Shape) -> Topology:
    cables = [cable.partition("-") for cable in shape.links]
    return fabrics.custom(shape.switches, [(a, b) for a, _, b in cables])


SHAPES: dict[str, Callable[[Shape], Topology]] = {
    "rack": lambda shape: rack(shape.workers, servers=shape.servers),
    "two_tier": lambda shape: fabrics.two_tier(shape.racks or 0, shape.workers, shape.servers),
    "leaf_spine": lambda shape: fabrics.leaf_spine(
        shape.racks or 0, shape.spines or 0, shape.workers, shape.servers
    ),
    "fat_tree": lambda shape: fabrics.fat_tree(shape.k or 0, shape.workers, shape.servers),
    "ring_of_racks": lambda shape: fabrics.ring_of_racks(
        shape.racks or 0, shape.workers, shape.servers
    ),
    "custom": _custom,
}
"""Each kind's builder, given a resolved shape; links as yet without rates."""


def topology(scenario: Scenario) -> Topology:
    """The graph with every direction's rate, delay, queue, losses and constant impairments.

    Raises ValueError with one line for a shape that cannot be.
    """
    graph = SHAPES[scenario.topology.kind](resolved(scenario.topology))
    return replace(graph, links=tuple(_as_asked(link, scenario) for link in graph.links))


def resolved(shape: Shape) -> Shape:
    """With the numbers that stand for absent ones, None for those its kind does not have."""
    has = OF_KIND[shape.kind]
    racks = RING_RACKS if shape.kind == "ring_of_racks" else RACKS
    return replace(
        shape,
        racks=shape.racks or racks if "racks" in has else None,
        spines=shape.spines or SPINES if "spines" in has else None,
        k=shape.k or PORTS if "k" in has else None,
    )


def matches(override: LinkOverride, graph: Topology) -> bool:
    """Whether the override is about any direction at all."""
    return any(
        _concerns(override, link.name, direction)
        for link in graph.links
        for direction, _, _, _ in link.directions()
    )


def _as_asked(link: Link, scenario: Scenario) -> Link:
    up, down = (_direction(scenario, link.name, name) for name, _, _, _ in link.directions())
    return replace(link, a_to_b=up, b_to_a=down, mtu=scenario.links.mtu_bytes)


def _direction(scenario: Scenario, link: str, name: str) -> Direction:
    def value(key: str) -> Any:
        """The last override that states it wins, else the section's own."""
        matching = (o for o in scenario.links.overrides if _concerns(o, link, name))
        stated = [own for o in matching if (own := getattr(o, key)) is not None]
        return stated[-1] if stated else getattr(scenario.links, key)

    window = scenario.workload.window or scenario.switch.slots
    loss, queue_bytes = value("loss"), value("queue_bytes")
    return Direction(
        rate_bps=value("rate_bps"),
        delay_us=round(value("delay_s") * 1e6),
        queue_bytes=queue_bytes,
        queue_packets=None if queue_bytes else max(DEFAULT_QUEUE_PACKETS, 2 * window),
        impairments=(
            *((Drop(loss),) if loss else ()),
            *constant_impairments(scenario, name, link),
        ),
    )


def _concerns(override: LinkOverride, link: str, direction: str) -> bool:
    name = direction if "->" in override.match else link
    return fnmatchcase(name, override.match)

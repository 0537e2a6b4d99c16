"""A scenario to the topology it describes."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from testbed.scenario.schema import LinkOverride, Links, Scenario
from topologies import Direction, Drop, Link, Topology, rack
from topologies.graph import DEFAULT_QUEUE_PACKETS


def topology(scenario: Scenario) -> Topology:
    """The graph with every link's rate, delay, queue and losses; both ways alike."""
    window = scenario.workload.window or scenario.switch.slots
    links = scenario.links
    direction = Direction(
        rate_bps=links.rate_bps,
        delay_us=round(links.delay_s * 1e6),
        queue_bytes=links.queue_bytes,
        queue_packets=None if links.queue_bytes else max(DEFAULT_QUEUE_PACKETS, 2 * window),
        impairments=_impairments(links.loss),
    )
    graph = rack(scenario.topology.workers, direction, direction, links.mtu_bytes)
    return replace(graph, links=tuple(_overridden(link, links) for link in graph.links))


def matches(override: LinkOverride, graph: Topology) -> bool:
    """Whether the override is about any link at all."""
    return any(fnmatchcase(link.name, override.match) for link in graph.links)


def _overridden(link: Link, links: Links) -> Link:
    for override in links.overrides:
        if fnmatchcase(link.name, override.match):
            link = replace(
                link,
                a_to_b=_with(link.a_to_b, override),
                b_to_a=_with(link.b_to_a, override),
            )
    return link


def _with(direction: Direction, override: LinkOverride) -> Direction:
    if override.rate_bps is not None:
        direction = replace(direction, rate_bps=override.rate_bps)
    if override.delay_s is not None:
        direction = replace(direction, delay_us=round(override.delay_s * 1e6))
    if override.loss is not None:
        direction = replace(direction, impairments=_impairments(override.loss))
    return direction


def _impairments(loss: float) -> tuple[Drop, ...]:
    return (Drop(loss),) if loss else ()

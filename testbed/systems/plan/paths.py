"""The links that frames between two hosts cross, and the delays of these links."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.topologies import Jitter, Topology


def path(graph: Topology, source: str, target: str) -> list[str]:
    """Returns the directions (`h1->s1`) that frames between two hosts cross. Between agents of one
    host this is `h1->h1`, which is not a link. Raises ValueError if there is no path."""
    if source == target:
        return [f"{source}->{target}"]
    wiring = wiring_of(graph)
    node = wiring.attached[source][0]
    crossed = [f"{source}->{node}"]
    while node != target:
        port = wiring.port_to_host(node, target)
        if port is None:
            raise ValueError(f"no path from {source} to {target}")
        following = wiring.ports[node][port]
        crossed.append(f"{node}->{following}")
        node = following
    return crossed


def unreachable(graph: Topology, hosts: Sequence[str]) -> str:
    """Returns why these hosts cannot reach each other; empty if they can."""
    for host in hosts[1:]:
        try:
            path(graph, hosts[0], host)
        except ValueError as error:
            return str(error)
    return ""


def through_switch(graph: Topology, host: str, server: str) -> list[str]:
    """Returns the directions that a frame crosses from a host through its switch to a server. The
    frame goes to the switch even if the server is on the sender's host."""
    if host != server:
        return path(graph, host, server)
    switch = wiring_of(graph).attached[host][0]
    return [f"{host}->{switch}", f"{switch}->{host}"]


def delays_s(graph: Topology, hosts: Collection[str]) -> float:
    """Returns the part of the longest round trip between any two of these hosts that the links'
    delays and jitter cause, in seconds. For a single host, this is the way to its switch and back.

    The longest round trip is searched from the host that is farthest from the first one. In a tree,
    and in any fabric whose links of one layer have the same delay, it starts there.
    """
    one_way_us = {
        name: way.delay_us + sum(i.max_us for i in way.impairments if isinstance(i, Jitter))
        for link in graph.links
        for name, _, _, way in link.directions()
    }
    if not hosts or not any(one_way_us.values()):
        return 0.0

    def round_trip_us(one: str, other: str) -> int:
        if one == other:
            (own_link,) = graph.ports(one).values()
            return sum(one_way_us[name] for name, _, _, _ in own_link.directions())
        crossed = [*path(graph, one, other), *path(graph, other, one)]
        return sum(one_way_us[name] for name in crossed)

    farthest = max(hosts, key=partial(round_trip_us, next(iter(hosts))))
    return max(round_trip_us(farthest, host) for host in hosts) / 1e6

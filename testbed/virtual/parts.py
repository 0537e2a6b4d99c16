"""Cuts a topology into parts, each of which has a clock of its own in virtual time
(native/windows.h).

Few links should lead from one part to another, and all parts should have about the same number of
hosts. The switches that are farthest from hosts are therefore taken out first: what stays connected
without them, such as a rack or a pod, is never cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agglab.topologies import Topology
from agglab.topologies.distances import distances


def cut(topology: Topology, count: int) -> dict[str, int]:
    """Returns the number of the part of every node, from 0 to count - 1."""
    neighbours = _neighbours(topology)
    hosts = {host.name for host in topology.hosts}
    heights = distances(neighbours, hosts)
    highest = max(heights.values(), default=0)
    top = {node for node, height in heights.items() if height == highest > 0}
    parts: dict[str, int] = {}
    before = 0
    for piece in _pieces(topology, neighbours, top):
        weight = len(hosts.intersection(piece))
        part = count * (2 * before + weight) // (2 * len(hosts))
        parts |= dict.fromkeys(piece, min(part, count - 1))
        before += weight
    for switch in topology.switches:
        if switch.name not in parts:
            around = Counter(parts[node] for node in neighbours[switch.name] if node in parts)
            parts[switch.name] = max(around, key=lambda part: (around[part], -part), default=0)
    return parts


def _neighbours(topology: Topology) -> dict[str, list[str]]:
    names = [host.name for host in topology.hosts]
    names += [switch.name for switch in topology.switches]
    found: dict[str, list[str]] = {name: [] for name in names}
    for link in topology.links:
        found[link.a.node].append(link.b.node)
        found[link.b.node].append(link.a.node)
    return found


def _pieces(
    topology: Topology, neighbours: dict[str, list[str]], top: set[str]
) -> Iterable[list[str]]:
    """Yields the nodes that are connected without the switches at the top."""
    seen = set(top)
    for host in topology.hosts:
        if host.name in seen:
            continue
        seen.add(host.name)
        piece, waiting = [], [host.name]
        while waiting:
            node = waiting.pop()
            piece.append(node)
            new = [each for each in neighbours[node] if each not in seen]
            seen.update(new)
            waiting += new
        yield piece

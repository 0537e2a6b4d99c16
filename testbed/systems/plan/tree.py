"""Computes a job's aggregation tree over the switches of any topology, and the paths to hosts.
Everything follows from the topology and the job's index; nothing is random."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agglab.topologies import Host, Topology

Port = int


@dataclass(frozen=True)
class Branch:
    """A switch that sums for a job, and its place in the job's tree. children: (port, node) in the
    order of their bits, where a node is a worker's host or a lower switch. parent: (port, switch);
    None at the root."""

    switch: str
    children: tuple[tuple[Port, str], ...]
    parent: tuple[Port, str] | None


@dataclass(frozen=True)
class Tree:
    """The switches that sum one job. branches: the Branch of each switch, by the switch's name; the
    root comes first."""

    root: str
    branches: Mapping[str, Branch]

    def uplinks(self) -> list[tuple[str, str]]:
        """Returns (switch, its parent) for every switch but the root."""
        return [(b.switch, b.parent[1]) for b in self.branches.values() if b.parent]


class Wiring:
    """A topology with indexes: the node at each port, and the shortest paths between switches."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.switches = [switch.name for switch in topology.switches]
        self.ports: dict[str, dict[Port, str]] = {name: {} for name in self.switches}
        self.attached: dict[str, tuple[str, Port]] = {}
        for link in topology.links:
            for near, far in ((link.a, link.b), (link.b, link.a)):
                if near.node in self.ports:
                    self.ports[near.node][near.port] = far.node
                else:
                    self.attached[near.node] = (far.node, far.port)
        for name in self.switches:
            self.ports[name] = dict(sorted(self.ports[name].items()))

    def neighbours(self, switch: str) -> list[tuple[Port, str]]:
        """Returns the ports that lead to other switches, ascending, and those switches."""
        return self._neighbours[switch]

    @cached_property
    def _neighbours(self) -> dict[str, list[tuple[Port, str]]]:
        return {
            switch: [(port, node) for port, node in ports.items() if node in self.ports]
            for switch, ports in self.ports.items()
        }

    def port_to(self, switch: str, node: str) -> Port:
        """Returns the port of the switch whose cable ends at `node`."""
        return self._ports_to[switch][node]

    @cached_property
    def _ports_to(self) -> dict[str, dict[str, Port]]:
        return {
            switch: {node: port for port, node in ports.items()}
            for switch, ports in self.ports.items()
        }

    @cached_property
    def hosts_at(self) -> dict[str, list[Host]]:
        """The hosts at each switch that has any."""
        found: dict[str, list[Host]] = {}
        for host in self.topology.hosts:
            found.setdefault(self.attached[host.name][0], []).append(host)
        return found

    def ways(self, start: str) -> dict[str, str]:
        """Returns for each reachable switch the switch before it on a shortest path from `start`
        (breadth-first search), ordered by distance. The switch before `start` is `start` itself."""
        before = {start: start}
        waiting = deque([start])
        while waiting:
            switch = waiting.popleft()
            for _, other in self.neighbours(switch):
                if other not in before:
                    before[other] = switch
                    waiting.append(other)
        return before

    @cached_property
    def from_each(self) -> dict[str, dict[str, str]]:
        """The result of `ways` for every switch."""
        return {switch: self.ways(switch) for switch in self.switches}

    def distance(self, start: str, end: str) -> int | None:
        """Returns the number of cables between two switches; None if there is no path."""
        before, steps = self.from_each[start], 0
        if end not in before:
            return None
        while end != start:
            end, steps = before[end], steps + 1
        return steps

    def distances(self, target: str) -> dict[str, int]:
        """Returns for each switch that reaches `target` the number of cables between them."""
        cables: dict[str, int] = {}
        for switch, following in self.from_each[target].items():
            cables[switch] = cables[following] + 1 if switch != target else 0
        return cables

    def next_hops(self, switch: str, distances: Mapping[str, int]) -> list[str]:
        """Returns the switches by which a shortest path to a target can go on, in the order of
        their ports. distances: those of the target."""
        nearer = distances[switch] - 1
        return [other for _, other in self.neighbours(switch) if distances.get(other) == nearer]

    def port_to_host(self, switch: str, host: str) -> Port | None:
        """Returns the port by which a switch forwards frames for a host; None if there is no
        path."""
        home, port = self.attached[host]
        return port if home == switch else self.port_towards(switch, home)

    def port_towards(self, switch: str, home: str) -> Port | None:
        """Returns the port by which a switch forwards frames for the hosts of another switch; None
        if there is no path."""
        before = self.from_each[home]
        return self.port_to(switch, before[switch]) if switch in before else None

    @cached_property
    def flooding(self) -> dict[str, tuple[Port, ...]]:
        """The ports to which each switch floods. These are the ports of all its hosts, and the
        ports of cables to other switches that belong to one spanning tree, so that there are no
        loops."""
        tree: dict[str, set[str]] = {switch: set() for switch in self.switches}
        reached: set[str] = set()
        for switch in self.switches:
            if switch not in reached:
                before = self.from_each[switch]
                reached |= before.keys()
                for child, parent in before.items():
                    if child != parent:
                        tree[child].add(parent)
                        tree[parent].add(child)
        return {
            switch: tuple(
                port
                for port, node in self.ports[switch].items()
                if node not in self.ports or node in tree[switch]
            )
            for switch in self.switches
        }


def aggregation_tree(wiring: Wiring, hosts: Sequence[str], index: int) -> Tree:
    """Returns a job's tree, over the switches between the hosts' own switches and a root.

    The root is a switch with the smallest distance to its farthest worker and, among these, with
    the smallest sum of distances. If there are several such switches, the job with this index takes
    the one after that of the previous job, so that jobs are spread over spines. Below the root,
    every path is a shortest one. Raises ValueError if no switch reaches all hosts.
    """
    homes = dict.fromkeys(wiring.attached[host][0] for host in hosts)
    root = _root(wiring, list(homes), index)
    before = wiring.from_each[root]
    children: dict[str, list[str]] = {root: []}
    for host in hosts:
        node, above = host, wiring.attached[host][0]
        while node != root and node not in children.setdefault(above, []):
            children[above].append(node)
            node, above = above, before[above]
    ordered = [switch for switch in before if switch in children]
    return Tree(root, {name: _branch(wiring, name, children[name], before) for name in ordered})


def _root(wiring: Wiring, homes: Sequence[str], index: int) -> str:
    costs: dict[str, tuple[int, int]] = {}
    for switch in wiring.switches:
        distances = [wiring.distance(switch, home) for home in homes]
        known = [distance for distance in distances if distance is not None]
        if len(known) == len(homes):
            costs[switch] = max(known), sum(known)
    if not costs:
        raise ValueError(f"no switch reaches {' and '.join(homes)}")
    best = [switch for switch in wiring.switches if costs.get(switch) == min(costs.values())]
    return best[index % len(best)]


def _branch(wiring: Wiring, switch: str, children: list[str], before: Mapping[str, str]) -> Branch:
    above = before[switch]
    parent = None if above == switch else (wiring.port_to(switch, above), above)
    at = {node: port for port, node in wiring.ports[switch].items()}
    return Branch(switch, tuple((at[node], node) for node in children), parent)

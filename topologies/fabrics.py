"""Functions that return graphs of several switches: racks under a root, racks in pods under a root,
racks under spines, a fat tree, a ring of racks, and graphs that the user lists.

In all graphs except `custom`, switches s1.. are numbered level by level, beginning with the
switches of the racks. Hosts are numbered rack by rack: first the `workers` hosts of a rack (h1..),
then its `servers` hosts (p1.., none by default). Host n of rack r, both from 1, has the address
10.0.r.n. A switch's ports are numbered from 1, beginning with those to the hosts or switches below
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agglab.topologies.graph import Host, Link, LinkEnd, Switch, Topology
from agglab.topologies.rack import MAX_HOSTS, host_ip, host_mac, rack_hosts

MAX_RACKS = 254
# P4 ports are 9 bits wide; 511 stands for no port.
MAX_PORTS = 510


def two_tier(racks: int, workers: int, servers: int = 0) -> Topology:
    """Returns a graph of racks s1..sR with `workers` hosts for workers each, all under one root
    switch, which has the last number."""
    return leaf_spine(racks, 1, workers, servers, "two_tier")


def three_tier(pods: int, racks: int, workers: int, servers: int = 0) -> Topology:
    """Returns a graph of `pods` pods under one root. A pod is a switch above `racks` racks with
    `workers` hosts for workers each. The switches of the racks come first, pod by pod, then those
    of the pods, then the root."""
    _require("pods", pods, 1, MAX_PORTS)
    _require("racks of a pod", racks, 1, MAX_PORTS - 1)
    builder = _Builder(pods * racks + pods + 1)
    builder.add_racks(pods * racks, workers, servers)
    for pod in range(pods):
        above = f"s{pods * racks + pod + 1}"
        builder.connect_all([f"s{pod * racks + n}" for n in range(1, racks + 1)], [above])
    for pod in range(pods):
        builder.connect(f"s{pods * racks + pod + 1}", f"s{pods * racks + pods + 1}")
    return builder.topology("three_tier")


def leaf_spine(
    racks: int, spines: int, workers: int, servers: int = 0, kind: str = "leaf_spine"
) -> Topology:
    """Returns a graph of racks s1..sR, each with one cable to every spine. The spines have the
    numbers after those of the racks."""
    _require("racks", racks, 1, MAX_RACKS)
    _require("spines", spines, 1, MAX_PORTS - workers - servers)
    builder = _Builder(racks + spines)
    builder.add_racks(racks, workers, servers)
    for rack in range(1, racks + 1):
        for spine in range(racks + 1, racks + spines + 1):
            builder.connect(f"s{rack}", f"s{spine}")
    return builder.topology(kind)


def fat_tree(k: int, workers: int | None = None, servers: int = 0) -> Topology:
    """Returns a graph of k pods under (k/2)^2 core switches (Al-Fares et al., 2008). Each pod has
    k/2 edge switches and k/2 aggregation switches.

    k: an even number from 2 to 20. workers: the number of hosts for workers at each edge switch, by
    default k/2. Switches are numbered in this order: the edge switches, pod by pod, then the
    aggregation switches, pod by pod, then the core switches. In every pod, aggregation switch a
    (from 0) has cables to the core switches a*k/2 to (a+1)*k/2 - 1. Each edge switch with its hosts
    is a rack.
    """
    _require("k", k, 2, 20)
    if k % 2:
        raise ValueError(f"a fat tree's k must be even, not {k}")
    half = k // 2
    builder = _Builder(2 * k * half + half * half)
    builder.add_racks(k * half, half if workers is None else workers, servers)
    edges = [[f"s{pod * half + n + 1}" for n in range(half)] for pod in range(k)]
    above = [[f"s{(k + pod) * half + n + 1}" for n in range(half)] for pod in range(k)]
    cores = [f"s{2 * k * half + n + 1}" for n in range(half * half)]
    for pod in range(k):
        builder.connect_all(edges[pod], above[pod])
    for pod in range(k):
        for n, switch in enumerate(above[pod]):
            builder.connect_all([switch], cores[n * half : (n + 1) * half])
    return builder.topology("fat_tree")


def ring_of_racks(racks: int, workers: int, servers: int = 0) -> Topology:
    """Returns a graph of racks s1..sR in a ring: each has a cable to the next, and the last has one
    to the first. There must be at least 3 racks."""
    _require("racks", racks, 3, MAX_RACKS)
    builder = _Builder(racks)
    builder.add_racks(racks, workers, servers)
    for rack in range(1, racks + 1):
        builder.connect(f"s{rack}", f"s{rack % racks + 1}")
    return builder.topology("ring_of_racks")


def custom(switches: Sequence[str], links: Sequence[tuple[str, str]]) -> Topology:
    """Returns the graph that has the given switches and cables. Ends of cables that are not in
    `switches` are hosts, in order of appearance.

    A switch's ports are numbered from 1 in the order in which its cables appear. Its device_id is
    its position in `switches`, from 1. This position is also the rack number in the addresses of
    its hosts; the hosts of a switch are numbered from 1, in order of appearance. Raises ValueError
    for a host without a switch or with several, for a cable between two hosts, for a repeated
    cable, for a switch without a cable, and for too many switches, hosts or cables.
    """
    _require("switches", len(switches), 1, MAX_RACKS)
    homes = _homes(set(switches), links)
    ordinals = dict.fromkeys(switches, 0)
    hosts = []
    for host, switch in homes.items():
        ordinals[switch] += 1
        _require(f"hosts at {switch}", ordinals[switch], 1, MAX_HOSTS)
        place = list(switches).index(switch) + 1
        number = ordinals[switch]
        hosts.append(Host(host, host_ip(place, number), host_mac(place, number)))
    cables = _Cables(switches)
    for a, b in links:
        cables.add(*((b, a) if b in homes else (a, b)))
    unused = [name for name in switches if name not in {end for link in links for end in link}]
    if unused:
        raise ValueError(f"switch {unused[0]} has no link")
    devices = tuple(Switch(name, n) for n, name in enumerate(switches, start=1))
    return Topology("custom", tuple(hosts), devices, tuple(cables.links))


def _homes(switches: set[str], links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the name of the switch to which each host is connected. Hosts are in order of
    appearance."""
    homes: dict[str, str] = {}
    for a, b in links:
        if a == b:
            raise ValueError(f"a link leads from {a} to itself")
        if a not in switches and b not in switches:
            raise ValueError(f"the link {a}-{b} has a host at both ends")
        host, switch = (a, b) if b in switches else (b, a)
        if host in switches:
            continue
        if host in homes:
            raise ValueError(f"host {host} has two links, to {homes[host]} and {switch}")
        homes[host] = switch
    return homes


class _Cables:
    """A list of links to which links are added. Each new link of a switch gets the switch's next
    port."""

    def __init__(self, switches: Iterable[str]) -> None:
        self._used = dict.fromkeys(switches, 0)
        self._pairs: set[frozenset[str]] = set()
        self.links: list[Link] = []

    def add(self, a: str, b: str) -> None:
        if frozenset((a, b)) in self._pairs:
            raise ValueError(f"the link {a}-{b} appears twice")
        self._pairs.add(frozenset((a, b)))
        self.links.append(Link(self._end(a), self._end(b)))

    def _end(self, node: str) -> LinkEnd:
        if node not in self._used:
            return LinkEnd(node, 0)
        self._used[node] += 1
        _require(f"links of switch {node}", self._used[node], 1, MAX_PORTS)
        return LinkEnd(node, self._used[node])


class _Builder:
    """A graph to which parts are added. It has the switches s1..sN; the first of them get racks of
    hosts, and all can be connected."""

    def __init__(self, switches: int) -> None:
        self._switches = tuple(Switch(f"s{n}", n) for n in range(1, switches + 1))
        self._hosts: list[Host] = []
        self._cables = _Cables(switch.name for switch in self._switches)

    def add_racks(self, racks: int, workers: int, servers: int) -> None:
        """Adds hosts to each of the switches s1..sR: `workers` hosts for workers and `servers`
        hosts for servers."""
        _require("racks", racks, 1, MAX_RACKS)
        for rack in range(1, racks + 1):
            before = (rack - 1) * workers, (rack - 1) * servers
            for host in rack_hosts(rack, workers, servers, before):
                self._hosts.append(host)
                self.connect(host.name, f"s{rack}")

    def connect(self, below: str, above: str) -> None:
        self._cables.add(below, above)

    def connect_all(self, below: Sequence[str], above: Sequence[str]) -> None:
        for lower in below:
            for upper in above:
                self.connect(lower, upper)

    def topology(self, kind: str) -> Topology:
        return Topology(kind, tuple(self._hosts), self._switches, tuple(self._cables.links))


def _require(what: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ValueError(f"{what} must be {least} to {most}, not {number}")

"""Computes the entries that every program needs: where frames for each host go, where unknown ones
are flooded, and which source addresses may enter through a port.

The entries belong to the control block of p4/include/forwarding.p4, and do not depend on what else
a program does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agglab.hosts import wire
from agglab.testbed.systems.plan.entries import Entries, Replica, TableEntry, ip_number, mac_number
from agglab.testbed.systems.plan.tree import Port, Wiring
from agglab.topologies import Host, Topology

FLOOD_GROUP = 1
"""The number of the multicast group to which frames are flooded, as in p4/include/forwarding.p4."""
ROUTED_ABOVE = 256
"""The largest number of hosts for each of which every switch has entries of its own."""
ADDRESS_BITS = 32
AREA_HOST_BITS = 8


@lru_cache(maxsize=4)
def wiring_of(topology: Topology) -> Wiring:
    """Returns the topology's wiring, which is the same object for the same topology."""
    return Wiring(topology)


def forwarding(topology: Topology) -> dict[str, Entries]:
    """Returns the entries of every switch for a program that only forwards."""
    wiring = wiring_of(topology)
    return {
        switch: Entries(forwarding_tables(wiring, switch), flooding_groups(wiring, switch))
        for switch in wiring.switches
    }


def flooding_groups(wiring: Wiring, switch: str) -> dict[int, tuple[Replica, ...]]:
    """Returns the multicast group with the ports to which the switch floods. A forwarding program
    has no other group."""
    return {FLOOD_GROUP: tuple(map(Replica, wiring.flooding[switch]))}


@lru_cache(maxsize=4096)
def forwarding_tables(wiring: Wiring, switch: str) -> tuple[TableEntry, ...]:
    """Returns the forwarding entries for all hosts. They are computed once for each Wiring."""
    return (*_sources(wiring, switch), *_towards(wiring, switch))


def _towards(wiring: Wiring, switch: str) -> Iterator[TableEntry]:
    """Yields the entries for the hosts of every switch. In a routed network, the hosts of another
    switch have one entry together."""
    for home, hosts in wiring.hosts_at.items():
        port = None if home == switch else wiring.port_towards(switch, home)
        if home == switch or (port is not None and not is_routed(wiring.topology)):
            for host in hosts:
                yield from _host_entries(host, port or wiring.attached[host.name][1])
        elif port is not None:
            yield _area(hosts[0], port)


def is_routed(topology: Topology) -> bool:
    """Returns whether switches have one route for all hosts of another switch, instead of entries
    for each of them. Hosts then send datagrams for hosts of other switches to their own switch."""
    return len(topology.hosts) > ROUTED_ABOVE


def neighbours(topology: Topology, name: str) -> list[tuple[str, str]]:
    """Returns for every other host its IPv4 address, and the MAC address to which the host `name`
    sends datagrams for it."""
    own = topology.host(name)
    return [(host.ip, mac_towards(topology, own, host)) for host in topology.hosts if host != own]


def mac_towards(topology: Topology, own: Host, other: Host) -> str:
    """Returns the MAC address to which a host sends datagrams for another one."""
    routed = is_routed(topology) and _area_of(own) != _area_of(other)
    return wire.AGGREGATOR_MAC if routed else other.mac


def _area_of(host: Host) -> int:
    """Returns the first address of the host's rack. A switch's hosts have addresses of one rack,
    and no other host has (topologies/fabrics.py)."""
    return ip_number(host.ip) >> AREA_HOST_BITS << AREA_HOST_BITS


def _area(host: Host, port: Port) -> TableEntry:
    """Returns the route to the hosts of another switch, of which `host` is one. The next hop is the
    next switch on the way: all switches have the same MAC address."""
    prefix = (_area_of(host), ADDRESS_BITS - AREA_HOST_BITS)
    route = {"next_hop": mac_number(wire.AGGREGATOR_MAC), "port": port}
    return TableEntry("routes", {"dst": prefix}, "route", route)


def _sources(wiring: Wiring, switch: str) -> Iterator[TableEntry]:
    """Yields the entries for the source addresses with which frames may enter the network at this
    switch."""
    for host in wiring.hosts_at.get(switch, ()):
        port, address = wiring.attached[host.name][1], {"address": ip_number(host.ip)}
        yield TableEntry("sources", {"ingress_port": port}, "set_owner_address", address)


def _host_entries(host: Host, port: Port) -> Iterator[TableEntry]:
    mac = mac_number(host.mac)
    yield TableEntry("macs", {"dst": mac}, "forward", {"port": port})
    route = {"next_hop": mac, "port": port}
    yield TableEntry("routes", {"dst": (ip_number(host.ip), ADDRESS_BITS)}, "route", route)

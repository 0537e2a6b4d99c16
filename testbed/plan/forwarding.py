"""Computes the entries that every program needs: where frames for each host go, where unknown ones
are flooded, and which source addresses may enter through a port.

The entries belong to the control block of p4/include/forwarding.p4, and do not depend on what else
a program does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agglab.testbed.plan.entries import Entries, Replica, TableEntry, ip_number, mac_number
from agglab.testbed.plan.tree import Wiring
from agglab.topologies import Host, Topology

FLOOD_GROUP = 1
"""The number of the multicast group to which frames are flooded, as in p4/include/forwarding.p4."""


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
    hosts = wiring.topology.hosts
    towards = (entry for host in hosts for entry in _host_entries(wiring, switch, host))
    return (*_sources(wiring, switch), *towards)


def _sources(wiring: Wiring, switch: str) -> Iterator[TableEntry]:
    """Yields the entries for the source addresses with which frames may enter the network at this
    switch."""
    for host in wiring.topology.hosts:
        node, port = wiring.attached[host.name]
        if node == switch:
            address = {"address": ip_number(host.ip)}
            yield TableEntry("sources", {"ingress_port": port}, "set_owner_address", address)


def _host_entries(wiring: Wiring, switch: str, host: Host) -> Iterator[TableEntry]:
    port, mac = wiring.port_to_host(switch, host.name), mac_number(host.mac)
    if port is not None:
        yield TableEntry("macs", {"dst": mac}, "forward", {"port": port})
        route = {"next_hop": mac, "port": port}
        yield TableEntry("routes", {"dst": (ip_number(host.ip), 32)}, "route", route)

"""The graph of one rack: `workers` hosts h1..hN on ports 1..N of the switch s1, then `servers`
hosts p1..pM on the next ports."""

from __future__ import annotations

from agglab.topologies.graph import (
    DEFAULT_MTU,
    PREFIX_LENGTH,
    Direction,
    Host,
    Link,
    LinkEnd,
    Switch,
    Topology,
)

MAX_HOSTS = 254
PLAIN = Direction()


def host_ip(rack: int, number: int) -> str:
    """Returns the IPv4 address of host `number` in rack `rack`. rack: 0 to 254. number: 1 to 254.
    The network is a /16; see docs/protocol.md."""
    return f"10.0.{rack}.{number}"


def host_mac(rack: int, number: int) -> str:
    """Returns a locally administered MAC address that contains the rack and the number:
    02:00:00:00:<rack>:<number>."""
    return f"02:00:00:00:{rack:02x}:{number:02x}"


def rack_hosts(rack: int, workers: int, servers: int, before: tuple[int, int]) -> list[Host]:
    """Returns the hosts of one rack, first those for workers. before: the number of hosts for
    workers, and the number for servers, in all racks with smaller numbers.

    Raises ValueError if there are no workers, or more hosts than a rack has addresses.
    """
    if not 1 <= workers <= MAX_HOSTS:
        raise ValueError(f"a rack holds 1 to {MAX_HOSTS} workers, not {workers}")
    if not 0 <= servers <= MAX_HOSTS - workers:
        most = MAX_HOSTS - workers
        raise ValueError(f"a rack of {workers} workers holds 0 to {most} servers, not {servers}")
    names = [f"h{before[0] + n}" for n in range(1, workers + 1)]
    names += [f"p{before[1] + n}" for n in range(1, servers + 1)]
    return [
        Host(name, host_ip(rack, number), host_mac(rack, number), number > workers)
        for number, name in enumerate(names, start=1)
    ]


def rack(
    workers: int,
    up: Direction = PLAIN,
    down: Direction = PLAIN,
    mtu: int = DEFAULT_MTU,
    number: int = 0,
    servers: int = 0,
) -> Topology:
    """Returns the graph of one rack.

    workers, servers: the numbers of hosts, together at most MAX_HOSTS. up: the direction from every
    host to the switch. down: the direction from the switch to every host. mtu: the largest IP
    packet in bytes. number: the rack's number in the addresses of the hosts. Raises ValueError for
    too many hosts or no worker.
    """
    hosts = tuple(rack_hosts(number, workers, servers, (0, 0)))
    links = tuple(
        Link(LinkEnd(host.name, 0), LinkEnd("s1", n), up, down, mtu)
        for n, host in enumerate(hosts, start=1)
    )
    return Topology("rack", hosts, (Switch("s1", 1),), links)


__all__ = ["MAX_HOSTS", "PREFIX_LENGTH", "host_ip", "host_mac", "rack", "rack_hosts"]

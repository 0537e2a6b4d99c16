"""One rack: `workers` hosts h1..hN, each on its own port 1..N of the switch s1."""

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

MAX_WORKERS = 254
PLAIN = Direction()


def host_ip(rack: int, number: int) -> str:
    """Address of a rack's host; rack 0-254, number 1-254. /16, see docs/protocol.md."""
    return f"10.0.{rack}.{number}"


def host_mac(rack: int, number: int) -> str:
    """Locally administered MAC that spells the address: 02:00:00:00:<rack>:<number>."""
    return f"02:00:00:00:{rack:02x}:{number:02x}"


def rack(
    workers: int,
    up: Direction = PLAIN,
    down: Direction = PLAIN,
    mtu: int = DEFAULT_MTU,
    number: int = 0,
) -> Topology:
    """Build the graph.

    workers: 1 to MAX_WORKERS; `up` is every host's direction to the switch, `down` the way back;
    mtu in bytes of IP packet. Raises ValueError for a number of workers out of range.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise ValueError(f"a rack holds 1 to {MAX_WORKERS} workers, not {workers}")
    hosts = tuple(
        Host(f"h{n}", host_ip(number, n), host_mac(number, n)) for n in range(1, workers + 1)
    )
    links = tuple(
        Link(LinkEnd(host.name, 0), LinkEnd("s1", n), up, down, mtu)
        for n, host in enumerate(hosts, start=1)
    )
    return Topology("rack", hosts, (Switch("s1", 1),), links)


__all__ = ["MAX_WORKERS", "PREFIX_LENGTH", "host_ip", "host_mac", "rack"]

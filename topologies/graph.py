"""The classes of a topology: Host, Switch, Link with two Directions, Topology, and the impairments
of a Direction. Their objects cannot be changed.

This module imports nothing of the project. Each object is checked when it is made; a wrong value
raises ValueError with a message of one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

PREFIX_LENGTH = 16
DEFAULT_MTU = 1500
# IPv4's smallest, and the largest its length field can say.
MIN_MTU, MAX_MTU = 68, 65535
ETHERNET_HEADER_BYTES = 14
# Deeper than any window of frames (slots) a default scenario keeps in flight towards one port.
DEFAULT_QUEUE_PACKETS = 1000
# IFNAMSIZ is 16 with the final NUL.
MAX_INTERFACE_NAME = 15


def interface_name(node: str, port: int) -> str:
    """Returns the name that Mininet gives to the interface at a node's port, such as `h1-eth0` or
    `s1-eth1`. The interface ethN of a switch is port N of its P4 program."""
    return f"{node}-eth{port}"


@dataclass(frozen=True)
class Drop:
    """Independent (Bernoulli) loss: each frame of the direction is dropped with the same
    probability, from 0 to 1."""

    kind: ClassVar[str] = "loss"
    probability: float

    def __post_init__(self) -> None:
        _require_probability("drop probability", self.probability)


@dataclass(frozen=True)
class GilbertElliott:
    """Loss in bursts (the Gilbert-Elliott model): a chain of two states, good and bad. The state is
    good before frame 0 and may change at every frame.

    to_bad, to_good: the probabilities that an arriving frame changes the state from good to bad,
    and from bad to good. good_loss, bad_loss: the probabilities that a frame is dropped if the
    state after this change is good, or bad.
    """

    kind: ClassVar[str] = "gilbert_elliott"
    to_bad: float
    to_good: float
    good_loss: float = 0.0
    bad_loss: float = 1.0

    def __post_init__(self) -> None:
        for name in ("to_bad", "to_good", "good_loss", "bad_loss"):
            _require_probability(f"Gilbert-Elliott {name}", getattr(self, name))


@dataclass(frozen=True)
class PeriodicDrop:
    """Periodic loss: in each period of `period` frames, the first `count` frames are dropped. The
    first period begins with frame number `offset`. The dropped frames are the frames k with k >=
    offset and (k - offset) mod period < count."""

    kind: ClassVar[str] = "periodic"
    period: int
    count: int = 1
    offset: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.count <= self.period or self.offset < 0:
            what = f"count {self.count}, period {self.period}, offset {self.offset}"
            raise ValueError(f"{what}: count must be 1 to the period, and offset at least 0")


@dataclass(frozen=True)
class DropList:
    """Loss of listed frames. numbers: the numbers of the frames that are dropped, ascending."""

    kind: ClassVar[str] = "drop_list"
    numbers: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(k < 0 for k in self.numbers) or sorted(set(self.numbers)) != list(self.numbers):
            raise ValueError("a drop list needs ascending numbers of at least 0")


@dataclass(frozen=True)
class Corrupt:
    """Corruption: with a given probability, one bit of a frame is inverted. The bit may be in the
    Ethernet header too."""

    kind: ClassVar[str] = "corrupt"
    probability: float

    def __post_init__(self) -> None:
        _require_probability("corrupt probability", self.probability)


@dataclass(frozen=True)
class Duplicate:
    """Duplication: with a given probability, a second copy of a frame arrives `delay_us` after the
    first."""

    kind: ClassVar[str] = "duplicate"
    probability: float
    delay_us: int = 0

    def __post_init__(self) -> None:
        _require_probability("duplicate probability", self.probability)
        _require_delay("duplicate", self.delay_us)


@dataclass(frozen=True)
class Reorder:
    """Reordering: with a given probability, a frame arrives `delay_us` later, and so possibly after
    frames that were sent after it."""

    kind: ClassVar[str] = "reorder"
    probability: float
    delay_us: int

    def __post_init__(self) -> None:
        _require_probability("reorder probability", self.probability)
        _require_delay("reorder", self.delay_us)


@dataclass(frozen=True)
class Jitter:
    """Jitter: each frame is delayed by a random time, uniform from 0 to `max_us`. Frames may
    overtake each other."""

    kind: ClassVar[str] = "jitter"
    max_us: int

    def __post_init__(self) -> None:
        _require_delay("jitter", self.max_us)


Impairment: TypeAlias = (
    Drop | GilbertElliott | PeriodicDrop | DropList | Corrupt | Duplicate | Reorder | Jitter
)
"""What may happen to the frames of a direction. `kind` is its name in scenarios."""
DELAYING = (Reorder, Jitter)
"""The impairments that can make a frame arrive later."""
COPYING = (Duplicate,)
"""The impairments that can make a frame arrive more than once."""


@dataclass(frozen=True)
class Direction:
    """One direction of a cable. Its rate and queue, its delay and its impairments take effect in
    this order.

    rate_bps: bits per second of Ethernet frames (with the header, without preamble and FCS); None
        for no limit.
    delay_us: the one-way propagation delay in microseconds.
    queue_packets / queue_bytes: the limit of the queue in front of the rate; at most one of the two
        may be given, and the default is DEFAULT_QUEUE_PACKETS. Directions without a rate have no
        queue.
    impairments: are applied where the frame arrives, in this order.
    """

    rate_bps: int | None = None
    delay_us: int = 0
    queue_packets: int | None = None
    queue_bytes: int | None = None
    impairments: tuple[Impairment, ...] = ()

    def __post_init__(self) -> None:
        if self.rate_bps is not None and self.rate_bps < 1:
            raise ValueError(f"rate {self.rate_bps} bit/s is not positive")
        if self.delay_us < 0:
            raise ValueError(f"delay {self.delay_us} us is negative")
        if self.queue_packets is not None and self.queue_bytes is not None:
            raise ValueError("a queue is limited in packets or in bytes, not in both")
        if self.queue_packets is not None and self.queue_packets < 1:
            raise ValueError("a queue holds at least one packet")
        kinds = [type(each) for each in self.impairments]
        repeated = next((kind for kind in kinds if kinds.count(kind) > 1), None)
        if repeated is not None:
            raise ValueError(f"a direction has at most one impairment {repeated.__name__}")


@dataclass(frozen=True)
class LinkEnd:
    """One end of a cable: the name of a node, and the number of the node's port."""

    node: str
    port: int

    @property
    def interface(self) -> str:
        return interface_name(self.node, self.port)


@dataclass(frozen=True)
class Link:
    """One full-duplex cable between the ends `a` and `b`. Each way has a Direction: `a_to_b` and
    `b_to_a`."""

    a: LinkEnd
    b: LinkEnd
    a_to_b: Direction = Direction()
    b_to_a: Direction = Direction()
    mtu: int = DEFAULT_MTU

    def __post_init__(self) -> None:
        if not MIN_MTU <= self.mtu <= MAX_MTU:
            raise ValueError(f"mtu {self.mtu} is not between {MIN_MTU} and {MAX_MTU} bytes")
        for queue in (self.a_to_b.queue_bytes, self.b_to_a.queue_bytes):
            if queue is not None and queue < self.frame_bytes:
                frame = self.frame_bytes
                raise ValueError(f"a queue of {queue} bytes cannot hold a frame of {frame}")

    @property
    def frame_bytes(self) -> int:
        """The length in bytes of the largest frame, with its Ethernet header."""
        return self.mtu + ETHERNET_HEADER_BYTES

    @property
    def name(self) -> str:
        """The name of the link, such as `h1-s1`. It does not depend on the rest of the topology,
        because random seeds are derived from it."""
        return f"{self.a.node}-{self.b.node}"

    def directions(self) -> Iterator[tuple[str, LinkEnd, LinkEnd, Direction]]:
        """Yields both directions, as (name such as `h1->s1`, sending end, receiving end,
        Direction)."""
        yield f"{self.a.node}->{self.b.node}", self.a, self.b, self.a_to_b
        yield f"{self.b.node}->{self.a.node}", self.b, self.a, self.b_to_a


@dataclass(frozen=True)
class Host:
    """An end host with one interface, on port 0. for_servers: whether the host is meant for
    servers; if so, a worker runs there only if a job names the host."""

    name: str
    ip: str
    mac: str
    for_servers: bool = False


@dataclass(frozen=True)
class Switch:
    """A P4 switch. device_id: the number by which P4Runtime identifies it."""

    name: str
    device_id: int


@dataclass(frozen=True)
class Topology:
    """A graph of hosts, switches and links. All names of nodes and interfaces are unique, and every
    end of a link is a node of the graph."""

    kind: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        names = [host.name for host in self.hosts] + [switch.name for switch in self.switches]
        known = set(names)
        _refuse_duplicates("node", names)
        _refuse_duplicates("link", [link.name for link in self.links])
        ends = [end for link in self.links for end in (link.a, link.b)]
        _refuse_duplicates("interface", [end.interface for end in ends])
        for end in ends:
            if end.node not in known:
                raise ValueError(f"a link ends at node {end.node}, which does not exist")
            if len(end.interface) > MAX_INTERFACE_NAME:
                raise ValueError(
                    f"interface name {end.interface} exceeds {MAX_INTERFACE_NAME} bytes"
                )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[Any, ...]:
        return self.kind, self.hosts, self.switches, self.links

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves out what is cached: hashes of names differ from process to process."""
        return type(self), self._content

    @cached_property
    def _ports(self) -> dict[str, dict[int, Link]]:
        ports: dict[str, dict[int, Link]] = {}
        ends = ((end, link) for link in self.links for end in (link.a, link.b))
        for end, link in sorted(ends, key=lambda each: each[0].port):
            ports.setdefault(end.node, {})[end.port] = link
        return ports

    @cached_property
    def _hosts_by_name(self) -> dict[str, Host]:
        return {host.name: host for host in self.hosts}

    def host(self, name: str) -> Host:
        """Returns the host with this name. Raises KeyError if there is none."""
        return self._hosts_by_name[name]

    @cached_property
    def _switch_numbers(self) -> dict[str, int]:
        return {switch.name: n for n, switch in enumerate(self.switches, start=1)}

    def switch_number(self, name: str) -> int | None:
        """Returns the switch's position among all switches, from 1; None if no switch has this
        name."""
        return self._switch_numbers.get(name)

    def link(self, name: str) -> Link:
        """Returns the link with this name. Raises KeyError if there is none."""
        return {link.name: link for link in self.links}[name]

    def ports(self, node: str) -> dict[int, Link]:
        """Returns the links of a node by the number of the node's port, ascending."""
        return dict(self._ports.get(node, {}))

    def with_directions(self, pattern: str, **changes: Any) -> Topology:
        """Returns a copy in which some Directions have other values. Raises ValueError if the
        pattern matches nothing.

        pattern: a pattern as in a shell. A pattern with `->` is matched against directions
        (`s*->h*`). Another pattern is matched against links (`h?-s1`), and both directions of each
        such link change. changes: the new values of fields of Direction.
        """
        links = tuple(_changed(link, pattern, changes) for link in self.links)
        if not any(_concerned(link, pattern) for link in self.links):
            raise ValueError(f"'{pattern}' matches no link and no direction")
        return replace(self, links=links)

    def with_link(
        self, name: str, a_to_b: Direction | None = None, b_to_a: Direction | None = None
    ) -> Topology:
        """Returns a copy in which the named link has other Directions; None keeps a Direction.
        Raises KeyError if there is no such link."""
        old = self.link(name)
        new = replace(old, a_to_b=a_to_b or old.a_to_b, b_to_a=b_to_a or old.b_to_a)
        return replace(self, links=tuple(new if link is old else link for link in self.links))


def _concerned(link: Link, pattern: str) -> list[str]:
    """Returns the names of the link's directions to which a pattern applies."""
    return [
        name
        for name, _, _, _ in link.directions()
        if fnmatchcase(name if "->" in pattern else link.name, pattern)
    ]


def _changed(link: Link, pattern: str, changes: dict[str, Any]) -> Link:
    concerned = _concerned(link, pattern)
    a_to_b, b_to_a = (
        replace(direction, **changes) if name in concerned else direction
        for name, _, _, direction in link.directions()
    )
    return replace(link, a_to_b=a_to_b, b_to_a=b_to_a)


def _require_probability(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{what} {value} is not between 0 and 1")


def _require_delay(what: str, value_us: int) -> None:
    if value_us < 0:
        raise ValueError(f"{what} of {value_us} us is negative")


def _refuse_duplicates(kind: str, names: list[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"{kind} {repeated[0]} exists twice")

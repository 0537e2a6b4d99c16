"""The values that a network has counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DirectionStatistics:
    """One way of one link.

    link: `h1-s1`; direction: `h1->s1`.
    packets, bytes: frames that left the sender's queue onto the link (Ethernet header counted).
    seen: frames that reached the far end, before impairments.
    dropped_injected: how many of those the impairments dropped.
    dropped_by_queue: frames the sender's queue refused (nobody injected those).
    dropped_numbers: the numbers k (frames seen, counted from 0) that were dropped, ascending; the
        first 65536 of them when there are more.
    corrupted: frames in which an impairment inverted a bit.
    lost_link_down: frames seen while the link was pulled, none of which counts as dropped.
    duplicated: copies that impairments made of frames seen, which are not seen themselves.
    in_flight: frames that have left the queue or wait in it and have not reached the far end.
    held: frames seen, and copies, that jitter or reordering has not yet let go.
    handed_over: frames and copies that the receiving node was given; None where nobody counts them.
    """

    link: str
    direction: str
    packets: int
    bytes: int
    seen: int
    dropped_injected: int
    dropped_by_queue: int
    dropped_numbers: tuple[int, ...] = ()
    corrupted: int = 0
    lost_link_down: int = 0
    duplicated: int = 0
    in_flight: int = 0
    held: int = 0
    handed_over: int | None = None


@dataclass(frozen=True)
class SwitchStatistics:
    """One switch: what it says on its statistics socket. `details` is that answer unchanged."""

    name: str
    cpu_s: float
    ring_drops: int
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeStatistics:
    """What a node of virtual time did with frames.

    received: frames from its links. used: those that were given to a program (a worker's socket,
    the pipeline); unread: datagrams among these that no worker has read, or ever will; ignored:
    those that were of no use to any program here, or came while none was running. sent: frames that
    were put on links, by direction. waiting: frames that were received and that a switch that takes
    time has not looked at yet. unreported_sent, unreported_received: what workers that are still in
    a round (such as a paused one) have counted in it and not yet reported. local_sent,
    local_received: datagrams between agents of one host, which no link carries."""

    name: str
    received: int
    used: int
    ignored: int
    sent: Mapping[str, int]
    unread: int = 0
    waiting: int = 0
    unreported_sent: int = 0
    unreported_received: int = 0
    local_sent: int = 0
    local_received: int = 0


@dataclass(frozen=True)
class Repeats:
    """What workers sent again, by (job's number, host): with a cause in the network or its faults,
    as a consequence of such a retransmission, and without a cause. examples: a few of the last, in
    words."""

    explained: Mapping[tuple[int, str], int]
    consequences: Mapping[tuple[int, str], int]
    unexplained: Mapping[tuple[int, str], int]
    examples: tuple[str, ...]


@dataclass(frozen=True)
class NetworkStatistics:
    """Everything counted so far. cpu_s: processor seconds by process name (agents and switches).
    nodes, repeats: only in virtual time, where each frame can be followed."""

    directions: tuple[DirectionStatistics, ...]
    switches: tuple[SwitchStatistics, ...]
    cpu_s: dict[str, float]
    nodes: tuple[NodeStatistics, ...] = ()
    repeats: Repeats | None = None

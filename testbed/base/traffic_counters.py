"""Defines the counters of links, switches and nodes that a network has counted so far, such as
DirectionStatistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DirectionStatistics:
    """The counts of one direction of one link.

    link, direction: their names, such as `h1-s1` and `h1->s1`.

    packets, bytes: frames that left the sender's queue onto the link (Ethernet header counted). In
    virtual time, those still in the queue are included.

    seen: frames that reached the far end, before impairments.

    dropped_injected: how many of the frames seen were dropped by impairments.

    dropped_by_queue: frames that the sender's queue refused. No impairment dropped them.

    dropped_numbers: the numbers of the dropped frames, ascending. Frames seen are numbered from 0.
    If more than 65536 were dropped, only the first 65536 numbers are kept.

    corrupted: frames in which an impairment inverted a bit.

    lost_link_down: frames seen while the link was down. They are not counted as dropped.

    duplicated: copies that impairments made of frames seen. The copies are not counted as seen.

    in_flight: frames that wait in the queue or have left it, and have not reached the far end.

    held: frames seen, and copies, that jitter or reordering still delays.

    handed_over: frames and copies that the receiving node was given; None where this is not
    counted.
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

    @property
    def lost(self) -> int:
        """The frames that impairments, the sender's queue or a link that was down have lost."""
        return self.dropped_injected + self.lost_link_down + self.dropped_by_queue


@dataclass(frozen=True)
class SwitchStatistics:
    """The counts of one switch. details: the answer of the switch on its statistics socket,
    unchanged."""

    name: str
    cpu_s: float
    ring_drops: int
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeStatistics:
    """The counts of a node in virtual time.

    received: frames from its links. used: those that were given to a program (a worker's socket or
    the pipeline). unread: datagrams among the used ones that no worker has read or will read.
    ignored: frames that no program of the node could use, or that came while no program was
    running. sent: frames that were put on links, by direction. waiting: received frames that the
    switch has not handled yet, because it takes time. unreported_sent, unreported_received: frames
    that workers have counted in the current round but not yet reported, for example because a
    worker is paused. local_sent, local_received: datagrams between agents of one host, which no
    link carries.
    """

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
    """How many packets workers sent again, by (number of the job, host). explained: with a cause in
    the network or its faults. consequences: sent again because of trouble with another packet of
    the job (virtual/causes.py). unexplained: without a cause. examples: some of the unexplained
    ones, in words."""

    explained: Mapping[tuple[int, str], int]
    consequences: Mapping[tuple[int, str], int]
    unexplained: Mapping[tuple[int, str], int]
    examples: tuple[str, ...]


@dataclass(frozen=True)
class NetworkStatistics:
    """Everything counted so far. cpu_s: processor seconds by process name (agents and switches).
    nodes, repeats: counts that exist only in virtual time, where each frame can be followed."""

    directions: tuple[DirectionStatistics, ...]
    switches: tuple[SwitchStatistics, ...]
    cpu_s: dict[str, float]
    nodes: tuple[NodeStatistics, ...] = ()
    repeats: Repeats | None = None

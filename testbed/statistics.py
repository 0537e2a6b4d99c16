"""What a network counted, as values."""

from __future__ import annotations

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


@dataclass(frozen=True)
class SwitchStatistics:
    """One switch: what it says on its statistics socket. `details` is that answer unchanged."""

    name: str
    cpu_s: float
    ring_drops: int
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkStatistics:
    """Everything counted so far. cpu_s: processor seconds by process name (agents and switches)."""

    directions: tuple[DirectionStatistics, ...]
    switches: tuple[SwitchStatistics, ...]
    cpu_s: dict[str, float]

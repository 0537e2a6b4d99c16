"""What a switch is filled with, as plain values: table entries, multicast groups, sessions."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class TableEntry:
    """table, action, match fields and parameters by P4Info name, or by a unique last part of it.

    match: field name -> value (exact), (value, prefix length) (lpm), (value, mask) (ternary) or
    (low, high) (range). Values are unsigned. priority: of ternary and range, the largest wins.
    default: what the table does where nothing matches; it has no match.
    """

    table: str
    match: dict[str, int | tuple[int, int]]
    action: str
    parameters: dict[str, int] = field(default_factory=dict)
    priority: int = 0
    default: bool = False


class Replica(NamedTuple):
    """A copy of a packet: the port it leaves by, and its number in the program (egress_rid)."""

    port: int
    instance: int = 1


@dataclass(frozen=True)
class CloneSession:
    """What becomes of packets that are cloned to it. max_bytes: of each copy; 0 for all of it."""

    replicas: tuple[Replica, ...]
    max_bytes: int = 0


@dataclass(frozen=True)
class Entries:
    """What a switch is to be filled with. groups: multicast group id -> copies; sessions: by their
    numbers."""

    tables: tuple[TableEntry, ...]
    groups: dict[int, tuple[Replica, ...]]
    sessions: dict[int, CloneSession] = field(default_factory=dict)


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def ip_number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))

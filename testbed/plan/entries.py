"""The entries of a switch as plain values: table entries, multicast groups and clone sessions."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class TableEntry:
    """A table entry. Table, action, match fields and parameters have their P4Info name, or a last
    part of it that no other object has.

    match: the value of each field: a number (exact), (value, prefix length) (lpm), (value, mask)
    (ternary) or (low, high) (range). Values are unsigned. priority: for ternary and range matches;
    the largest wins. default: whether the entry is the table's action if nothing matches; it then
    has no match.
    """

    table: str
    match: dict[str, int | tuple[int, int]]
    action: str
    parameters: dict[str, int] = field(default_factory=dict)
    priority: int = 0
    default: bool = False


class Replica(NamedTuple):
    """A copy of a packet. port: where it leaves. instance: its number in the program
    (egress_rid)."""

    port: int
    instance: int = 1


@dataclass(frozen=True)
class CloneSession:
    """A clone session: the copies of packets that are cloned to it. max_bytes: the length to which
    each copy is cut; 0 for no limit."""

    replicas: tuple[Replica, ...]
    max_bytes: int = 0


@dataclass(frozen=True)
class Entries:
    """All entries of a switch. groups: the copies of each multicast group, by the group's number.
    sessions: the clone sessions, by their numbers."""

    tables: tuple[TableEntry, ...]
    groups: dict[int, tuple[Replica, ...]]
    sessions: dict[int, CloneSession] = field(default_factory=dict)


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def ip_number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))

"""Defines the entries of a switch as values without behavior: table entries, multicast groups and
clone sessions."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple


@dataclass(frozen=True)
class TableEntry:
    """A table entry. Table, action, match fields and parameters are given by their name in P4Info,
    or by the last part of that name if no other object shares it.

    match: the value of each field: a number (exact), (value, prefix length) (lpm), (value, mask)
    (ternary) or (low, high) (range). Values are unsigned. priority: for ternary and range matches;
    the entry with the largest one wins. default: whether the entry sets the table's default action,
    for packets that nothing matches; `match` is then empty.
    """

    table: str
    match: dict[str, int | tuple[int, int]]
    action: str
    parameters: dict[str, int] = field(default_factory=dict)
    priority: int = 0
    default: bool = False


class Replica(NamedTuple):
    """One copy of a packet that a group or session makes. port: where the copy leaves. instance:
    the number by which the P4 program tells copies apart (egress_rid)."""

    port: int
    instance: int = 1


@dataclass(frozen=True)
class CloneSession:
    """A clone session. replicas: the copies that are made of each packet cloned to the session.
    max_bytes: the length to which each copy is cut; 0 for no limit."""

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


@lru_cache(maxsize=1 << 15)
def ip_number(ip: str) -> int:
    return int(ipaddress.IPv4Address(ip))

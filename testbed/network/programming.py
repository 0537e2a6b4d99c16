"""Filling a switch's tables over P4Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from topologies import Topology


@dataclass(frozen=True)
class Job:
    """One tenant as the switch sees it.

    number: 0-65535, on the wire; hosts: names in order of rank; first_slot, slots: its own part of the pool.
    """

    number: int
    hosts: tuple[str, ...]
    first_slot: int
    slots: int


@dataclass(frozen=True)
class TableEntry:
    """table, action, parameter and field names as in P4Info; values are unsigned integers.

    match: field name -> value (exact) or (value, prefix length) (lpm).
    """

    table: str
    match: dict[str, int | tuple[int, int]]
    action: str
    parameters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entries:
    """What a switch is to be filled with. groups: multicast group id -> ports."""

    tables: tuple[TableEntry, ...]
    groups: dict[int, tuple[int, ...]]


def job_entries(topology: Topology, switch: str, jobs: Sequence[Job]) -> Entries:
    """Entries of p4/switchml.p4 on one switch: forwarding and flooding for all hosts, and the jobs.

    Raises ValueError naming the job for overlapping slots, an unknown host, or more jobs than the program has.
    """
    raise NotImplementedError

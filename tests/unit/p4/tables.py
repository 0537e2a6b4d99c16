"""Table entries of one switch, written once: into our switch, or as lines of a packet script."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from frames import ANOTHER_SWITCH, Receiver, worker

from p4native.common.object_names import full_name
from p4native.switch import Exact, Lpm, Pipeline

FLOOD_GROUP, NO_PARENT = 1, 511
COUNTERS = {
    "new": "contribution_new",
    "duplicate": "contribution_duplicate",
    "stale": "contribution_stale",
    "refused": "contribution_refused",
    "complete": "chunk_complete",
    "repeated": "result_repeated",
    "partial_repeated": "partial_repeated",
    "final_new": "final_new",
    "final_unneeded": "final_unneeded",
}
"""Of programs that sum in slots: what happened, and the P4 program's name for it."""


@dataclass(frozen=True)
class Entry:
    """Keys and the action's arguments by name, in the program's order; a key that is a pair is a
    value and the length of its prefix in bits. table and action: what their full names end in."""

    table: str
    key: Mapping[str, int | tuple[int, int]]
    action: str
    arguments: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Setup:
    """What a switch is given: ports of each multicast group, and entries. copies: of groups whose
    copies have numbers, (port, number) of each. registers: what they hold at first, by name, or
    what that ends in, and index."""

    groups: dict[int, Sequence[int]] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    copies: dict[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    registers: dict[tuple[str, int], int] = field(default_factory=dict)

    def __add__(self, other: Setup) -> Setup:
        return Setup(
            {**self.groups, **other.groups},
            [*self.entries, *other.entries],
            {**self.copies, **other.copies},
            {**self.registers, **other.registers},
        )


def write_entries(pipeline: Pipeline, setup: Setup) -> None:
    """Our switch gets the groups and the entries."""
    for group, ports in setup.groups.items():
        pipeline.replication.set_multicast_group(group, [(port, 0) for port in ports])
    for group, copies in setup.copies.items():
        pipeline.replication.set_multicast_group(group, list(copies))
    for (register, index), value in setup.registers.items():
        name = _ending(pipeline.program.registers, register)
        pipeline.registers.write(name, index, value)
    tables = pipeline.program.tables
    for entry in setup.entries:
        table = tables[_ending(tables, entry.table)]
        action = _ending([action.name for action in table.actions], entry.action)
        values = entry.key.values()
        key = [Exact(value) if isinstance(value, int) else Lpm(*value) for value in values]
        pipeline.tables.add(table.name, key, action, list(entry.arguments.values()))


def lines(setup: Setup) -> Iterator[str]:
    """The same as lines of a packet script; nodes count from 0."""
    unnumbered = {g: [(port, 0) for port in ports] for g, ports in setup.groups.items()}
    nodes = itertools.count()
    for group, copies in {**unnumbered, **setup.copies}.items():
        yield f"mc_mgrp_create {group}"
        for port, number in copies:
            yield f"mc_node_create {number} {port}"
            yield f"mc_node_associate {group} {next(nodes)}"
    for entry in setup.entries:
        key = " ".join(f"{name}:{_written(value)}" for name, value in entry.key.items())
        arguments = ", ".join(f"{name}:{value:#x}" for name, value in entry.arguments.items())
        yield f"add {entry.table} {key} {entry.action}({arguments})"
    for (register, index), value in setup.registers.items():
        yield f"register_write {register} {index} {value}"


def _written(value: int | tuple[int, int]) -> str:
    return f"{value:#x}" if isinstance(value, int) else f"{value[0]:#x}/{value[1]}"


def _ending(names: Iterable[str], end: str) -> str:
    return full_name(names, end, "object")


def number(part: bytes) -> int:
    """An address as the number that an entry has."""
    return int.from_bytes(part, "big")


def owner(port: int, address: bytes) -> Entry:
    """Whose address packets have to have that come in by a port."""
    return Entry(
        "sources", {"ingress_port": port}, "set_owner_address", {"address": number(address)}
    )


def neighbour(mac: bytes, port: int) -> Entry:
    """Where frames for a MAC address go."""
    return Entry("macs", {"hdr.ethernet.dst": number(mac)}, "forward", {"port": port})


def route(address: bytes, next_hop: bytes, port: int) -> Entry:
    """Where IPv4 packets for one address go, if they are sent to the switch's MAC address."""
    arguments = {"next_hop": number(next_hop), "port": port}
    return Entry("routes", {"hdr.ipv4.dst": (number(address), 32)}, "route", arguments)


def receiver(port: int, job: int, to: Receiver) -> Entry:
    """Whom the job's packets that leave by a port are for."""
    arguments = {"mac": number(to.mac), "address": number(to.address), "udp_port": to.udp_port}
    key = {"egress_port": port, "aggregation.job": job}
    return Entry("results", key, "to_worker", arguments)


@dataclass(frozen=True)
class Slots:
    """A job's place at a switch that sums in slots: the children's ports, the slots from the first
    on, the group that results go to; parent: the port that leads to it."""

    job: int
    index: int
    children: Sequence[int]
    first_slot: int
    slots: int
    group: int
    parent: int = NO_PARENT
    switches: frozenset[int] = frozenset()
    """Children that are switches themselves."""


def summing(place: Slots) -> Setup:
    """Groups and entries for one job of a program whose members contribute or conclude."""
    setup = Setup({place.group: place.children})
    everybody = (1 << len(place.children)) - 1
    where = {"first_slot": place.first_slot, "slots": place.slots, "group": place.group}

    def member(port: int, action: str, **arguments: int) -> None:
        key = {"ingress_port": port, "aggregation.job": place.job}
        setup.entries.append(Entry("members", key, action, arguments))

    for rank, port in enumerate(place.children):
        of_child = {"worker": 1 << rank, "all_workers": everybody}
        member(port, "contribute", job_index=place.index, **of_child, **where, parent=place.parent)
        to = ANOTHER_SWITCH if port in place.switches else worker(port, place.job)
        setup.entries.append(receiver(port, place.job, to))
    if place.parent != NO_PARENT:
        setup.entries.append(receiver(place.parent, place.job, ANOTHER_SWITCH))
        member(place.parent, "conclude", job_index=place.index, all_workers=everybody, **where)
    return setup

"""The commands that show the network without changing it: nodes, links, table, counters,
registers, slots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agglab.testbed.base.problems import quote
from agglab.testbed.cli.shell.refused import Refused, not_among
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.cli.shell.slots import slot_lines
from agglab.testbed.schema.kinds import rate
from agglab.testbed.systems.plan import TableEntry
from p4native.common.object_names import UnresolvedName, full_name

CELLS_MAX = 4096
"""The largest number of cells that one command reads."""
SHOWN_MAX = 32
"""The largest number of lines about cells, counters or entries of one switch."""
DECIMAL_MAX = 65_535
CELLS = re.compile(r"([A-Za-z_][\w.]*)(?:\[(\d+)(?:(?:\.\.|:)(\d+))?\])?")


def nodes(session: Session, words: Sequence[str]) -> None:
    """Prints the names of the hosts and switches."""
    session.say(f"hosts:    {' '.join(session.hosts)}")
    session.say(f"switches: {' '.join(session.switches)}")


def links(session: Session, words: Sequence[str]) -> None:
    """Prints a line for each direction of each link."""
    counts = {way.direction: way for way in session.backend.statistics().directions}
    down = {f.action.target for f in session.asked.values() if f.kind == "link_down"}
    for link in session.resolved.graph.links:
        session.say(f"{link.name}{', down' if link.name in down else ''}:")
        for name, sender, receiver, direction in link.directions():
            way = counts[name]
            limit = "no limit" if direction.rate_bps is None else rate().write(direction.rate_bps)
            ends = f"{sender.interface} -> {receiver.interface}"
            session.say(f"  {ends}: {limit}, {way.packets} frames, {way.lost} lost")


def table(session: Session, words: Sequence[str]) -> None:
    """Prints the entries of a switch's tables, or of one table."""
    for switch, rest in _of_switches(session, words):
        entries = session.backend.entries(switch)
        names = list(dict.fromkeys(entry.table for entry in entries.tables))
        if rest and rest[0] not in names:
            raise not_among(f"{switch} has no entries of a table", rest[0], names)
        shown = [_entry(each) for each in entries.tables if each.table in (rest or names)]
        _say_some(session, switch, shown, "entries")
        for group, replicas in {} if rest else entries.groups.items():
            ports = ", ".join(str(replica.port) for replica in replicas)
            session.say(f"{switch} multicast group {group}: ports {ports}")


def _entry(entry: TableEntry) -> str:
    match = " ".join(f"{name}={_value(value)}" for name, value in entry.match.items())
    given = ", ".join(f"{name}={_value(value)}" for name, value in entry.parameters.items())
    return f"{entry.table}: {match or 'default'} -> {entry.action}({given})"


def _value(value: int | tuple[int, int]) -> str:
    """Returns a value of a key or parameter; long ones, such as addresses, in hexadecimal."""
    if isinstance(value, tuple):
        return "/".join(_value(each) for each in value)
    return str(value) if value <= DECIMAL_MAX else f"{value:#x}"


def counters(session: Session, words: Sequence[str]) -> None:
    """Prints the counters that have counted something."""
    for switch, rest in _of_switches(session, words):
        arrays = session.prepared.programs[switch].description["counter_arrays"]
        names = [each["name"] for each in arrays]
        chosen = [_full(names, name, "counter", switch) for name in rest] or names
        shown = []
        for name in chosen:
            cells = session.backend.counters(switch, name) or {}
            short = name.rpartition(".")[2]
            shown += [
                f"{short}[{index}]: {packets} packets, {size} bytes"
                for index, (packets, size) in cells.items()
                if packets or size
            ]
        _say_some(session, switch, shown, "cells that have counted anything")


def registers(session: Session, words: Sequence[str]) -> None:
    """Prints cells of registers, such as `contributors[0..7]`; without a name, the registers that
    the program has."""
    for switch, rest in _of_switches(session, words):
        arrays = session.prepared.programs[switch].description["register_arrays"]
        sizes = {each["name"]: each["size"] for each in arrays}
        if not rest:
            shown = [f"{name.rpartition('.')[2]}[{size}]" for name, size in sizes.items()]
            session.say(f"{switch}: {' '.join(shown) or 'no registers'}")
        for text in rest:
            name, cells = _cells(text, sizes, switch)
            values = session.registers(switch, name, cells)
            at = f"{cells[0]}" if len(cells) == 1 else f"{cells[0]}..{cells[-1]}"
            short = name.rpartition(".")[2]
            session.say(f"{switch} {short}[{at}]: {' '.join(map(str, values))}")


def _cells(text: str, sizes: dict[str, int], switch: str) -> tuple[str, list[int]]:
    """Returns the full name and the cells of `name`, `name[3]` or `name[0..7]`."""
    match = CELLS.fullmatch(text)
    if match is None:
        raise Refused(f"{quote(text)} is no register: write NAME, NAME[3] or NAME[0..7]")
    name = _full(sizes, match[1], "register", switch)
    first = int(match[2] or 0)
    last = int(match[3] or match[2] or sizes[name] - 1)
    if not first <= last < sizes[name]:
        raise Refused(f"{match[1]} has the cells 0 to {sizes[name] - 1}, not {text}")
    if last - first >= CELLS_MAX:
        raise Refused(f"{text}: at most {CELLS_MAX} cells at a time, such as {name}[0..7]")
    return name, list(range(first, last + 1))


def slots(session: Session, words: Sequence[str]) -> None:
    """Draws the slots that somebody has used."""
    for switch, _ in _of_switches(session, words):
        for line in slot_lines(session, switch):
            session.say(line)


def _of_switches(session: Session, words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Returns the switches that a command is about, each with the words after the switch's name:
    the one that the first word names, or all."""
    if words and words[0] in session.switches:
        return [(words[0], list(words[1:]))]
    return [(switch, list(words)) for switch in session.switches]


def _full(names: Iterable[str], name: str, kind: str, switch: str) -> str:
    known = list(names)
    try:
        return full_name(known, name, kind)
    except UnresolvedName:
        last = sorted({each.rpartition(".")[2] for each in known})
        raise not_among(f"{switch} has no {kind}", name, last) from None


def _say_some(session: Session, switch: str, lines: Sequence[str], kind: str) -> None:
    if not lines:
        session.say(f"{switch}: no {kind}")
    for line in lines[:SHOWN_MAX]:
        session.say(f"{switch} {line}")
    if len(lines) > SHOWN_MAX:
        session.say(f"{switch}: and {len(lines) - SHOWN_MAX} more; name a switch and one of them")

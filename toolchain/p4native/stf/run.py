"""Runs one script on one switch: executes its commands in order, and then compares every packet,
port by port."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from p4native.stf.engine import Engine
from p4native.stf.frames import Expect, Packet, StfError
from p4native.stf.names import Binder, Match
from p4native.stf.script import (
    COMPARE,
    Add,
    AddIndirect,
    Check,
    Command,
    Direct,
    Group,
    Member,
    Pause,
    Remove,
    SetDefault,
    SetMeter,
)
from p4native.stf.show import differing_fields, side_by_side, spaced
from p4native.switch import PipelineError


@dataclass(frozen=True)
class Mismatch:
    """A packet of a port that differs from the expected one. number: its place among those of the
    port, from 0. expect: None if no packet was expected. frame: None if none came out."""

    port: int
    number: int
    expect: Expect | None
    frame: bytes | None


@dataclass
class Run:
    """One run of a script on a switch. failures: descriptions of what did not hold. mismatches:
    those of them that are about packets."""

    binder: Binder
    engine: Engine
    entries: dict[str, tuple[str, int]] = field(default_factory=dict)
    targets: dict[str, tuple[str, int]] = field(default_factory=dict)
    all_entries: list[tuple[str, int]] = field(default_factory=list)
    expected: dict[int, list[Expect]] = field(default_factory=dict)
    captured: dict[int, list[bytes]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    packets: int = 0

    def execute(self, commands: Iterable[Command]) -> list[str]:
        for command in commands:
            try:
                getattr(self, "_" + type(command).__name__.lower())(command)
            except StfError as error:
                raise StfError(str(error), error.line or command.line) from None
            except PipelineError as refused:
                raise StfError(str(refused), command.line) from None
        self._collect()
        for port in sorted(self.expected.keys() | self.captured.keys()):
            self._compare(port, self.expected.get(port, []), self.captured.get(port, []))
        return self.failures

    def _packet(self, c: Packet) -> None:
        self.packets += 1
        self.engine.send(c.port, c.data)

    def _expect(self, c: Expect) -> None:
        self.expected.setdefault(c.port, []).append(c)

    def _pause(self, c: Pause) -> None:
        if c.verb == "wait":
            self.engine.wait()
            return
        self._collect()
        for port, frames in sorted(self.captured.items()):
            wanted = self.expected.get(port, [])
            surplus = len(frames) - len(wanted)
            if surplus > 0 and not any(e.nibbles is None for e in wanted):
                self.failures.append(
                    f"{c.line}: no_packet: {surplus} more packet"
                    f"{'s' * (surplus > 1)} came out of port {port}"
                )

    def _add(self, c: Add) -> None:
        table, keys = self._match(c)
        action, args = self.binder.action(table, c.action, c.args, c.line)
        handle = self.engine.add(table["name"], keys, action, args, c.priority or 0)
        self._keep(c, table["name"], handle)

    def _addindirect(self, c: AddIndirect) -> None:
        table, keys = self._match(c)
        kind, number = self._target(c.target, c.line)
        priority = c.priority or 0
        handle = self.engine.add_indirect(table["name"], keys, kind == "group", number, priority)
        self._keep(c, table["name"], handle)

    def _match(self, c: Add | AddIndirect) -> tuple[dict[str, Any], list[Match]]:
        table = self.binder.table(c.table, c.line)
        keys = self.binder.matches(table, c.keys, c.line)
        if c.priority is None and any(k.kind in ("ternary", "range", "optional") for k in keys):
            raise StfError(f"an entry of {table['name']} needs a priority", c.line)
        return table, keys

    def _keep(self, c: Add | AddIndirect, table: str, handle: int) -> None:
        self.all_entries.append((table, handle))
        if c.handle:
            self.entries[c.handle] = self.all_entries[-1]

    def _member(self, c: Member) -> None:
        profile = self.binder.profile(c.profile, c.line)
        table = self.binder.profile_table(profile)
        chosen = self.binder.action(table, c.action, c.args, c.line)
        self.targets[c.name] = ("member", self.engine.add_member(profile, *chosen))

    def _group(self, c: Group) -> None:
        profile = self.binder.profile(c.profile, c.line)
        members = [self._target(name, c.line)[1] for name in c.members]
        self.targets[c.name] = ("group", self.engine.add_group(profile, members))

    def _target(self, name: str, line: int) -> tuple[str, int]:
        if name not in self.targets:
            raise StfError(f"no member or group was named `{name}`", line)
        return self.targets[name]

    def _setdefault(self, c: SetDefault) -> None:
        table = self.binder.table(c.table, c.line)
        self.engine.set_default(table["name"], *self.binder.action(table, c.action, c.args, c.line))

    def _remove(self, c: Remove) -> None:
        if c.handle.lower() == "all":
            doomed = list(self.all_entries)
        elif c.handle in self.entries:
            doomed = [self.entries[c.handle]]
        else:
            raise StfError(f"no entry was named `{c.handle}`", c.line)
        for entry in doomed:
            self.engine.remove(*entry)
            self.all_entries.remove(entry)

    def _direct(self, c: Direct) -> None:
        kind = c.verb.split("_")[0]
        name = self.binder.array(kind, c.name, c.line) if c.name else ""
        answer = self.engine.direct(c.verb, name, c.numbers)
        if answer:
            self.said.append(f"{c.line}: {answer}")

    def _setmeter(self, c: SetMeter) -> None:
        name = self.binder.array("meter", c.name, c.line)
        table = self.binder.metered_table(name)
        if table or isinstance(c.index, str):
            if not table or c.index not in self.entries:
                raise StfError(
                    f"{name} is not the direct meter of a table with an entry `{c.index}`", c.line
                )
            handle = self.entries[c.index][1]
            self.engine.set_direct_meter(table, name, handle, c.rates)
            return
        cells = range(self.binder.size("meter", name)) if c.index is None else [c.index]
        for index in cells:
            self.engine.set_meter(name, index, c.rates)

    def _check(self, c: Check) -> None:
        self._collect()
        name = self.binder.array(c.kind, c.name, c.line)
        if c.kind == "register":
            got = self.engine.register(name, c.index)
        else:
            got = self.engine.counter(name, c.index)[c.unit == "bytes"]
        if not COMPARE[c.op](got, c.value):
            self.failures.append(
                f"{c.line}: {name}[{c.index}] {c.unit}: expected {c.op} {c.value}, "
                f"got {got} ({got:#x})"
            )

    def _collect(self) -> None:
        for port, frame in self.engine.received():
            self.captured.setdefault(port, []).append(frame)

    def _compare(self, port: int, expected: list[Expect], frames: list[bytes]) -> None:
        if any(e.nibbles is None for e in expected):
            if not frames:
                self.mismatches.append(Mismatch(port, 0, expected[0], None))
                self.failures.append(f"{expected[0].line}: port {port}: no packet came out")
            return
        for number, (expect, frame) in enumerate(zip_longest(expected, frames)):
            if expect is None or frame is None or not expect.matches(frame):
                self.mismatches.append(Mismatch(port, number, expect, frame))
                self.failures.append(self._described(self.mismatches[-1], len(expected)))

    def _described(self, wrong: Mismatch, count: int) -> str:
        """Returns the description of a mismatch. count: how many packets its port expects."""
        port, expect, frame = wrong.port, wrong.expect, wrong.frame
        if expect is None:
            actual = spaced((frame or b"").hex())
            return f"0: port {port}: a packet nobody expected\n  actual   {actual}"
        if frame is None:
            return (
                f"{expect.line}: port {port}: this packet never came out\n"
                f"  expected {spaced(expect.nibbles or '')}"
            )
        where = f"{expect.line}: port {port}, packet {wrong.number + 1} of {count} differs"
        fields = differing_fields(self.binder, expect, frame)
        return "\n".join([where, *side_by_side(expect, frame), *fields])

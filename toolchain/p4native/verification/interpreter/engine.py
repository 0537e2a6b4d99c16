"""Makes the interpreter usable as a switch for packet tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from p4native.compiler import ast
from p4native.compiler.typed import Instance
from p4native.stf.frames import StfError
from p4native.stf.names import Match
from p4native.verification.interpreter import Machine
from p4native.verification.interpreter.tables import RANKED, Entry


class Specification:
    """An Engine that uses the interpreter's Machine. It lacks meters, action profiles and the
    writing of cells. Names are full names."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._nodes: list[tuple[int, tuple[int, ...]]] = []
        self._out: list[tuple[int, bytes]] = []
        self._entries: list[Entry] = []
        main = machine.context.program.main
        assert main is not None
        self._tables = {
            control.name_of(each): (control, each)
            for control in _controls(main)
            for each in _declared(control)
            if isinstance(each, ast.TableDeclaration)
        }

    def send(self, port: int, frame: bytes) -> None:
        self._out += self._machine.process(port, frame)

    def received(self) -> list[tuple[int, bytes]]:
        out, self._out = self._out, []
        return out

    def wait(self) -> None:
        """Returns at once, since processing takes no time here."""

    def add(
        self, table: str, keys: list[Match], action: str, args: list[int], priority: int
    ) -> int:
        declaration = self._tables[table][1]
        kinds = {key.match_kind.name for key in declaration.keys}
        prefixes = [key.operand for key in keys if key.kind == "lpm"]
        rank = priority if RANKED & kinds else sum(prefixes)
        widths = [self._machine.expressions.width(key.expression) for key in declaration.keys]
        matches = [_predicate(key, width) for key, width in zip(keys, widths, strict=True)]
        entry = self._entry(table, matches, rank, action, args)
        self._machine.tables.installed.setdefault(table, []).append(entry)
        self._entries.append(entry)
        return len(self._entries) - 1

    def _entry(
        self,
        table: str,
        matches: Sequence[Callable[[Any], bool]],
        rank: int,
        action: str,
        args: list[int],
    ) -> Entry:
        program = self._machine.context.program
        reference = self._action(*self._tables[table], action)
        chosen = program.decl_of[reference]
        assert isinstance(chosen, ast.ActionDeclaration)
        data = [p for p in chosen.parameters if not p.direction]
        values: dict[ast.Declaration, Any] = {}
        values.update(zip(data, self._typed(data, args), strict=True))
        return Entry(matches, rank, chosen, program.actions[reference], values)

    def set_default(self, table: str, action: str, args: list[int]) -> None:
        self._machine.tables.defaults[table] = self._entry(table, (), 0, action, args)

    def remove(self, table: str, handle: int) -> None:
        self._machine.tables.installed[table].remove(self._entries[handle])

    def _action(self, control: Instance, table: ast.TableDeclaration, name: str) -> ast.ActionRef:
        for reference in table.actions:
            action = self._machine.context.program.decl_of[reference]
            assert isinstance(action, ast.ActionDeclaration)
            if name in (control.name_of(action), action.name):
                return reference
        raise StfError(f"table {table.name} has no action {name}")

    def _typed(self, parameters: list[ast.Parameter], args: list[int]) -> Iterator[int]:
        for parameter, value in zip(parameters, args, strict=True):
            yield self._machine.expressions.as_type(
                value, self._machine.context.program.type_of_declaration[parameter]
            )

    def direct(self, verb: str, name: str, numbers: tuple[int, ...]) -> str:
        first, *rest = numbers
        machine = self._machine
        if verb == "mc_mgrp_create":
            machine.groups[first] = []
        elif verb == "mc_node_create":
            self._nodes.append((first, tuple(rest)))
        elif verb == "mc_node_associate":
            number, ports = self._nodes[rest[0]]
            machine.groups[first] = [*machine.groups[first], *((port, number) for port in ports)]
        elif verb == "mirroring_add":
            machine.sessions[first] = [(rest[0], 0)]
        elif verb == "mirroring_add_mc":
            machine.sessions[first] = machine.groups[rest[0]]
        else:
            raise _unknown(verb)
        return ""

    def counter(self, name: str, index: int) -> tuple[int, int]:
        cells = self._machine.externs.counters.get(name)
        packets, size_bytes = cells[index] if cells else (0, 0)
        return packets, size_bytes

    def register(self, name: str, index: int) -> int:
        cells = self._machine.externs.registers.get(name)
        return cells[index] if cells else 0

    def add_indirect(self, *_: Any) -> int:
        raise _unknown("for an entry of an action profile")

    def add_member(self, *_: Any) -> int:
        raise _unknown("for a member of an action profile")

    def add_group(self, *_: Any) -> int:
        raise _unknown("for a group of an action profile")

    def set_meter(self, *_: Any) -> None:
        raise _unknown("for a meter's rates")

    def set_direct_meter(self, *_: Any) -> None:
        raise _unknown("for a meter's rates")


def _unknown(what: str) -> StfError:
    return StfError(f"the command {what}")


def _controls(instance: Instance) -> Iterator[Instance]:
    """Yields the controls of a program, each after the one that contains it."""
    below = [*instance.children.values()]
    below += [each for each in instance.arguments.values() if isinstance(each, Instance)]
    if isinstance(instance.declaration, ast.ControlDeclaration):
        yield instance
    for each in dict.fromkeys(below):
        yield from _controls(each)


def _declared(control: Instance) -> tuple[ast.Declaration, ...]:
    assert isinstance(control.declaration, ast.ControlDeclaration)
    return control.declaration.locals


def _predicate(match: Match, width: int) -> Callable[[Any], bool]:
    """Returns a function that tests whether a value, as an unsigned number, matches a key of an
    entry."""
    value, operand = match.value, match.operand

    def hits(key: int) -> bool:
        number = int(key) % (1 << width)
        if match.kind == "lpm":
            return number >> (width - operand) == value >> (width - operand)
        if match.kind in ("ternary", "optional"):
            return number & operand == value & operand
        if match.kind == "range":
            return value <= number <= operand
        return number == value

    return hits

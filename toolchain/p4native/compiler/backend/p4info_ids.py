"""Chooses the identifiers and aliases of P4Info. The highest byte of an identifier is P4Runtime's
prefix for the kind of object. The other bytes are a hash of the object's name.

The hash is Jenkins's one-at-a-time. Names with the same hash take the next free numbers, in the
order of the names. The numbers are therefore those that p4c gives to the same program.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from p4native.compiler import ast
from p4native.compiler.backend.storage import Unsupported

# P4Ids.Prefix of p4info.proto.
PREFIXES = {
    "action": 0x01,
    "table": 0x02,
    "value_set": 0x03,
    "controller_header": 0x04,
    "action_profile": 0x11,
    "counter": 0x12,
    "direct_counter": 0x13,
    "meter": 0x14,
    "direct_meter": 0x15,
    "register": 0x16,
    "digest": 0x17,
}
LOW_BITS = 0xFFFFFF
WORD = 0xFFFFFFFF


def one_at_a_time(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value + byte) & WORD
        value = (value + (value << 10)) & WORD
        value ^= value >> 6
    value = (value + (value << 3)) & WORD
    value ^= value >> 11
    return (value + (value << 15)) & WORD


@dataclass
class Symbols:
    """The names of the objects of a P4Info, by kind of object. The names are numbered when all of
    them are known."""

    names: dict[str, dict[str, int | None]] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)
    _suffixes: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, name: str, declaration: ast.Declaration | None) -> None:
        symbols = self.names.setdefault(kind, {})
        if name not in symbols:
            symbols[name] = self._written(kind, declaration)

    def _written(self, kind: str, declaration: ast.Declaration | None) -> int | None:
        """Returns the number that `@id(n)` asks for, with the kind's prefix, or None without
        `@id`."""
        number = written_id(declaration)
        if number is None or declaration is None:
            return None
        prefix = PREFIXES[kind] << 24
        if number & ~LOW_BITS not in (0, prefix):
            raise Unsupported(declaration.position, f"@id({number}) with another kind's prefix")
        number |= prefix
        if number in self._taken:
            raise Unsupported(declaration.position, f"@id({number}) used twice")
        self._taken.add(number)
        return number

    def number_all(self) -> None:
        for kind in sorted(self.names, key=lambda k: PREFIXES[k]):
            for name in sorted(n for n, number in self.names[kind].items() if number is None):
                self.names[kind][name] = self._free(PREFIXES[kind] << 24, one_at_a_time(name))
        every = {name for symbols in self.names.values() for name in symbols}
        for name in every:
            parts = name.split(".")
            self._suffixes.update(".".join(parts[i:]) for i in range(len(parts)))

    def _free(self, prefix: int, start: int) -> int:
        number = prefix | start & LOW_BITS
        while number in self._taken:
            start += 1
            number = prefix | start & LOW_BITS
        self._taken.add(number)
        return number

    def number(self, kind: str, name: str) -> int:
        number = self.names[kind][name]
        assert number is not None
        return number

    def alias(self, name: str) -> str:
        """Returns the shortest suffix of the name that consists of whole components and is not also
        a suffix of another object's name."""
        parts = name.split(".")
        for start in reversed(range(len(parts))):
            suffix = ".".join(parts[start:])
            if self._suffixes[suffix] == 1:
                return suffix
        return name


def written_id(declaration: ast.Declaration | ast.KeyElement | None) -> int | None:
    for annotation in declaration.annotations if declaration is not None else ():
        if annotation.name == "id" and annotation.arguments:
            given = annotation.arguments[0]
            if isinstance(given, ast.IntLiteral):
                return given.value
    return None


def member_numbers(written: list[int | None]) -> list[int]:
    """Returns the numbers of keys or parameters. A number is the one given in `@id`. The others
    count from 1, and skip numbers that are taken."""
    taken = {number for number in written if number is not None}
    numbers: list[int] = []
    following = 1
    for number in written:
        if number is None:
            while following in taken:
                following += 1
            number = following
            taken.add(number)
        else:
            following += 1
        numbers.append(number)
    return numbers

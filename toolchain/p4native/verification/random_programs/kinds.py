"""The types of random programs, the names in scope at a point of a program, and the constants that
are drawn often."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Bits:
    """The type bit<width> or int<width>."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True)
class Bool:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class Choice:
    """An enum or `error`. If `width` is given, it is a serializable enum."""

    name: str
    members: tuple[str, ...]
    width: int | None = None

    def __str__(self) -> str:
        return self.name


Scalar = Bits | Bool | Choice


@dataclass(frozen=True)
class Struct:
    """A struct or header type. members: its fields in order, including nested structs."""

    name: str
    members: tuple[tuple[str, Scalar | Struct], ...]
    header: bool = False

    def __str__(self) -> str:
        return self.name

    def leaves(self, prefix: str) -> Iterator[tuple[str, Scalar]]:
        """Yields (path, type) of every scalar in the struct."""
        for name, kind in self.members:
            if isinstance(kind, Struct):
                yield from kind.leaves(f"{prefix}.{name}")
            else:
                yield f"{prefix}.{name}", kind

    def declaration(self) -> list[str]:
        word = "header" if self.header else "struct"
        return [f"{word} {self.name} {{", *(f"{k} {n};" for n, k in self.members), "}"]


Kind = Scalar | Struct
BOOL = Bool()
ERROR = Choice("error", ("NoError", "PacketTooShort", "StackOutOfBounds", "Odd", "Even"))
COLOUR = Choice("colour_t", ("RED", "GREEN", "BLUE"))
CODE = Choice("code_t", ("ONE", "TWO", "SIX"), 8)
DECLARED = """error { Odd, Even }
enum colour_t { RED, GREEN, BLUE }
enum bit<8> code_t { ONE = 1, TWO = 2, SIX = 6 }"""


def size(kind: Kind) -> int:
    """Returns the size in bits of a type that is allowed in a header."""
    if isinstance(kind, Struct):
        return sum(size(k) for _, k in kind.members)
    if isinstance(kind, Bool):
        return 1
    assert kind.width is not None
    return kind.width


@dataclass(frozen=True)
class Variable:
    """A name or expression that has a value. text: its form in a program."""

    text: str
    kind: Kind
    writable: bool = True


@dataclass(frozen=True)
class Function:
    """A function that an expression may call. parameters: (direction, type)."""

    name: str
    parameters: tuple[tuple[str, Kind], ...]
    result: Scalar


@dataclass(frozen=True)
class Scope:
    """The names in scope at a point of a program. plain: whether statements there must not change
    which headers are valid."""

    variables: tuple[Variable, ...]
    headers: tuple[Variable, ...] = ()
    functions: tuple[Function, ...] = ()
    plain: bool = False

    def adding(self, new: Iterable[Variable]) -> Scope:
        return replace(self, variables=(*self.variables, *new))

    def of(self, kind: Kind, writable: bool = False) -> list[str]:
        """Returns the names whose type is exactly this one."""
        return [v.text for v in self.variables if v.kind == kind and (v.writable or not writable)]

    def scalars(self, writable: bool = False) -> list[Variable]:
        return [
            v
            for v in self.variables
            if not isinstance(v.kind, Struct) and (v.writable or not writable)
        ]

    def numbers(self, writable: bool = False, unsigned: bool = False) -> list[tuple[str, Bits]]:
        return [
            (v.text, v.kind)
            for v in self.variables
            if isinstance(v.kind, Bits)
            and (v.writable or not writable)
            and not (unsigned and v.kind.signed)
        ]


@dataclass
class Source:
    """The random numbers and fresh names from which one program is drawn."""

    random: random.Random
    counter: int = 0
    pool: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pool = [0, 1, 2, 3, *(self.random.getrandbits(8) for _ in range(3))]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def number(self, width: int) -> int:
        """Draws a value of that many bits: a constant that recurs in the program, an extreme value,
        or any value."""
        which = self.random.random()
        if which < 0.6:
            value = self.random.choice(self.pool)
        elif which < 0.8:
            value = self.random.choice([-1, 1 << (width - 1), (1 << (width - 1)) - 1])
        else:
            value = self.random.getrandbits(width)
        return value % (1 << width)

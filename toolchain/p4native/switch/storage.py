"""The classes that describe a program's storage: fields of headers, headers, stacks, unions and
registers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A field of a header type. bits: its width, or the largest width of a variable field
    (varbit)."""

    name: str
    index: int
    bits: int
    signed: bool = False
    saturating: bool = False
    variable: bool = False

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    @property
    def wide(self) -> bool:
        """Whether the field is kept as bytes and not as an integer: it is wider than a machine word
        or has a variable width."""
        return self.bits > 64 or self.variable


@dataclass
class HeaderType:
    """The layout of a header. At most one field has a variable width."""

    name: str
    index: int
    fields: tuple[Field, ...]
    max_bytes: int = 0

    @property
    def variable(self) -> Field | None:
        return next((f for f in self.fields if f.variable), None)

    @property
    def fixed_bits(self) -> int:
        return sum(f.bits for f in self.fields if not f.variable)

    @property
    def max_bits(self) -> int:
        return sum(f.bits for f in self.fields)

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)


@dataclass(eq=False)
class Header:
    """A header instance. If the header is an element of a stack or a member of a union, it knows
    its position in that stack or union."""

    name: str
    index: int
    id: int
    type: HeaderType
    metadata: bool
    stack: Stack | None = None
    stack_index: int = 0
    union: Union | None = None
    member: int = 0


@dataclass(eq=False)
class Stack:
    """A header stack."""

    name: str
    index: int
    type: HeaderType
    headers: tuple[Header, ...]


@dataclass(eq=False)
class Union:
    """A union of headers. If the union is an element of a union stack, it knows its position in
    that stack."""

    name: str
    index: int
    id: int
    member_names: tuple[str, ...]
    headers: tuple[Header, ...]
    stack: UnionStack | None = None
    stack_index: int = 0


@dataclass(eq=False)
class UnionStack:
    """A stack of header unions."""

    name: str
    index: int
    unions: tuple[Union, ...]


@dataclass(frozen=True)
class Register:
    """An array of `size` registers of `bits` bits."""

    name: str
    index: int
    id: int
    size: int
    bits: int

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

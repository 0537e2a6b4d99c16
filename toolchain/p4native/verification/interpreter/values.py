"""The values of a P4 program as Python objects, and the operations that the language defines for
all of them.

Values of bit, int and serializable enums are whole numbers within their range, and values of bool
are bools. Members of enums and of `error` are their declarations. Tuples are lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p4native.compiler import types


class UnknownConstruct(Exception):
    """Raised for a construct that the interpreter does not know. The message names the
    construct."""


@dataclass
class Record:
    """The value of a struct."""

    type: types.StructLike
    fields: dict[str, Any]


@dataclass
class Header:
    """The value of a header. union: the union of which it is a member, if any. At most one member
    of a union is valid."""

    type: types.Header
    fields: dict[str, Any]
    valid: bool = False
    union: Union | None = field(default=None, repr=False, compare=False)

    def set_valid(self) -> None:
        """Makes the header valid. If it is a member of a union, the other members become
        invalid."""
        if self.union is not None:
            for other in self.union.members.values():
                other.valid = False
        self.valid = True


@dataclass
class Union:
    """The value of a header union."""

    type: types.HeaderUnion
    members: dict[str, Header]


@dataclass
class Stack:
    """The value of a header stack. next: the index of the element that `next` means."""

    type: types.Stack
    elements: list[Any]
    next: int = 0


@dataclass(frozen=True)
class VariableBits:
    """The value of a varbit, together with its number of bits."""

    bits: int = 0
    value: int = 0


COMPOUND = (Record, Header, Union, Stack)
"""The values with parts that can be assigned to."""


def wrap(value: int, bits: types.Bits) -> int:
    """Returns the number wrapped around to the range of its type."""
    value %= 1 << bits.width
    is_negative = bits.signed and value >> (bits.width - 1)
    return value - (1 << bits.width) if is_negative else value


def saturate(value: int, bits: types.Bits) -> int:
    """Returns the number itself or, outside the type's range, the nearest end of the range."""
    low = -(1 << (bits.width - 1)) if bits.signed else 0
    return max(low, min(value, low + (1 << bits.width) - 1))


def scalar(kind: types.Type) -> types.Type:
    """Returns the underlying type of a type made with `type` or of a serializable enum. Returns any
    other type unchanged."""
    while isinstance(kind, (types.NewType, types.SerializableEnum)):
        kind = kind.underlying
    return kind


def default(kind: types.Type, no_error: Any = None) -> Any:
    """Returns the initial value of a variable without initializer: zeros, false and invalid
    headers, as v1model gives to metadata. For other variables the language leaves the value
    undefined, so no result may depend on it."""
    kind = scalar(kind)
    if isinstance(kind, (types.Bits, types.Integer)):
        return 0
    if isinstance(kind, types.Boolean):
        return False
    if isinstance(kind, types.Varbit):
        return VariableBits()
    if isinstance(kind, types.Enum):
        return kind.declaration.members[0]
    if isinstance(kind, types.Error):
        return no_error
    if isinstance(kind, types.Struct):
        return Record(kind, {f.name: default(f.type, no_error) for f in kind.fields})
    if isinstance(kind, types.Header):
        return Header(kind, {f.name: default(f.type, no_error) for f in kind.fields})
    if isinstance(kind, types.HeaderUnion):
        return _union(kind, {f.name: default(f.type, no_error) for f in kind.fields})
    if isinstance(kind, types.Stack):
        return Stack(kind, [default(kind.element, no_error) for _ in range(kind.size)])
    if isinstance(kind, types.Tuple):
        return [default(each, no_error) for each in kind.elements]
    raise UnknownConstruct(f"a variable of type {kind}")


def _union(kind: types.HeaderUnion, members: dict[str, Header]) -> Union:
    union = Union(kind, members)
    for member in members.values():
        member.union = union
    return union


def copy(value: Any) -> Any:
    """Returns a copy of the value, which later changes of the original do not affect."""
    if isinstance(value, Record):
        return Record(value.type, {name: copy(each) for name, each in value.fields.items()})
    if isinstance(value, Header):
        fields = {name: copy(each) for name, each in value.fields.items()}
        return Header(value.type, fields, value.valid)
    if isinstance(value, Union):
        return _union(value.type, {name: copy(each) for name, each in value.members.items()})
    if isinstance(value, Stack):
        return Stack(value.type, [copy(each) for each in value.elements], value.next)
    if isinstance(value, list):
        return [copy(each) for each in value]
    return value


def overwrite(target: Any, source: Any) -> None:
    """Copies the contents of one struct, header, union or stack into another. The objects inside
    the target remain the same, since places that were evaluated before may refer to them."""
    if isinstance(target, Union):
        for name, member in target.members.items():
            _overwrite_fields(member.fields, source.members[name].fields)
            member.valid = source.members[name].valid
    elif isinstance(target, Stack):
        for element, new in zip(target.elements, source.elements, strict=True):
            overwrite(element, new)
    else:
        _overwrite_fields(target.fields, source.fields)
    if isinstance(target, Header):
        if source.valid:
            target.set_valid()
        target.valid = source.valid


def _overwrite_fields(target: dict[str, Any], source: dict[str, Any]) -> None:
    for name, new in source.items():
        if isinstance(new, COMPOUND):
            overwrite(target[name], new)
        else:
            target[name] = copy(new)


def equal(left: Any, right: Any) -> bool:
    """Returns the result of `==`. Headers are equal if both are invalid, or if both are valid with
    equal fields (P4_16 section 8.17)."""
    if isinstance(left, Header):
        if not (left.valid and right.valid):
            return left.valid == right.valid
        return all(equal(left.fields[name], right.fields[name]) for name in left.fields)
    if isinstance(left, Record):
        return all(equal(left.fields[name], right.fields[name]) for name in left.fields)
    if isinstance(left, Union):
        return all(equal(left.members[name], right.members[name]) for name in left.members)
    if isinstance(left, Stack):
        return all(map(equal, left.elements, right.elements))
    if isinstance(left, list):
        return all(map(equal, left, right))
    return bool(left == right)


def to_bits(value: Any, kind: types.Type) -> tuple[int, int]:
    """Returns the number of bits of a value and the bits as an unsigned number, as they are in a
    packet. The first field has the most significant bits."""
    kind = scalar(kind)
    if isinstance(kind, types.Bits):
        return kind.width, value % (1 << kind.width)
    if isinstance(kind, types.Boolean):
        return 1, int(value)
    if isinstance(kind, types.Varbit):
        return value.bits, value.value
    if isinstance(kind, (types.Struct, types.Header)):
        parts = [(value.fields[f.name], f.type) for f in kind.fields]
    elif isinstance(kind, types.Tuple):
        parts = list(zip(value, kind.elements, strict=True))
    else:
        raise UnknownConstruct(f"a value of type {kind} in a packet")
    bits = number = 0
    for part, part_kind in parts:
        more, below = to_bits(part, part_kind)
        bits, number = bits + more, number << more | below
    return bits, number


def from_bits(kind: types.Type, bits: int, number: int) -> tuple[Any, int]:
    """Reads a value of a type without varbit from the lowest `bits` bits of `number`, beginning
    with the highest of these. Returns (value, number of bits that remain)."""
    kind = scalar(kind)
    if isinstance(kind, (types.Struct, types.Header)):
        fields = {}
        for each in kind.fields:
            fields[each.name], bits = from_bits(each.type, bits, number)
        if isinstance(kind, types.Header):
            return Header(kind, fields, valid=True), bits
        return Record(kind, fields), bits
    if isinstance(kind, types.Boolean):
        return bool(number >> (bits - 1) & 1), bits - 1
    if not isinstance(kind, types.Bits):
        raise UnknownConstruct(f"a field of type {kind}")
    bits -= kind.width
    return wrap(number >> bits, kind), bits

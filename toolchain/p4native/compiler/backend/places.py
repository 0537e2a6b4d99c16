"""The classes of places. A place is where BMv2 keeps a P4 value: a field, header, stack or union,
or a struct made of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from p4native.compiler import types
from p4native.compiler.backend import ir
from p4native.compiler.backend.control_names import given_name

ENUM_BITS = 32
ERROR_BITS = 32


def plain(subject: types.Type) -> types.Type:
    """Returns the type in which BMv2 holds a value of `subject`. Errors and enums without an
    underlying type are held as plain numbers."""
    while isinstance(subject, types.NewType):
        subject = subject.underlying
    if isinstance(subject, types.SerializableEnum):
        return plain(subject.underlying)
    if isinstance(subject, types.Enum):
        return types.Bits(ENUM_BITS)
    if isinstance(subject, types.Error):
        return types.Bits(ERROR_BITS)
    return subject


def is_scalar(subject: types.Type) -> bool:
    return isinstance(plain(subject), (types.Bits, types.Boolean, types.Integer))


def scalar_width(subject: types.Type) -> int:
    """Returns a scalar type's width in bits, 0 for `int` of arbitrary precision."""
    shape = plain(subject)
    return shape.width if isinstance(shape, types.Bits) else int(isinstance(shape, types.Boolean))


def is_signed(subject: types.Type) -> bool:
    shape = plain(subject)
    return isinstance(shape, types.Bits) and shape.signed


def members_of(subject: types.Type) -> tuple[tuple[str, types.Type], ...]:
    """Returns (name, type) of a struct's, header's, union's, tuple's or array's members."""
    if isinstance(subject, (types.StructLike, types.StructLiteral)):
        return tuple((f.name, f.type) for f in subject.fields)
    if isinstance(subject, types.Stack):
        return tuple((str(i), subject.element) for i in range(subject.size))
    assert isinstance(subject, types.Tuple), subject
    return tuple((str(i), t) for i, t in enumerate(subject.elements))


def listed_members(subject: types.Type, count: int) -> tuple[tuple[str, types.Type], ...]:
    """Returns the same as members_of. Also accepts a list type, and then takes `count` elements,
    because the type does not say how many there are."""
    if isinstance(subject, types.List):
        return tuple((str(index), subject.element) for index in range(count))
    return members_of(plain(subject))


@dataclass
class Place:
    type: types.Type


@dataclass
class Scalar(Place):
    """The place of a number or boolean that can be assigned to. A boolean is one bit wide."""

    ref: ir.Expr


@dataclass
class Value(Place):
    """The place of a value that cannot be assigned to. The value is a number or a boolean
    expression."""

    expr: ir.Expr


@dataclass
class SlicePlace(Place):
    """Bits `high` to `low` of the place `base`. Bit 0 is the lowest one."""

    base: Place
    high: int
    low: int


@dataclass
class MovingSlicePlace(Place):
    """Bits of the place `base` from bit `start` upwards. The value of `start` is known only at run
    time."""

    base: Place
    start: ir.Expr


@dataclass
class SelectedPlace(Place):
    """The one of several alternatives that an index chooses at run time. The index is a field. An
    index beyond the last alternative chooses nothing."""

    index: ir.Expr
    alternatives: list[Place]

    def member(self, name: str, shape: types.Type) -> SelectedPlace:
        return SelectedPlace(shape, self.index, [member_of(a, name) for a in self.alternatives])


@dataclass
class VarbitPlace(Place):
    ref: ir.FieldRef


@dataclass
class StructPlace(Place):
    """A struct, tuple or array, with its members in order. Members of tuples and arrays are named
    by their positions."""

    members: dict[str, Place] = field(default_factory=dict)


@dataclass
class WithFields(Place, ABC):
    """A header whose fields can be read one by one."""

    def member(self, name: str) -> Place:
        shape = self.type
        assert isinstance(shape, types.Header)
        found = shape.field(name)
        assert found is not None, name
        return self._part((name,), found.type)

    def _part(self, path: tuple[str, ...], shape: types.Type) -> Place:
        held = plain(shape)
        if isinstance(held, (types.Struct, types.Tuple, types.Stack)):
            members = {n: self._part((*path, n), t) for n, t in members_of(held)}
            return StructPlace(shape, members)
        if isinstance(held, types.Varbit):
            return self._variable(".".join(path), shape, held.width)
        return Scalar(shape, self._reference(".".join(path), shape))

    @abstractmethod
    def _reference(self, field_name: str, shape: types.Type) -> ir.Expr:
        """Returns the scalar field of that name."""

    @abstractmethod
    def _variable(self, field_name: str, shape: types.Type, width: int) -> Place:
        """Returns the varbit field of that name."""

    def fields(self) -> list[Place]:
        return [self.member(name) for name, _ in members_of(self.type)]


@dataclass
class HeaderPlace(WithFields):
    """A header: an instance by its name, or an element of a stack that an expression finds at run
    time."""

    expr: ir.Expr
    stack: StackPlace | None = None

    @property
    def name(self) -> str | None:
        return self.expr.name if isinstance(self.expr, ir.ObjectRef) else None

    def _reference(self, field_name: str, shape: types.Type) -> ir.Expr:
        width, signed = scalar_width(shape), is_signed(shape)
        if self.name is not None:
            return ir.FieldRef(self.name, field_name, width, signed)
        assert isinstance(self.type, types.Header)
        names = [name for name, _ in leaves(self.type)]
        return ir.Access("access_field", self.expr, names.index(field_name), width, signed)

    def _variable(self, field_name: str, shape: types.Type, width: int) -> Place:
        if self.name is None:
            return Unreadable(shape)
        return VarbitPlace(shape, ir.FieldRef(self.name, field_name, width))


@dataclass
class LastHeader(WithFields):
    """`stack.last` in a parser. Its fields are read through the stack."""

    stack: StackPlace

    def _reference(self, field_name: str, shape: types.Type) -> ir.Expr:
        return ir.LastField(self.stack.name, field_name, scalar_width(shape), is_signed(shape))

    def _variable(self, field_name: str, shape: types.Type, width: int) -> Place:
        return Unreadable(shape)


@dataclass
class LastUnionMember(WithFields):
    """`stack.last.member` of a stack of unions. Its fields can only be keys of a select."""

    stack: StackPlace
    member_name: str

    def _reference(self, field_name: str, shape: types.Type) -> ir.Expr:
        width = scalar_width(shape)
        return ir.UnionLastField(self.stack.name, self.member_name, field_name, width)

    def _variable(self, field_name: str, shape: types.Type, width: int) -> Place:
        return Unreadable(shape)


@dataclass
class Unreadable(Place):
    """A place that BMv2 has no way to name, such as a variable field of a header found at run
    time."""


@dataclass
class NextHeader(Place):
    """`stack.next` in a parser, which can only be the target of an extract."""

    stack: StackPlace


@dataclass
class NextUnionMember(Place):
    """`stack.next.member` of a stack of unions in a parser."""

    stack: StackPlace
    member: str


@dataclass
class InvalidPlace(Place):
    """`{#}`: an invalid header or union."""


@dataclass
class StackPlace(Place):
    name: str
    elements: list[Place] = field(default_factory=list)

    @property
    def of_unions(self) -> bool:
        assert isinstance(self.type, types.Stack)
        return isinstance(self.type.element, types.HeaderUnion)

    @property
    def expr(self) -> ir.ObjectRef:
        return ir.ObjectRef("header_union_stack" if self.of_unions else "header_stack", self.name)


@dataclass
class UnionPlace(Place):
    """A union with its members: an instance by its name, or one that an expression finds at run
    time."""

    expr: ir.Expr
    members: dict[str, Place] = field(default_factory=dict)


def default_place(shape: types.Type) -> Place:
    """Returns the value for which `...` stands (section 7.3): zero, false, an enum's first member
    or an invalid header."""
    actual = plain(shape)
    if isinstance(actual, types.Boolean):
        return Value(shape, ir.BoolConstant(False))
    if is_scalar(shape):
        return Value(shape, ir.Const(0, scalar_width(shape)))
    if isinstance(actual, (types.Header, types.HeaderUnion)):
        return InvalidPlace(shape)
    return StructPlace(shape, {name: default_place(kind) for name, kind in members_of(actual)})


def is_constant(place: Place) -> bool:
    return isinstance(place, Value) and isinstance(place.expr, (ir.Const, ir.BoolConstant))


def leaf_count(place: Place) -> int:
    """Returns the number of places among which an index chooses at run time, counting those of
    alternatives inside alternatives. Returns 1 for other places."""
    alternatives = place.alternatives if isinstance(place, SelectedPlace) else []
    return sum(map(leaf_count, alternatives)) if alternatives else 1


def bits_of(base: Place, shape: types.Type, high: int, low: int) -> SlicePlace:
    """Returns bits `high` to `low` of a place, which may be a slice itself."""
    if isinstance(base, SlicePlace):
        return SlicePlace(shape, base.base, high + base.low, low + base.low)
    return SlicePlace(shape, base, high, low)


def member_of(place: Place, name: str) -> Place:
    """Returns the member of a struct, union or header by its name."""
    if isinstance(place, WithFields):
        return place.member(name)
    assert isinstance(place, (StructPlace, UnionPlace)), place
    return place.members[name]


def leaves(subject: types.Type) -> Iterator[tuple[str, types.Type]]:
    """Yields (dotted name, type) of every field of a header or struct, including those of nested
    structs."""
    for name, shape in members_of(subject):
        if isinstance(plain(shape), (types.Struct, types.Tuple, types.Stack)):
            for below, inner in leaves(plain(shape)):
                yield f"{name}.{below}", inner
        else:
            yield name, shape


def leaf_fields(subject: types.StructLike) -> Iterator[tuple[str, types.Field]]:
    """Yields (dotted name, field) of every field of a header or struct, including those of nested
    structs."""
    for found in subject.fields:
        held = plain(found.type)
        if isinstance(held, types.Struct):
            for below, inner in leaf_fields(held):
                yield f"{given_name(found.declaration, found.name)}.{below}", inner
        else:
            yield given_name(found.declaration, found.name), found


def footprint(place: Place) -> Iterator[str]:
    """Yields names for everything that a place covers. Two places overlap if they have a name in
    common."""
    if isinstance(place, (Scalar, VarbitPlace)):
        yield str(place.ref)
    elif isinstance(place, (SlicePlace, MovingSlicePlace)):
        yield from footprint(place.base)
    elif isinstance(place, SelectedPlace):
        for part in place.alternatives:
            yield from footprint(part)
    elif isinstance(place, HeaderPlace):
        yield str(place.expr)
        for part in place.fields():
            yield from footprint(part)
    elif isinstance(place, StructPlace):
        for part in place.members.values():
            yield from footprint(part)
    elif isinstance(place, StackPlace):
        yield place.name
        for part in place.elements:
            yield from footprint(part)
    elif isinstance(place, UnionPlace):
        yield str(place.expr)
        for part in place.members.values():
            yield from footprint(part)

"""Allocates header types and instances. The header `scalars` holds all values that are not in a
header of the program."""

from __future__ import annotations

from p4native.compiler import types
from p4native.compiler.backend import ir
from p4native.compiler.backend.control_names import given_name
from p4native.compiler.backend.places import (
    HeaderPlace,
    Place,
    Scalar,
    StackPlace,
    StructPlace,
    UnionPlace,
    VarbitPlace,
    is_scalar,
    is_signed,
    leaves,
    members_of,
    plain,
    scalar_width,
)
from p4native.compiler.source import Position

SCALARS = "scalars"
STANDARD_METADATA = "standard_metadata"
# Metadata is padded to whole bytes, as p4c does.
PADDING = "_padding"


class Unsupported(Exception):
    """Raised for a construct that this back end cannot translate. It is caught where statements are
    lowered, and then reported."""

    def __init__(self, position: Position, construct: str, hint: str = "") -> None:
        super().__init__(construct)
        self.position = position
        self.construct = construct
        self.hint = hint


class Names:
    """A source of unique names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        name = wanted
        while name in self._taken:
            number = self._next.get(wanted, 0)
            self._next[wanted] = number + 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


class Storage:
    """The allocator of places for parameters, variables and temporaries. It adds what it allocates
    to `program`."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self._names = Names()
        self._type_names: dict[tuple[object, ...], str] = {}
        self._type_labels = Names()
        self._type_labels.unique(f"{SCALARS}_0")
        self._scalars = ir.HeaderType(f"{SCALARS}_0", [])
        program.header_types.append(self._scalars)
        program.headers.append(ir.HeaderInstance(SCALARS, self._scalars.name, metadata=True))
        self._names.unique(SCALARS)
        self._field_names = Names()

    def standard_metadata(self, shape: types.Struct) -> StructPlace:
        name = self._names.unique(STANDARD_METADATA)
        fields = [(n, scalar_width(t), is_signed(t)) for n, t in members_of(shape)]
        self._type_labels.unique(STANDARD_METADATA)
        kind = ir.HeaderType(STANDARD_METADATA, [*fields])
        _pad(kind)
        self.program.header_types.append(kind)
        self.program.headers.append(ir.HeaderInstance(name, kind.name, metadata=True))
        members: dict[str, Place] = {
            n: Scalar(t, ir.FieldRef(name, n, scalar_width(t), is_signed(t)))
            for n, t in members_of(shape)
        }
        return StructPlace(shape, members)

    def allocate(self, name: str, shape: types.Type, where: Position) -> Place:
        """Returns a place for a value of type `shape`. The name is changed if it is already
        taken."""
        held = plain(shape)
        if is_scalar(held) and scalar_width(held) > 0:
            return self._scalar(name, shape)
        if isinstance(held, types.Header):
            return self._header(self._names.unique(name), held)
        if isinstance(held, types.HeaderUnion):
            return self._union(self._names.unique(name), held)
        if isinstance(held, types.Stack) and isinstance(
            held.element, (types.Header, types.HeaderUnion)
        ):
            return self._stack(self._names.unique(name), held)
        if isinstance(held, (types.Struct, types.Tuple, types.StructLiteral, types.Stack)):
            prefix = f"{name}." if name else ""
            members = {n: self.allocate(prefix + n, t, where) for n, t in members_of(held)}
            return StructPlace(shape, members)
        if isinstance(held, types.Varbit):
            return self._varbit(name, held)
        raise Unsupported(where, f"a variable of type {shape}")

    def _scalar(self, name: str, shape: types.Type) -> Scalar:
        field = self._field_names.unique(name)
        width, signed = scalar_width(shape), is_signed(shape)
        self._scalars.fields.append((field, width, signed))
        return Scalar(shape, ir.FieldRef(SCALARS, field, width, signed))

    def _varbit(self, name: str, shape: types.Varbit) -> VarbitPlace:
        """Returns a place for a varbit. Each varbit has a separate header instance, because BMv2
        allows one variable field in each header."""
        type_name = self._type_names.get(("varbit", shape.width))
        if type_name is None:
            type_name = self._type_labels.unique(f"varbit{shape.width}")
            self._type_names["varbit", shape.width] = type_name
            kind = ir.HeaderType(type_name, [("field", "*", False)], (shape.width + 7) // 8)
            self.program.header_types.append(kind)
        instance = self._names.unique(name)
        self.program.headers.append(ir.HeaderInstance(instance, type_name, metadata=True))
        return VarbitPlace(shape, ir.FieldRef(instance, "field", shape.width))

    def _header(self, name: str, shape: types.Header) -> HeaderPlace:
        self.program.headers.append(ir.HeaderInstance(name, self._header_type(shape)))
        return HeaderPlace(shape, ir.ObjectRef("header", name))

    def _stack(self, name: str, shape: types.Stack) -> StackPlace:
        elements: list[Place] = []
        stacks = self.program.header_stacks
        if isinstance(shape.element, types.HeaderUnion):
            stacks = self.program.union_stacks
            type_name = self._union_type(shape.element)
            elements = [self._union(f"{name}[{i}]", shape.element) for i in range(shape.size)]
        else:
            assert isinstance(shape.element, types.Header)
            type_name = self._header_type(shape.element)
            elements = [self._header(f"{name}[{i}]", shape.element) for i in range(shape.size)]
        stacks.append(ir.HeaderStack(name, type_name, [f"{name}[{i}]" for i in range(shape.size)]))
        return StackPlace(shape, name, elements)

    def _union(self, name: str, shape: types.HeaderUnion) -> UnionPlace:
        type_name = self._union_type(shape)
        members: dict[str, Place] = {}
        for member, kind in members_of(shape):
            assert isinstance(kind, types.Header)
            members[member] = self._header(f"{name}.{member}", kind)
        self.program.unions.append(
            ir.UnionInstance(name, type_name, [f"{name}.{m}" for m in members])
        )
        return UnionPlace(shape, ir.ObjectRef("header_union", name), members)

    def _union_type(self, shape: types.HeaderUnion) -> str:
        key = (shape,)
        if key not in self._type_names:
            name = self._type_names[key] = self._type_labels.unique(control_plane_name(shape))
            headers = [
                (m, self._header_type(k))
                for m, k in members_of(shape)
                if isinstance(k, types.Header)
            ]
            self.program.union_types.append(ir.UnionType(name, headers))
        return self._type_names[key]

    def _header_type(self, shape: types.Header) -> str:
        key = (shape,)
        if key not in self._type_names:
            name = self._type_names[key] = self._type_labels.unique(control_plane_name(shape))
            self.program.header_types.append(_header_type(name, shape))
        return self._type_names[key]

    def finish(self) -> None:
        """Pads the scalars to whole bytes. Nothing may be allocated afterwards."""
        _pad(self._scalars)


def control_plane_name(shape: types.StructLike) -> str:
    return given_name(shape.declaration).removeprefix(".")


def _header_type(name: str, shape: types.Header) -> ir.HeaderType:
    fields: list[tuple[str, int | str, bool]] = []
    bits = 0
    variable = 0
    for path, leaf in leaves(shape):
        held = plain(leaf)
        if isinstance(held, types.Varbit):
            fields.append((path, "*", False))
            bits += held.width
            variable += 1
        else:
            fields.append((path, scalar_width(held), is_signed(held)))
            bits += scalar_width(held)
    where = shape.declaration.position
    if bits % 8:
        raise Unsupported(where, f"header {name} of {bits} bits, which is not a multiple of 8")
    if variable > 1:
        raise Unsupported(where, f"header {name} with more than one varbit field")
    return ir.HeaderType(name, fields, bits // 8 if variable else None)


def _pad(kind: ir.HeaderType) -> None:
    bits = sum(width for _, width, _ in kind.fields if isinstance(width, int))
    if bits % 8:
        kind.fields.append((PADDING, 8 - bits % 8, False))

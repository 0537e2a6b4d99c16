"""Writes P4Info's descriptions of types: of digests, of registers, and of types with a P4Runtime
translation."""

from __future__ import annotations

from typing import Any

from p4native.common.p4info_messages import new_message
from p4native.compiler import types
from p4native.compiler.backend.control_names import given_name
from p4native.compiler.backend.p4info_annotations import annotate
from p4native.compiler.backend.storage import Unsupported, control_plane_name
from p4native.compiler.source import Position
from p4native.compiler.typed import TypedProgram

Message = Any


class TypeSpecs:
    """A builder of the P4TypeInfo of a P4Info. Every named type whose description is requested is
    added to the P4TypeInfo."""

    def __init__(self, info: Message, typed: TypedProgram) -> None:
        self._p4info = info
        self._typed = typed
        self._enum_values = typed.enum_values
        self._errors = sorted(typed.error_codes, key=typed.error_codes.__getitem__)

    @property
    def _info(self) -> Message:
        return self._p4info.type_info

    def announce(self) -> None:
        """Makes P4Info contain a type_info message, if necessary an empty one. p4c writes it even
        if no type needs a description."""
        self._info.SetInParent()

    def spec(self, shape: types.Type, where: Position) -> Message:
        """Returns the P4DataTypeSpec of a type, and adds the named types in it to the type_info."""
        spec = new_message("P4DataTypeSpec")
        self._fill(spec, shape, where)
        return spec

    def _fill(self, spec: Message, shape: types.Type, where: Position) -> None:
        if isinstance(shape, types.Bits):
            _bits(spec.bitstring, shape)
        elif isinstance(shape, types.Varbit):
            spec.bitstring.varbit.max_bitwidth = shape.width
        elif isinstance(shape, types.Boolean):
            spec.bool.SetInParent()
        elif isinstance(shape, types.Error):
            spec.error.SetInParent()
            self.errors()
        elif isinstance(shape, types.Tuple):
            spec.tuple.SetInParent()
            for element in shape.elements:
                self._fill(spec.tuple.members.add(), element, where)
        elif isinstance(shape, types.Stack) and isinstance(shape.element, types.Header):
            self._header(shape.element, where)
            spec.header_stack.header.name = control_plane_name(shape.element)
            spec.header_stack.size = shape.size
        else:
            self._fill_named(spec, shape, where)

    def _fill_named(self, spec: Message, shape: types.Type, where: Position) -> None:
        if isinstance(shape, types.NewType):
            spec.new_type.name = self.new_type(shape, where)
        elif isinstance(shape, types.SerializableEnum):
            spec.serializable_enum.name = self.serializable_enum(shape)
        elif isinstance(shape, types.Enum):
            spec.enum.name = self._enum(shape)
        elif isinstance(shape, types.Header):
            spec.header.name = self._header(shape, where)
        elif isinstance(shape, (types.Struct, types.StructLiteral)):
            spec.struct.name = self._struct(shape, where)
        else:
            raise Unsupported(where, f"the type {shape} in P4Info")

    def new_type(self, shape: types.NewType, where: Position) -> str:
        name = shape.declaration.name
        if name not in self._info.new_types:
            entry = self._info.new_types[name]
            annotate(self._typed, entry, shape.declaration.annotations)
            translation = translation_of(shape)
            if translation is None:
                self._fill(entry.original_type, _base(shape), where)
            else:
                uri, width = translation
                entry.translated_type.uri = uri
                if width is None:
                    entry.translated_type.sdn_string.SetInParent()
                else:
                    entry.translated_type.sdn_bitwidth = width
        return name

    def _enum(self, shape: types.Enum) -> str:
        name = shape.declaration.name
        if name not in self._info.enums:
            entry = self._info.enums[name]
            for member in shape.declaration.members:
                entry.members.add().name = member.name
        return name

    def errors(self) -> None:
        """Adds the names of all members of `error` to the type_info, once."""
        if not self._info.HasField("error"):
            self._info.error.members.extend(member.name for member in self._errors)

    def serializable_enum(self, shape: types.SerializableEnum) -> str:
        name = shape.declaration.name
        if name not in self._info.serializable_enums:
            entry = self._info.serializable_enums[name]
            width = shape.underlying.width
            entry.underlying_type.bitwidth = width
            for member in shape.declaration.members:
                added = entry.members.add()
                added.name = member.name
                value = self._enum_values[member] % (1 << width)
                added.value = value.to_bytes((width + 7) // 8, "big")
        return name

    def _struct(self, shape: types.Struct | types.StructLiteral, where: Position) -> str:
        name = control_plane_name(shape) if isinstance(shape, types.Struct) else "struct"
        if name not in self._info.structs:
            entry = self._info.structs[name]
            for field in shape.fields:
                member = entry.members.add()
                member.name = given_name(field.declaration, field.name)
                self._fill(member.type_spec, field.type, where)
        return name

    def _header(self, shape: types.Header, where: Position) -> str:
        name = control_plane_name(shape)
        if name not in self._info.headers:
            entry = self._info.headers[name]
            for field in shape.fields:
                member = entry.members.add()
                member.name = given_name(field.declaration, field.name)
                if isinstance(field.type, types.Bits):
                    _bits(member.type_spec, field.type)
                else:
                    member.type_spec.bit.bitwidth = types.width_bits(field.type) or 0
        return name


def _bits(spec: Message, shape: types.Bits) -> None:
    if shape.signed:
        spec.int.bitwidth = shape.width
    else:
        spec.bit.bitwidth = shape.width


def _base(shape: types.Type) -> types.Type:
    """Returns the type below all layers that `type` declarations make. Of the layers, only the
    translation of the outermost one counts."""
    while isinstance(shape, types.NewType):
        shape = shape.underlying
    return shape


def translation_of(shape: types.NewType) -> tuple[str, int | None] | None:
    """Returns (uri, width) of @p4runtime_translation, or None without this annotation.

    width: the number of bits on the controller's side, or None for a string. The annotation writes
    it as `32`, `bit<32>` or `string`.
    """
    annotation = shape.declaration.annotation("p4runtime_translation")
    if annotation is None:
        return None
    match annotation.text:
        case [uri, ",", "string"]:
            return uri.strip('"'), None
        case [uri, ",", width] | [uri, ",", "bit", "<", width, ">"] if width.isdigit():
            return uri.strip('"'), int(width)
    where = annotation.position
    raise Unsupported(
        where, "this translation", "write `string`, `bit<W>` or a width after the URI"
    )


def bitwidth(shape: types.Type) -> int:
    """Returns the width that the controller sees, or 0 for a string."""
    translation = translation_of(shape) if isinstance(shape, types.NewType) else None
    if translation is not None:
        return translation[1] or 0
    return types.width_bits(_base(shape)) or 0

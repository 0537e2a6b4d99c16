"""The width of a type in bits."""

from __future__ import annotations

from compiler.types.base import Bits, Boolean, NewType, SerializableEnum, Type
from compiler.types.compound import Header, Stack, Struct, Tuple


def width_bits(subject: Type) -> int | None:
    """The width of a type that has a fixed one (bits, bool, enums, structs, headers), else None."""
    if isinstance(subject, Bits):
        return subject.width
    if isinstance(subject, Boolean):
        return 1
    if isinstance(subject, (SerializableEnum, NewType)):
        return width_bits(subject.underlying)
    if isinstance(subject, Stack):
        element = width_bits(subject.element)
        return None if element is None else element * subject.size
    parts: tuple[Type, ...] | None = None
    if isinstance(subject, (Struct, Header)):
        parts = tuple(f.type for f in subject.fields)
    elif isinstance(subject, Tuple):
        parts = subject.elements
    if parts is None:
        return None
    widths = [width_bits(p) for p in parts]
    return None if None in widths else sum(w for w in widths if w is not None)

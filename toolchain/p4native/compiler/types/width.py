"""Computes the width of a type in bits."""

from __future__ import annotations

from p4native.compiler.types.base import Bits, Boolean, NewType, SerializableEnum, Type
from p4native.compiler.types.compound import Header, Stack, Struct, StructLike, Tuple

LeafCounts = dict[int, tuple[Type, int]]


def leaf_count(subject: Type, known: LeafCounts) -> int:
    """Returns the number of scalars and varbits in a value of this type. known: the numbers of
    types that have been counted already."""
    if id(subject) in known:
        return known[id(subject)][1]
    if isinstance(subject, StructLike):
        count = sum(leaf_count(f.type, known) for f in subject.fields)
    elif isinstance(subject, Tuple):
        count = sum(leaf_count(e, known) for e in subject.elements)
    elif isinstance(subject, Stack):
        count = subject.size * leaf_count(subject.element, known)
    else:
        count = 1
    known[id(subject)] = subject, count
    return count


def width_bits(subject: Type) -> int | None:
    """Returns the width of a type that has a fixed one (bits, bool, enums, structs, headers), or
    None."""
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

"""Types as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agglab.compiler.ast.node import Node

if TYPE_CHECKING:
    from agglab.compiler.ast.expressions import Expression


@dataclass(eq=False, slots=True)
class TypeRef(Node):
    """A type as written."""


@dataclass(eq=False, slots=True)
class BaseTypeRef(TypeRef):
    """`bool`, `error`, `string`, `void`, `match_kind`, `int` (arbitrary precision)."""

    name: str


@dataclass(eq=False, slots=True)
class BitsTypeRef(TypeRef):
    """`bit`, `bit<W>`, `int<W>`, `varbit<W>`: kind is the keyword; width None means 1."""

    kind: str
    width: Expression | None


@dataclass(eq=False, slots=True)
class NamedTypeRef(TypeRef):
    """`Name` or `.Name`."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class SpecializedTypeRef(TypeRef):
    """`Base<A, B>`."""

    base: NamedTypeRef
    arguments: tuple[TypeRef, ...]


@dataclass(eq=False, slots=True)
class StackTypeRef(TypeRef):
    """`Element[size]`."""

    element: TypeRef
    size: Expression


@dataclass(eq=False, slots=True)
class TupleTypeRef(TypeRef):
    """`tuple<A, B>`."""

    elements: tuple[TypeRef, ...]


@dataclass(eq=False, slots=True)
class ListTypeRef(TypeRef):
    """`list<Element>`."""

    element: TypeRef


@dataclass(eq=False, slots=True)
class DontCareTypeRef(TypeRef):
    """`_` as a type argument."""

"""The classes of types made of other types: structs, headers, stacks, tuples, lists, sets and
literals."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.compiler import ast
from p4native.compiler.types.base import Type, angle


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct-like type. declaration: None for types that the compiler itself
    makes."""

    name: str
    type: Type
    declaration: ast.StructField | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StructLike(Type):
    """The base class of struct, header and header_union types. fields: in the order of
    declaration."""

    declaration: ast.StructDeclaration
    arguments: tuple[Type, ...] = ()
    fields: tuple[Field, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        return self.name + angle(self.arguments)


@dataclass(frozen=True, slots=True)
class Struct(StructLike):
    pass


@dataclass(frozen=True, slots=True)
class Header(StructLike):
    pass


@dataclass(frozen=True, slots=True)
class HeaderUnion(StructLike):
    pass


@dataclass(frozen=True, slots=True)
class ApplyResult(Type):
    """The type of the result of `t.apply()`: a struct of hit, miss (bool) and action_run
    (ActionRun)."""

    table: ast.TableDeclaration

    def __str__(self) -> str:
        return f"apply_result({self.table.name})"


@dataclass(frozen=True, slots=True)
class ActionRun(Type):
    """The enum of a table's actions, which is the type of `t.apply().action_run`."""

    table: ast.TableDeclaration

    def __str__(self) -> str:
        return f"action_list({self.table.name})"


@dataclass(frozen=True, slots=True)
class Stack(Type):
    """A header stack or another array. element: a Header or HeaderUnion for header stacks, any
    other type (or a type variable) for arrays."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return "tuple" + (angle(self.elements) or "<>")


@dataclass(frozen=True, slots=True)
class List(Type):
    """The type `list<element>`: a list of any length, known at compile time."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class StructLiteral(Type):
    """The type of `{ a = x, ... }` where no context has given it the type of a declaration yet."""

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        return "{ " + ", ".join(f"{f.type} {f.name}" for f in self.fields) + " }"


@dataclass(frozen=True, slots=True)
class InvalidLiteral(Type):
    """The type of `{#}` where no context has given it a header type yet."""

    def __str__(self) -> str:
        return "{#}"


@dataclass(frozen=True, slots=True)
class DefaultLiteral(Type):
    """The type of `...` where no context has given it a type yet."""

    def __str__(self) -> str:
        return "..."


@dataclass(frozen=True, slots=True)
class Set(Type):
    """The type of keysets: ranges, masks, value sets, `_`."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"

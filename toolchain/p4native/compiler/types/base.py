"""The classes of types that are not made of other types, and of types that give a name to another
type."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.compiler import ast


@dataclass(frozen=True, slots=True)
class Type:
    """The base class of all types."""


@dataclass(frozen=True, slots=True)
class Unknown(Type):
    """The type of an expression about which an error was already reported. It fits every other
    type."""

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Bits(Type):
    """The type `bit<width>`, or `int<width>` if signed."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True, slots=True)
class Varbit(Type):
    """The type `varbit<width>`, whose values have at most `width` bits."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True, slots=True)
class Integer(Type):
    """The type `int`, whose values have arbitrary precision and are known at compile time."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True, slots=True)
class Boolean(Type):
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True, slots=True)
class String(Type):
    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class Error(Type):
    """The type `error`. Its members are EnumMember declarations, numbered in
    TypedProgram.error_codes."""

    def __str__(self) -> str:
        return "error"


@dataclass(frozen=True, slots=True)
class MatchKind(Type):
    def __str__(self) -> str:
        return "match_kind"


@dataclass(frozen=True, slots=True)
class Void(Type):
    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class DontCare(Type):
    """The type of `_`, and of a type argument left to inference."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class State(Type):
    """The type of a parser state's name."""

    def __str__(self) -> str:
        return "state"


@dataclass(frozen=True, slots=True)
class TypeVariable(Type):
    """A type parameter, as a type inside the declaration that has the parameter. Bindings use the
    parameter's declaration as key."""

    declaration: ast.TypeParameter

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class NewType(Type):
    """A new type, which `type underlying name` declares."""

    declaration: ast.TypedefDeclaration
    underlying: Type = field(compare=False)

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class Enum(Type):
    """An enum without underlying type. Its members are declaration.members."""

    declaration: ast.EnumDeclaration

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class SerializableEnum(Type):
    """An enum with an underlying type, `enum bit<W> E { ... }`. The members' values are in
    TypedProgram.enum_values."""

    declaration: ast.EnumDeclaration
    underlying: Bits = field(compare=False)

    def __str__(self) -> str:
        return self.declaration.name


UNKNOWN = Unknown()
INTEGER = Integer()
BOOLEAN = Boolean()
STRING = String()
ERROR = Error()
MATCH_KIND = MatchKind()
VOID = Void()
DONT_CARE = DontCare()
STATE = State()
BIT32 = Bits(32)


def angle(arguments: tuple[Type, ...]) -> str:
    return f"<{', '.join(map(str, arguments))}>" if arguments else ""

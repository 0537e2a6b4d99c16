"""The types of P4_16 as values: what expressions have, after names are resolved.

All are immutable and compare by structure; nominal types (structs, enums, externs, ...) compare by
their declaration and type arguments. `str(type)` is the type as a user would write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from compiler import ast


@dataclass(frozen=True, slots=True)
class Type:
    """Base of all types."""


@dataclass(frozen=True, slots=True)
class Unknown(Type):
    """The type of what was already reported as an error; fits everything."""

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Bits(Type):
    """`bit<width>`, or `int<width>` where signed."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True, slots=True)
class Varbit(Type):
    """`varbit<width>`: up to width bits."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True, slots=True)
class Integer(Type):
    """`int`: arbitrary precision, known at compile time."""

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
    """`error`; members are EnumMember declarations in TypedProgram.errors."""

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
    """The type of `_`, and a type argument left to inference."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class State(Type):
    """The type of a parser state's name."""

    def __str__(self) -> str:
        return "state"


@dataclass(frozen=True, slots=True)
class TypeVariable(Type):
    """A type parameter inside its own declaration; bindings map its declaration."""

    declaration: ast.TypeParameter

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class NewType(Type):
    """`type underlying name`."""

    declaration: ast.TypedefDeclaration
    underlying: Type = field(compare=False)

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class Enum(Type):
    """An enum without underlying type; its members are declaration.members."""

    declaration: ast.EnumDeclaration

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class SerializableEnum(Type):
    """`enum bit<W> E { ... }`; the members' values are in TypedProgram.enum_values."""

    declaration: ast.EnumDeclaration
    underlying: Bits = field(compare=False)

    def __str__(self) -> str:
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct-like type; declaration None for types the compiler makes up."""

    name: str
    type: Type
    declaration: ast.StructField | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StructLike(Type):
    """What struct, header and header_union share; fields are in the order of declaration."""

    declaration: ast.StructDeclaration
    arguments: tuple[Type, ...] = ()
    fields: tuple[Field, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        return self.name + _angle(self.arguments)


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
    """What `t.apply()` returns: a struct of hit, miss (bool) and action_run (ActionRun)."""

    table: ast.TableDeclaration

    def __str__(self) -> str:
        return f"apply_result({self.table.name})"


@dataclass(frozen=True, slots=True)
class ActionRun(Type):
    """The enum of a table's actions: the type of `t.apply().action_run`."""

    table: ast.TableDeclaration

    def __str__(self) -> str:
        return f"action_list({self.table.name})"


@dataclass(frozen=True, slots=True)
class Stack(Type):
    """A header stack: element is a Header or HeaderUnion (or a type variable)."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return "tuple" + (_angle(self.elements) or "<>")


@dataclass(frozen=True, slots=True)
class List(Type):
    """`list<element>`: a compile-time list of any length."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class StructLiteral(Type):
    """`{ a = x, ... }` that no context has given a nominal type yet."""

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        return "{ " + ", ".join(f"{f.type} {f.name}" for f in self.fields) + " }"


@dataclass(frozen=True, slots=True)
class InvalidLiteral(Type):
    """`{#}` that no context has given a header type yet."""

    def __str__(self) -> str:
        return "{#}"


@dataclass(frozen=True, slots=True)
class DefaultLiteral(Type):
    """`...` that no context has given a type yet."""

    def __str__(self) -> str:
        return "..."


@dataclass(frozen=True, slots=True)
class Set(Type):
    """The type of keysets: ranges, masks, value sets, `_`."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A parameter with its type resolved; direction: "", "in", "out", "inout"."""

    name: str
    type: Type
    direction: str = ""
    optional: bool = False
    default: ast.Expression | None = field(default=None, compare=False)
    declaration: ast.Parameter | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.direction} {self.type} {self.name}".lstrip()


@dataclass(frozen=True, slots=True)
class Function(Type):
    """Functions, extern functions, methods and constructors (which return their own type)."""

    declaration: ast.FunctionDeclaration | None
    type_parameters: tuple[ast.TypeParameter, ...]
    parameters: tuple[ParameterType, ...]
    result: Type

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        name = self.declaration.name if self.declaration else "function"
        return f"{self.result} {name}({parameters})"


@dataclass(frozen=True, slots=True)
class Overloads(Type):
    """The type of a name that stands for several functions; a call picks one."""

    functions: tuple[Function, ...]

    def __str__(self) -> str:
        return " / ".join(map(str, self.functions))


@dataclass(frozen=True, slots=True)
class Action(Type):
    declaration: ast.ActionDeclaration
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"action {self.declaration.name}"


@dataclass(frozen=True, slots=True)
class Table(Type):
    declaration: ast.TableDeclaration

    def __str__(self) -> str:
        return f"table {self.declaration.name}"


@dataclass(frozen=True, slots=True)
class Extern(Type):
    """An extern object's type; its methods are in TypedProgram.methods_of(extern)."""

    declaration: ast.ExternDeclaration
    arguments: tuple[Type, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _angle(self.arguments)


@dataclass(frozen=True, slots=True)
class Block(Type):
    """What parsers and controls share.

    declaration: with or without a body; parameters: of apply; constructor: of the constructor
    (empty for the types without body).
    """

    declaration: ast.Declaration
    arguments: tuple[Type, ...] = ()
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False)
    constructor: tuple[ParameterType, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _angle(self.arguments)


@dataclass(frozen=True, slots=True)
class Parser(Block):
    pass


@dataclass(frozen=True, slots=True)
class Control(Block):
    pass


@dataclass(frozen=True, slots=True)
class Package(Type):
    declaration: ast.PackageDeclaration
    arguments: tuple[Type, ...] = ()
    constructor: tuple[ParameterType, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + _angle(self.arguments)


@dataclass(frozen=True, slots=True)
class TypeName(Type):
    """The type of a TypeExpression: `E` in `E.member`."""

    named: Type

    def __str__(self) -> str:
        return f"type {self.named}"


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

Bindings = Mapping[ast.TypeParameter, Type]
T = TypeVar("T", bound=Type)


def _angle(arguments: tuple[Type, ...]) -> str:
    return f"<{', '.join(map(str, arguments))}>" if arguments else ""


def substitute(subject: T, bindings: Bindings) -> T:
    """subject with every type variable that bindings names replaced."""
    if not bindings:
        return subject
    return cast(T, _substitute(subject, bindings))


class _AllUnknown(dict[ast.TypeParameter, Type]):
    """Binds every type parameter to the type that fits everything."""

    def __bool__(self) -> bool:
        return True

    def get(self, key: object, default: object = None) -> Type:
        return UNKNOWN


def erase(subject: T) -> T:
    """subject with every type variable replaced by the type that fits everything."""
    return substitute(subject, _AllUnknown())


def _substitute(subject: Type, bindings: Bindings) -> Type:
    if isinstance(subject, TypeVariable):
        return bindings.get(subject.declaration, subject)
    rebuild = _REBUILD.get(type(subject))
    return rebuild(subject, bindings) if rebuild else subject


def _all(subjects: tuple[Type, ...], bindings: Bindings) -> tuple[Type, ...]:
    return tuple(_substitute(s, bindings) for s in subjects)


def _fields(subjects: tuple[Field, ...], bindings: Bindings) -> tuple[Field, ...]:
    return tuple(Field(f.name, _substitute(f.type, bindings), f.declaration) for f in subjects)


def substitute_parameters(
    subjects: tuple[ParameterType, ...], bindings: Bindings
) -> tuple[ParameterType, ...]:
    return tuple(replace(p, type=_substitute(p.type, bindings)) for p in subjects)


def _struct_like(subject: StructLike, bindings: Bindings) -> Type:
    if not subject.arguments:
        return subject
    arguments = _all(subject.arguments, bindings)
    return replace(subject, arguments=arguments, fields=_fields(subject.fields, bindings))


def _block(subject: Block, bindings: Bindings) -> Type:
    return replace(
        subject,
        arguments=_all(subject.arguments, bindings),
        parameters=substitute_parameters(subject.parameters, bindings),
        constructor=substitute_parameters(subject.constructor, bindings),
    )


def _package(subject: Package, bindings: Bindings) -> Type:
    return replace(
        subject,
        arguments=_all(subject.arguments, bindings),
        constructor=substitute_parameters(subject.constructor, bindings),
    )


def _function(subject: Function, bindings: Bindings) -> Type:
    return replace(
        subject,
        parameters=substitute_parameters(subject.parameters, bindings),
        result=_substitute(subject.result, bindings),
    )


_REBUILD: dict[type, Callable[..., Type]] = {
    Struct: _struct_like,
    Header: _struct_like,
    HeaderUnion: _struct_like,
    Parser: _block,
    Control: _block,
    Package: _package,
    Function: _function,
    Stack: lambda s, b: Stack(_substitute(s.element, b), s.size),
    Tuple: lambda s, b: Tuple(_all(s.elements, b)),
    List: lambda s, b: List(_substitute(s.element, b)),
    Set: lambda s, b: Set(_substitute(s.element, b)),
    StructLiteral: lambda s, b: StructLiteral(_fields(s.fields, b)),
    Extern: lambda s, b: Extern(s.declaration, _all(s.arguments, b)),
    TypeName: lambda s, b: TypeName(_substitute(s.named, b)),
}


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

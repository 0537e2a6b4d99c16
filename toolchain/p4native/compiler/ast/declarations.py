"""The classes of nodes for statements, and for all declarations except parsers and controls. They
share a file because statements and declarations can contain each other."""

from __future__ import annotations

from dataclasses import dataclass

from p4native.compiler.ast.expressions import Annotation, Argument, Call, Expression, TypeRef
from p4native.compiler.ast.node import Node
from p4native.compiler.source import Position


@dataclass(eq=False, slots=True)
class Statement(Node):
    """The base class of statements. Declarations that may stand among statements derive from
    Declaration, and not from this class."""


@dataclass(eq=False, slots=True)
class Assignment(Statement):
    """An assignment, `left operator= right`. operator: "" for plain `=`, otherwise `+`, `|+|`, `<<`
    and so on."""

    left: Expression
    operator: str
    right: Expression


@dataclass(eq=False, slots=True)
class CallStatement(Statement):
    call: Call


@dataclass(eq=False, slots=True)
class EmptyStatement(Statement):
    pass


@dataclass(eq=False, slots=True)
class Block(Statement):
    statements: tuple[Statement | Declaration, ...]
    annotations: tuple[Annotation, ...] = ()
    end: Position | None = None


@dataclass(eq=False, slots=True)
class If(Statement):
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(eq=False, slots=True)
class Return(Statement):
    value: Expression | None


@dataclass(eq=False, slots=True)
class Exit(Statement):
    pass


@dataclass(eq=False, slots=True)
class Break(Statement):
    pass


@dataclass(eq=False, slots=True)
class Continue(Statement):
    pass


@dataclass(eq=False, slots=True)
class SwitchCase(Node):
    """One case of a `switch`. label: a DefaultKeyset for `default`. body: None where the case falls
    through to the next one."""

    label: Expression
    body: Block | None


@dataclass(eq=False, slots=True)
class Switch(Statement):
    subject: Expression
    cases: tuple[SwitchCase, ...]


@dataclass(eq=False, slots=True)
class For(Statement):
    """A C-style loop: `for (initial; condition; updates) body`."""

    initial: tuple[Statement | Declaration, ...]
    condition: Expression
    updates: tuple[Statement, ...]
    body: Statement
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class ForIn(Statement):
    """A loop over the elements of a collection: `for (variable in collection) body`.

    collection: a Range, a list or an array.
    """

    variable: Variable
    collection: Expression
    body: Statement
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class Declaration(Node):
    """The base class of declarations, each of which declares a name. position: the place of the
    name."""

    name: str
    annotations: tuple[Annotation, ...]

    def annotation(self, name: str) -> Annotation | None:
        """Returns the first annotation called `name`, or None if there is none."""
        return next((a for a in self.annotations if a.name == name), None)


@dataclass(eq=False, slots=True)
class Parameter(Declaration):
    """A parameter. direction: "", "in", "out" or "inout"."""

    direction: str
    type_ref: TypeRef
    default: Expression | None = None

    @property
    def optional(self) -> bool:
        return self.annotation("optional") is not None


@dataclass(eq=False, slots=True)
class TypeParameter(Declaration):
    """A type parameter, such as `T` in `<T, U>`."""


@dataclass(eq=False, slots=True)
class Constant(Declaration):
    type_ref: TypeRef
    value: Expression


@dataclass(eq=False, slots=True)
class Variable(Declaration):
    type_ref: TypeRef
    value: Expression | None


@dataclass(eq=False, slots=True)
class Instantiation(Declaration):
    """The declaration of an instance: `Type(arguments) name;`. initializer: the bodies of abstract
    methods in `= { ... }`."""

    type_ref: TypeRef
    arguments: tuple[Argument, ...]
    initializer: tuple[Declaration, ...] | None = None


@dataclass(eq=False, slots=True)
class StructField(Declaration):
    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class StructDeclaration(Declaration):
    """The declaration of a struct-like type. kind: "struct", "header" or "header_union"."""

    kind: str
    type_parameters: tuple[TypeParameter, ...]
    fields: tuple[StructField, ...]


@dataclass(eq=False, slots=True)
class EnumMember(Declaration):
    """A member of an enum, of `error` or of `match_kind`. value: only present in serializable
    enums."""

    value: Expression | None = None


@dataclass(eq=False, slots=True)
class EnumDeclaration(Declaration):
    """The declaration of an enum. underlying: the type of a serializable enum, None for a plain
    enum."""

    underlying: TypeRef | None
    members: tuple[EnumMember, ...]


@dataclass(eq=False, slots=True)
class ErrorDeclaration(Declaration):
    """One declaration `error { ... }`. Its node has the name "error". The members of all these
    declarations in a program make one type."""

    members: tuple[EnumMember, ...]


@dataclass(eq=False, slots=True)
class MatchKindDeclaration(Declaration):
    """One declaration `match_kind { ... }`. Its node has the name "match_kind". A program may have
    several, which add up."""

    members: tuple[EnumMember, ...]


@dataclass(eq=False, slots=True)
class TypedefDeclaration(Declaration):
    """The declaration of another name for a type, `typedef T name` (new_type False), or of a new
    type, `type T name` (new_type True)."""

    type_ref: TypeRef
    new_type: bool = False


@dataclass(eq=False, slots=True)
class FunctionDeclaration(Declaration):
    """A function or method. body: None for functions and methods of externs. A constructor has no
    return type."""

    return_type: TypeRef | None
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    body: Block | None = None
    abstract: bool = False


@dataclass(eq=False, slots=True)
class ExternDeclaration(Declaration):
    """An extern object. Its constructors are the methods that have the extern's own name."""

    type_parameters: tuple[TypeParameter, ...]
    methods: tuple[FunctionDeclaration, ...]


@dataclass(eq=False, slots=True)
class ActionDeclaration(Declaration):
    parameters: tuple[Parameter, ...]
    body: Block


@dataclass(eq=False, slots=True)
class PackageDeclaration(Declaration):
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(eq=False, slots=True)
class ParserTypeDeclaration(Declaration):
    """The declaration of a parser type: `parser P<T>(...);`."""

    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(eq=False, slots=True)
class ControlTypeDeclaration(Declaration):
    """The declaration of a control type: `control C<T>(...);`."""

    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]

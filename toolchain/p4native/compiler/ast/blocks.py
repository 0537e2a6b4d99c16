"""The classes of nodes for parsers, controls and tables with their parts, and for the whole
program."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.compiler.ast.declarations import (
    Block,
    Declaration,
    Parameter,
    Statement,
    TypeParameter,
)
from p4native.compiler.ast.expressions import (
    Annotation,
    Argument,
    Expression,
    NameExpression,
    TypeRef,
)
from p4native.compiler.ast.node import Node


@dataclass(eq=False, slots=True)
class SelectCase(Node):
    """One case of a `select`. keyset: one expression, or a parenthesized ListExpression if the
    select has several keys."""

    keyset: Expression
    target: StateRef


@dataclass(eq=False, slots=True)
class StateRef(Node):
    """A reference by name to a parser state, or to "accept" or "reject"."""

    name: str


@dataclass(eq=False, slots=True)
class Transition(Node):
    """The transition of a parser state. It is `transition target;`, and then subject is empty, or
    `transition select(subject) { cases }`, and then target is None."""

    target: StateRef | None
    subject: tuple[Expression, ...] = ()
    cases: tuple[SelectCase, ...] = ()


@dataclass(eq=False, slots=True)
class ParserState(Declaration):
    """A state of a parser. transition: None if the state has none written, which means `transition
    reject`."""

    statements: tuple[Statement | Declaration, ...]
    transition: Transition | None


@dataclass(eq=False, slots=True)
class ValueSet(Declaration):
    """A parser value set: `value_set<T>(size) name;`."""

    type_ref: TypeRef
    size: Expression


@dataclass(eq=False, slots=True)
class ParserDeclaration(Declaration):
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    states: tuple[ParserState, ...]


@dataclass(eq=False, slots=True)
class ControlDeclaration(Declaration):
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    body: Block


@dataclass(eq=False, slots=True)
class KeyElement(Node):
    """One key of a table: `expression : match_kind @annotations;`."""

    expression: Expression
    match_kind: NameExpression
    annotations: tuple[Annotation, ...]


@dataclass(eq=False, slots=True)
class ActionRef(Node):
    """A reference to an action in a table's action list, entries or default action: `name` or
    `name(arguments)`.

    arguments: None where the reference has no parentheses.
    """

    name: str
    absolute: bool
    arguments: tuple[Argument, ...] | None
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class TableEntry(Node):
    """An entry of a table: `const priority=p: keyset : action @annotations;`.

    keyset: one expression, or a parenthesized ListExpression if the table has several keys.
    """

    keyset: Expression
    action: ActionRef
    annotations: tuple[Annotation, ...]
    priority: Expression | None = None
    constant: bool = False


@dataclass(eq=False, slots=True)
class TableProperty(Node):
    """A property other than key, actions, entries and default_action: `[const] name = value;`."""

    name: str
    value: Expression
    constant: bool
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class TableDeclaration(Declaration):
    keys: tuple[KeyElement, ...] = ()
    actions: tuple[ActionRef, ...] = ()
    entries: tuple[TableEntry, ...] = ()
    entries_constant: bool = False
    entries_annotations: tuple[Annotation, ...] = ()
    default_action: ActionRef | None = None
    default_constant: bool = False
    properties: tuple[TableProperty, ...] = ()
    # which of key, actions, entries, default_action were written at all
    written: frozenset[str] = frozenset()

    def property(self, name: str) -> TableProperty | None:
        return next((p for p in self.properties if p.name == name), None)


@dataclass(eq=False, slots=True)
class Program(Node):
    declarations: tuple[Declaration, ...]
    # annotations without a declaration, as `@pragma` lines at the end of a file
    annotations: tuple[Annotation, ...] = field(default=())

"""Statements of apply blocks, actions, functions and parser states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agglab.compiler.ast.expressions import Call, Expression
from agglab.compiler.ast.node import Annotation, Node
from agglab.compiler.source import Position

if TYPE_CHECKING:
    from agglab.compiler.ast.declarations import Declaration, Variable


@dataclass(eq=False, slots=True)
class Statement(Node):
    """Declarations that may stand among statements derive from Declaration instead."""


@dataclass(eq=False, slots=True)
class Assignment(Statement):
    """`left operator= right`; operator is "" for plain `=`, else `+`, `|+|`, `<<`, ..."""

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
    """label is DefaultKeyset for `default`; body None falls through to the next case."""

    label: Expression
    body: Block | None


@dataclass(eq=False, slots=True)
class Switch(Statement):
    subject: Expression
    cases: tuple[SwitchCase, ...]


@dataclass(eq=False, slots=True)
class For(Statement):
    """`for (initial; condition; updates) body`."""

    initial: tuple[Statement | Declaration, ...]
    condition: Expression
    updates: tuple[Statement, ...]
    body: Statement
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class ForIn(Statement):
    """`for (variable in collection) body`.

    collection: a Range, a list or an array.
    """

    variable: Variable
    collection: Expression
    body: Statement
    annotations: tuple[Annotation, ...] = ()

"""The classes of statements: primitives, ifs, jumps and table applications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4native.compiler.backend.ir.expressions import Const, Expr, FieldRef
from p4native.compiler.source import Position


@dataclass
class Statement:
    position: Position


@dataclass
class Primitive(Statement):
    op: str
    parameters: tuple[Expr, ...]


@dataclass
class If(Statement):
    condition: Expr
    then: list[Statement]
    otherwise: list[Statement]


@dataclass
class Goto(Statement):
    label: int


@dataclass
class Label(Statement):
    label: int


@dataclass
class Exit(Statement):
    """A statement that ends the pipeline for this packet."""


@dataclass
class Apply(Statement):
    """One application of a table. The code that follows may depend on whether the table hit or on
    the action that the table ran.

    kind: "next", "hit" (branches "hit" and "miss") or "action" (branches by the action's name). An
    action without a branch goes to `default`.
    """

    table: str
    kind: str = "next"
    branches: dict[str, list[Statement]] = field(default_factory=dict)
    default: list[Statement] = field(default_factory=list)
    # variable and value by which a table applied at several places knows this one
    caller: tuple[FieldRef, Const] | None = None


def bodies(statement: Statement) -> Iterator[list[Statement]]:
    """Yields the statement lists directly below a statement."""
    if isinstance(statement, If):
        yield statement.then
        yield statement.otherwise
    elif isinstance(statement, Apply):
        yield from statement.branches.values()
        yield statement.default


def flatten(statements: list[Statement]) -> Iterator[Statement]:
    """Yields the statements and all statements nested in them."""
    for statement in statements:
        yield statement
        for body in bodies(statement):
            yield from flatten(body)

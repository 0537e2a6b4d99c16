"""Expressions, keysets among them."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.compiler.ast.node import Node
from agglab.compiler.ast.typerefs import TypeRef
from agglab.compiler.source import Position


@dataclass(eq=False, slots=True)
class Expression(Node):
    pass


@dataclass(eq=False, slots=True)
class IntLiteral(Expression):
    """width None: arbitrary precision; else `8w255` (signed False) or `8s255` (signed True)."""

    value: int
    width: int | None = None
    signed: bool = False


@dataclass(eq=False, slots=True)
class BoolLiteral(Expression):
    value: bool


@dataclass(eq=False, slots=True)
class StringLiteral(Expression):
    value: str


@dataclass(eq=False, slots=True)
class NameExpression(Expression):
    """`x` or `.x` where x is not a type."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class TypeExpression(Expression):
    """A type used as the base of a member: `Suits.Clubs`, `error.NoError`, `Inner.apply(...)`."""

    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class ThisExpression(Expression):
    """`this` in the functions of an extern instance's initializer."""


@dataclass(eq=False, slots=True)
class Member(Expression):
    """`base.member`; position is all of it where it is on one line, member_position the name."""

    base: Expression
    member: str
    member_position: Position


@dataclass(eq=False, slots=True)
class Index(Expression):
    """`base[index]`."""

    base: Expression
    index: Expression


@dataclass(eq=False, slots=True)
class Slice(Expression):
    """`base[high:low]`, both ends included."""

    base: Expression
    high: Expression
    low: Expression


@dataclass(eq=False, slots=True)
class PlusSlice(Expression):
    """`base[start +: width]`: the width bits from bit start up; start need not be constant."""

    base: Expression
    start: Expression
    width: Expression


@dataclass(eq=False, slots=True)
class Argument(Node):
    """`value`, `name = value`; value None stands for `_`."""

    name: str | None
    value: Expression | None


@dataclass(eq=False, slots=True)
class Call(Expression):
    """`callee<type_arguments>(arguments)`: function, method, action, apply."""

    callee: Expression
    type_arguments: tuple[TypeRef, ...]
    arguments: tuple[Argument, ...]


@dataclass(eq=False, slots=True)
class ConstructorCall(Expression):
    """`Type(arguments)`, as in `V1Switch(P(), ...)`."""

    type_ref: TypeRef
    arguments: tuple[Argument, ...]


@dataclass(eq=False, slots=True)
class Unary(Expression):
    """operator: `-`, `+`, `~`, `!`."""

    operator: str
    operand: Expression


@dataclass(eq=False, slots=True)
class Binary(Expression):
    """operator: + - |+| |-| * / % << >> & | ^ ++ == != < > <= >= && ||."""

    operator: str
    left: Expression
    right: Expression


@dataclass(eq=False, slots=True)
class Cast(Expression):
    """`(type_ref) operand`."""

    type_ref: TypeRef
    operand: Expression


@dataclass(eq=False, slots=True)
class Conditional(Expression):
    """`condition ? then : otherwise`; parenthesized: between parentheses of its own."""

    condition: Expression
    then: Expression
    otherwise: Expression
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class ListExpression(Expression):
    """`{ a, b, c }`; has_dots for a final `...`; also a keyset tuple `(a, b)` (parenthesized)."""

    elements: tuple[Expression, ...]
    has_dots: bool = False
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class StructExpression(Expression):
    """`{ a = x, b = y }`; has_dots for a final `...`; members' order is as written."""

    members: tuple[StructMember, ...]
    has_dots: bool = False


@dataclass(eq=False, slots=True)
class StructMember(Node):
    """`name = value`."""

    name: str
    value: Expression


@dataclass(eq=False, slots=True)
class InvalidHeader(Expression):
    """`{#}`."""


@dataclass(eq=False, slots=True)
class DefaultInitializer(Expression):
    """`...`: the default value of whatever type is expected here."""


@dataclass(eq=False, slots=True)
class Range(Expression):
    """`low .. high` in keysets and for-in loops, both ends included."""

    low: Expression
    high: Expression


@dataclass(eq=False, slots=True)
class Mask(Expression):
    """`value &&& mask` in keysets."""

    value: Expression
    mask: Expression


@dataclass(eq=False, slots=True)
class DefaultKeyset(Expression):
    """`default` or `_` in keysets and switch labels; written is which of the two."""

    written: str = "default"

"""The classes of a program's expressions, which form a type-checked tree. The numbers in them
(Data) are integers of unbounded size."""

from __future__ import annotations

from dataclasses import dataclass

from p4native.switch.storage import Field, Header, Register, Stack, Union, UnionStack


@dataclass(frozen=True, eq=False)
class Expression:
    """The base class of the tree's nodes. path: the node's place in the JSON."""

    path: str


@dataclass(frozen=True, eq=False)
class Data(Expression):
    """The base class of expressions whose value is an integer."""


@dataclass(frozen=True, eq=False)
class Bool(Expression):
    """The base class of expressions whose value is a truth value."""


@dataclass(frozen=True, eq=False)
class HeaderExpression(Expression):
    """The base class of expressions that stand for a header. All headers that one expression may
    stand for have the same type."""


@dataclass(frozen=True, eq=False)
class Const(Data):
    value: int


@dataclass(frozen=True, eq=False)
class Local(Data):
    """Parameter number `index` of the action that contains the expression."""

    index: int
    bits: int


@dataclass(frozen=True, eq=False)
class RegisterCell(Data):
    register: Register
    index: Data


@dataclass(frozen=True, eq=False)
class FieldOf(Data):
    """A field of a header. field: None for the hidden field `$valid$`."""

    header: HeaderExpression
    field: Field | None


@dataclass(frozen=True, eq=False)
class Lookahead(Data):
    """Bits of the packet that the parser has not reached yet: `bits` bits, from `offset` bits
    behind the parser's position. Only the parser can use it."""

    offset: int
    bits: int


@dataclass(frozen=True, eq=False)
class StackCount(Data):
    """The number of headers in a stack (`size_stack`), less `minus`, which is 1 for
    `last_stack_index`."""

    stack: Stack | UnionStack
    minus: int


@dataclass(frozen=True, eq=False)
class Arithmetic(Data):
    """An operation on two integers: `+ - * / % << >> & | ^`, or a cast (two_comp_mod, usat_cast,
    sat_cast), whose right operand is the width."""

    op: str
    left: Data
    right: Data


@dataclass(frozen=True, eq=False)
class Complement(Data):
    value: Data


@dataclass(frozen=True, eq=False)
class ChooseData(Data):
    condition: Bool
    yes: Data
    no: Data


@dataclass(frozen=True, eq=False)
class BoolToData(Data):
    value: Bool


@dataclass(frozen=True, eq=False)
class BoolConstant(Bool):
    value: bool


@dataclass(frozen=True, eq=False)
class DataToBool(Bool):
    value: Data


@dataclass(frozen=True, eq=False)
class Compare(Bool):
    """A comparison of two integers: `== != < <= > >=`."""

    op: str
    left: Data
    right: Data


@dataclass(frozen=True, eq=False)
class Logic(Bool):
    """An operation on two truth values: `and or == !=`."""

    op: str
    left: Bool
    right: Bool


@dataclass(frozen=True, eq=False)
class Not(Bool):
    value: Bool


@dataclass(frozen=True, eq=False)
class ChooseBool(Bool):
    condition: Bool
    yes: Bool
    no: Bool


@dataclass(frozen=True, eq=False)
class Valid(Bool):
    header: HeaderExpression


@dataclass(frozen=True, eq=False)
class ValidUnion(Bool):
    union: UnionExpression


@dataclass(frozen=True, eq=False)
class SameHeader(Bool):
    left: HeaderExpression
    right: HeaderExpression


@dataclass(frozen=True, eq=False)
class SameVariable(Bool):
    """Equality of two fields of variable width, which are compared as numbers."""

    left: FieldOf
    right: FieldOf


@dataclass(frozen=True, eq=False)
class SameUnion(Bool):
    left: UnionExpression
    right: UnionExpression


@dataclass(frozen=True, eq=False)
class HeaderRef(HeaderExpression):
    header: Header


@dataclass(frozen=True, eq=False)
class StackElement(HeaderExpression):
    """The element of a stack at a computed index. Reading an element outside the stack gives 0, and
    writing to it does nothing."""

    stack: Stack
    index: Data


@dataclass(frozen=True, eq=False)
class LastElement(HeaderExpression):
    """The last header parsed into a stack."""

    stack: Stack


@dataclass(frozen=True, eq=False)
class UnionMember(HeaderExpression):
    union: UnionExpression
    member: int


@dataclass(frozen=True, eq=False)
class ChooseHeader(HeaderExpression):
    condition: Bool
    yes: HeaderExpression
    no: HeaderExpression


@dataclass(frozen=True, eq=False)
class UnionExpression(Expression):
    """The base class of expressions that stand for a header union."""


@dataclass(frozen=True, eq=False)
class UnionRef(UnionExpression):
    union: Union


@dataclass(frozen=True, eq=False)
class UnionElement(UnionExpression):
    stack: UnionStack
    index: Data


@dataclass(frozen=True, eq=False)
class LastUnion(UnionExpression):
    """The last union parsed into a union stack."""

    stack: UnionStack


@dataclass(frozen=True, eq=False)
class StackRef(Expression):
    stack: Stack


@dataclass(frozen=True, eq=False)
class UnionStackRef(Expression):
    stack: UnionStack

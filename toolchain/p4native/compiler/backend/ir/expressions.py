"""The classes of expressions: unbounded integers, booleans and references to BMv2 objects, as in
BMv2 JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4native.compiler.backend.ranges import UNBOUNDED, Range, op_range, width_range

BOOLEAN_OPS = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b", "valid", "valid_union"}
)


@dataclass(frozen=True)
class Expr:
    @property
    def range(self) -> Range:
        return UNBOUNDED

    @property
    def is_boolean(self) -> bool:
        return False


@dataclass(frozen=True)
class Const(Expr):
    """A constant. width: the bits of its P4 type, which determine how many digits are printed."""

    value: int
    width: int = 0

    @property
    def range(self) -> Range:
        return (self.value, self.value)


@dataclass(frozen=True)
class BoolConstant(Expr):
    value: bool

    @property
    def is_boolean(self) -> bool:
        return True


@dataclass(frozen=True)
class FieldRef(Expr):
    """A field of a header instance. A boolean is a field of one bit, which is read as a number."""

    header: str
    field: str
    width: int
    signed: bool = False

    @property
    def range(self) -> Range:
        return width_range(self.width, self.signed)


@dataclass(frozen=True)
class LastField(Expr):
    """A field of the last valid element of a header stack (`stack_field`)."""

    stack: str
    field: str
    width: int
    signed: bool = False

    @property
    def range(self) -> Range:
        return width_range(self.width, self.signed)


@dataclass(frozen=True)
class UnionLastField(Expr):
    """A field of the last valid union of a stack of unions, which can only be a transition key."""

    stack: str
    member: str
    field: str
    width: int


@dataclass(frozen=True)
class ActionData(Expr):
    """An argument that a table entry gives to an action. The argument is always unsigned."""

    index: int
    width: int

    @property
    def range(self) -> Range:
        return width_range(self.width, False)


@dataclass(frozen=True)
class RegisterCell(Expr):
    """The value of a register cell at the time when the expression is evaluated. The value is
    always unsigned."""

    array: str
    index: Expr
    width: int

    @property
    def range(self) -> Range:
        return width_range(self.width, False)


@dataclass(frozen=True)
class ObjectRef(Expr):
    """A reference by name to a header, header_stack, header_union, register_array, calculation or
    the like."""

    kind: str
    name: str


@dataclass(frozen=True)
class Text(Expr):
    value: str


@dataclass(frozen=True)
class Vector(Expr):
    """The values of a log message."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Lookahead(Expr):
    """Bits of the packet behind the parser's position. Only the operation `set` and transition keys
    can use them."""

    offset: int
    width: int

    @property
    def range(self) -> Range:
        return width_range(self.width, False)


@dataclass(frozen=True)
class Access(Expr):
    """A member of a header or union that is found only at run time: BMv2's `access_field` of a
    header, or `access_union_header` of a union."""

    op: str
    base: Expr
    offset: int
    width: int = 0
    signed: bool = False

    @property
    def range(self) -> Range:
        return width_range(self.width, self.signed) if self.op == "access_field" else UNBOUNDED


@dataclass(frozen=True)
class Op(Expr):
    """An operator with its operands. left: None for unary operators. condition: only used by
    `?`."""

    op: str
    left: Expr | None
    right: Expr
    condition: Expr | None = None
    _range: Range = field(default=UNBOUNDED, compare=False, repr=False)
    # operators on the longest way down, this one included
    depth: int = field(default=1, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_range", self._bounds())
        below = [o.depth for o in operands(self) if isinstance(o, Op)]
        object.__setattr__(self, "depth", 1 + max(below, default=0))

    def _bounds(self) -> Range:
        if self.op in BOOLEAN_OPS:
            return UNBOUNDED
        left = self.left.range if self.left is not None else (0, 0)
        return op_range(self.op, left, self.right.range)

    @property
    def range(self) -> Range:
        return self._range

    @property
    def is_boolean(self) -> bool:
        return self.right.is_boolean if self.op == "?" else self.op in BOOLEAN_OPS


def operands(expr: Expr) -> Iterator[Expr]:
    """Yields the expressions directly below an expression."""
    if isinstance(expr, Op):
        yield from (e for e in (expr.condition, expr.left, expr.right) if e is not None)
    elif isinstance(expr, Access):
        yield expr.base
    elif isinstance(expr, RegisterCell):
        yield expr.index
    elif isinstance(expr, Vector):
        yield from expr.items


def walk(expr: Expr) -> Iterator[Expr]:
    stack = [expr]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(operands(current))

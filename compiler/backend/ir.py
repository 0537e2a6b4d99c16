"""The back end's intermediate representation: what BMv2 can do, as values.

Expressions are unbounded integers, booleans and references to BMv2 objects, as in the JSON's
`expression`; statements are primitives, ifs, jumps and table applications. Sub-controls, functions
and actions are inlined by the time a program is in this form. Imports positions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler.backend.ranges import UNBOUNDED, Range, op_range, width_range
from compiler.source import Position

BOOLEAN_OPS = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b", "valid", "valid_union"}
)


# ----------------------------------------------------------------- expressions


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
    """width: bits of the P4 type, for how many digits are printed."""

    value: int
    width: int = 0

    @property
    def range(self) -> Range:
        return (self.value, self.value)


@dataclass(frozen=True)
class Truth(Expr):
    value: bool

    @property
    def is_boolean(self) -> bool:
        return True


@dataclass(frozen=True)
class FieldRef(Expr):
    """A field of a header instance; booleans are fields of one bit, read as data."""

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
    """A field of the last valid union of a stack of unions; transition keys only."""

    stack: str
    member: str
    field: str
    width: int


@dataclass(frozen=True)
class ActionData(Expr):
    """An action's run-time argument, always unsigned."""

    index: int
    width: int

    @property
    def range(self) -> Range:
        return width_range(self.width, False)


@dataclass(frozen=True)
class ObjectRef(Expr):
    """A header, header_stack, header_union, register_array, calculation, ... by name."""

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
    """Bits ahead of the parser's position: `set` and transition keys only."""

    offset: int
    width: int

    @property
    def range(self) -> Range:
        return width_range(self.width, False)


@dataclass(frozen=True)
class Access(Expr):
    """`access_field` of a header or `access_union_header` of a union found at run time."""

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
    """An operator; left is None for unary ones, condition belongs to `?` alone."""

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
    """The expressions directly below expr."""
    if isinstance(expr, Op):
        yield from (e for e in (expr.condition, expr.left, expr.right) if e is not None)
    elif isinstance(expr, Access):
        yield expr.base
    elif isinstance(expr, Vector):
        yield from expr.items


def walk(expr: Expr) -> Iterator[Expr]:
    stack = [expr]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(operands(current))


# ------------------------------------------------------------------ statements


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
    """Ends the pipeline for this packet."""


@dataclass
class Apply(Statement):
    """One application of a table; what follows may depend on hit or on the action run.

    kind: "next", "hit" (branches "hit" and "miss") or "action" (branches by the action's name;
    names not listed go to `default`).
    """

    table: str
    kind: str = "next"
    branches: dict[str, list[Statement]] = field(default_factory=dict)
    default: list[Statement] = field(default_factory=list)
    # variable and value by which a table applied at several places knows this one
    caller: tuple[FieldRef, Const] | None = None


def bodies(statement: Statement) -> Iterator[list[Statement]]:
    """The statement lists directly below statement."""
    if isinstance(statement, If):
        yield statement.then
        yield statement.otherwise
    elif isinstance(statement, Apply):
        yield from statement.branches.values()
        yield statement.default


def flatten(statements: list[Statement]) -> Iterator[Statement]:
    """statements and all that is nested in them."""
    for statement in statements:
        yield statement
        for body in bodies(statement):
            yield from flatten(body)


# --------------------------------------------------------------------- objects


@dataclass
class HeaderType:
    """fields: (name, bits or "*", signed); max_length_bytes only with a variable field."""

    name: str
    fields: list[tuple[str, int | str, bool]]
    max_length_bytes: int | None = None


@dataclass
class HeaderInstance:
    name: str
    type_name: str
    metadata: bool = False


@dataclass
class HeaderStack:
    name: str
    type_name: str
    members: list[str]


@dataclass
class UnionType:
    """headers: (member's name, header type's name)."""

    name: str
    headers: list[tuple[str, str]]


@dataclass
class UnionInstance:
    name: str
    type_name: str
    members: list[str]


@dataclass
class Action:
    name: str
    parameters: list[tuple[str, int]]
    primitives: list[Primitive]
    position: Position
    # what the primitives are assembled from
    body: list[Statement] = field(default_factory=list)


@dataclass
class Key:
    match_kind: str
    name: str
    target: FieldRef


@dataclass
class Entry:
    """keys: (kind, value, other): prefix length, mask or end of the range by kind."""

    keys: list[tuple[str, int, int]]
    action: Action
    arguments: list[int]
    priority: int
    position: Position


@dataclass
class ActionProfile:
    """selector: (hash algorithm, input) or None."""

    name: str
    size: int
    selector: tuple[str, list[Expr]] | None
    position: Position


@dataclass
class Table:
    name: str
    position: Position
    keys: list[Key]
    actions: list[Action]
    size: int = 1024
    default_action: Action | None = None
    default_arguments: list[int] = field(default_factory=list)
    default_constant: bool = False
    entries: list[Entry] | None = None
    support_timeout: bool = False
    counters: bool = False
    meter: str | None = None
    profile: ActionProfile | None = None
    # where control goes next, filled by the graph pass
    next_tables: dict[str, str | None] = field(default_factory=dict)
    base_default_next: str | None = None

    @property
    def match_type(self) -> str:
        kinds = {key.match_kind for key in self.keys}
        return next((k for k in ("range", "ternary", "lpm") if k in kinds), "exact")


@dataclass
class Conditional:
    name: str
    condition: Expr
    position: Position
    true_next: str | None = None
    false_next: str | None = None


@dataclass
class Pipeline:
    name: str
    position: Position
    tables: list[Table] = field(default_factory=list)
    conditionals: list[Conditional] = field(default_factory=list)
    profiles: list[ActionProfile] = field(default_factory=list)
    init: str | None = None
    body: list[Statement] = field(default_factory=list)


@dataclass
class ParserOp:
    """op as in the JSON; primitive holds the call where op is "primitive"."""

    op: str
    parameters: tuple[Expr, ...] = ()
    primitive: Primitive | None = None
    # "regular", "stack" or "union_stack" for extracts, with the target's name(s)
    extract: tuple[str, str | tuple[str, str]] | None = None


@dataclass
class Transition:
    """kind: "default", "hexstr" or "parse_vset"; value: with every key padded to bytes."""

    kind: str
    next_state: str | None
    value: int | str = 0
    mask: int | None = None


@dataclass
class ParserState:
    name: str
    position: Position
    ops: list[ParserOp] = field(default_factory=list)
    keys: list[Expr] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)

    @property
    def key_bytes(self) -> int:
        return sum((key.width + 7) // 8 for key in self.keys)  # type: ignore[attr-defined]


@dataclass
class Calculation:
    """input: (expression, bits of a constant); payload: the rest of the packet follows."""

    name: str
    algorithm: str
    input: list[Expr]
    payload: bool
    position: Position


@dataclass
class Checksum:
    name: str
    target: FieldRef
    calculation: str
    condition: Expr
    verify: bool
    position: Position


@dataclass
class Array:
    """A register, counter or meter array; direct ones are bound to a table."""

    name: str
    position: Position
    size: int
    width: int = 0
    table: str | None = None
    unit: str = ""
    result: FieldRef | None = None


@dataclass
class FieldList:
    name: str
    identifier: int
    elements: list[Expr]
    position: Position


@dataclass
class Program:
    """Everything the JSON holds, in the order in which it is printed."""

    name: str
    header_types: list[HeaderType] = field(default_factory=list)
    headers: list[HeaderInstance] = field(default_factory=list)
    header_stacks: list[HeaderStack] = field(default_factory=list)
    union_types: list[UnionType] = field(default_factory=list)
    unions: list[UnionInstance] = field(default_factory=list)
    union_stacks: list[HeaderStack] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    learn_lists: list[FieldList] = field(default_factory=list)
    errors: list[tuple[str, int]] = field(default_factory=list)
    enums: list[tuple[str, list[tuple[str, int]]]] = field(default_factory=list)
    init_state: str = "start"
    parser_states: list[ParserState] = field(default_factory=list)
    # name, bits, most members, place
    value_sets: list[tuple[str, int, int, Position]] = field(default_factory=list)
    deparse_order: list[str] = field(default_factory=list)
    deparser_position: Position | None = None
    meters: list[Array] = field(default_factory=list)
    counters: list[Array] = field(default_factory=list)
    registers: list[Array] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)

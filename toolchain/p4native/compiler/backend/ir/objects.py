"""The classes of objects that BMv2 JSON declares (header types, tables, parser states, arrays), and
of the whole program."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.compiler.backend.ir.expressions import Expr, FieldRef
from p4native.compiler.backend.ir.statements import Primitive, Statement
from p4native.compiler.source import Position


@dataclass
class HeaderType:
    """A header type. fields: (name, bits or "*", signed). max_length_bytes: only set if the type
    has a variable field."""

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
    """The type of a header union. headers: (member's name, header type's name)."""

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
    """A table entry. keys: (kind, value, other) for each key. `other` is the prefix length, the
    mask or the end of the range, as the kind requires."""

    keys: list[tuple[str, int, int]]
    action: Action
    arguments: list[int]
    priority: int
    position: Position


@dataclass
class ActionProfile:
    """An action profile. selector: the (hash algorithm, input) by which packets choose members of a
    group, or None."""

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
    """An operation of a parser state. op: the operation's name in the JSON. primitive: the
    primitive to call if op is "primitive"."""

    op: str
    parameters: tuple[Expr, ...] = ()
    primitive: Primitive | None = None
    # "regular", "stack" or "union_stack" for extracts, with the target's name(s)
    extract: tuple[str, str | tuple[str, str]] | None = None


@dataclass
class Transition:
    """A transition of a parser state. kind: "default", "hexstr" or "parse_vset". value: the values
    of all keys, one after the other, each padded to whole bytes."""

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
    """A calculation. input: the expressions that are hashed, in order. payload: whether the rest of
    the packet follows them."""

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
    """An array of registers, counters or meters. A direct array belongs to a table."""

    name: str
    position: Position
    size: int
    width: int = 0
    table: str | None = None
    unit: str = ""
    result: FieldRef | None = None


@dataclass
class ExternInstance:
    """An object whose type a module loaded by BMv2 adds, with the arguments of the object's
    constructor by name."""

    name: str
    type_name: str
    attributes: list[tuple[str, Expr]]
    position: Position


@dataclass
class FieldList:
    name: str
    identifier: int
    elements: list[Expr]
    position: Position


@dataclass
class Program:
    """A whole program: everything that BMv2 JSON holds, in the order in which it is printed."""

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
    extern_instances: list[ExternInstance] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)

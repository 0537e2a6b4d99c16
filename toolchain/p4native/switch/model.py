"""The classes that describe a program. The reader of BMv2 JSON makes their instances, and the
translator to C uses them."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.switch.expression import Bool, Data, Expression, FieldOf
from p4native.switch.storage import Field, Header, Register, Stack, UnionStack


@dataclass(frozen=True)
class Param:
    """A parameter that the control plane gives to an action."""

    name: str
    bits: int

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8


@dataclass(eq=False)
class Primitive:
    """One step of an action. op: its operation, with checked arguments (see
    p4native/switch/bmv2_json/actions.py)."""

    op: str
    args: tuple[Argument, ...]
    path: str
    source: str = ""
    """The P4 text from which the step comes, as Node.source gives it. Members of this name have the
    same meaning everywhere in this module."""


@dataclass(eq=False)
class Action:
    """An action. index: its position in the JSON. Two actions may have the same name, but not the
    same index."""

    name: str
    index: int
    id: int
    params: tuple[Param, ...] = ()
    primitives: tuple[Primitive, ...] = ()

    @property
    def args_bytes(self) -> int:
        return sum(p.bytes for p in self.params)


@dataclass(frozen=True)
class Key:
    """One field of a table's key. kind: exact, lpm, ternary, range or valid."""

    name: str
    kind: str
    bits: int
    value: FieldOf
    mask: int | None = None

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8


@dataclass(frozen=True)
class ConstEntry:
    """An entry that the program itself contains. key, mask: bytes in the layout of pipeline.h."""

    key: bytes
    mask: bytes
    priority: int
    action: Action
    args: tuple[int, ...]


@dataclass(eq=False)
class Profile:
    """An action profile. It has a selector if the control plane can make groups of its members."""

    name: str
    index: int
    id: int
    selector: Calculation | None = None
    actions: tuple[Action, ...] = ()
    """The actions that its members can hold: those of all its tables, with one action for each
    name."""

    def action(self, name: str) -> Action | None:
        """Returns the profile's action of that name, or None."""
        return next((a for a in self.actions if a.name == name), None)


@dataclass(eq=False)
class Table:
    """A match-action table. index: the number that pipeline.h calls `table`."""

    name: str
    index: int
    id: int
    match_type: str
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    max_size: int
    const_entries: bool
    const_default: bool
    const_default_action: bool
    direct_counters: bool
    support_timeout: bool
    entries: tuple[ConstEntry, ...] = ()
    default_action: Action | None = None
    default_args: tuple[int, ...] = ()
    next_by_action: dict[int, str | None] = field(default_factory=dict)
    """The next node for each index of an action."""
    hit_miss: tuple[str | None, str | None] | None = None
    """The (next node after a hit, next node after a miss), if the program branches on hits."""
    base_default_next: str | None = None
    path: str = ""
    source: str = ""
    meter: Meter | None = None
    profile: Profile | None = None
    """The action profile to whose members or groups the table's entries refer, if it has one."""

    @property
    def key_bytes(self) -> int:
        return sum(k.bytes for k in self.keys)

    def action(self, name: str) -> Action | None:
        """Returns the table's action of that name, or None."""
        return next((a for a in self.actions if a.name == name), None)

    def outcomes(self) -> dict[int, Action]:
        """Returns the possible results of a look-up: an action's index and the action to execute.
        In a table with a profile, the index is that of the profile's action with the same name."""
        if self.profile is None:
            return {action.index: action for action in self.actions}
        return {a.index: self.action(a.name) or a for a in self.profile.actions}


@dataclass(eq=False)
class Conditional:
    """A branch in a control flow, which goes on at one of two nodes."""

    name: str
    condition: Bool
    true_next: str | None
    false_next: str | None
    source: str = ""


@dataclass(eq=False)
class ActionCall:
    """An action executed without a table."""

    name: str
    action: Action
    next: str | None


@dataclass(eq=False)
class Control:
    """A control flow (`ingress` or `egress`). nodes: its tables, conditionals and action calls by
    name. No packet reaches a node twice."""

    name: str
    first: str | None
    nodes: dict[str, Table | Conditional | ActionCall]


@dataclass(frozen=True)
class Counter:
    """An array of `size` counters of packets and bytes, or the direct counter of `table`."""

    name: str
    index: int
    id: int
    size: int
    table: str | None = None


@dataclass(frozen=True)
class Meter:
    """An array of `size` meters, or the direct meter of `table`, whose color is written to
    `target`."""

    name: str
    index: int
    id: int
    size: int
    bytes: bool
    table: str | None = None
    target: FieldOf | None = None


@dataclass(frozen=True)
class LearnList:
    """The fields that one kind of digest consists of."""

    name: str
    index: int
    id: int
    fields: tuple[tuple[Header, Field], ...]


@dataclass(eq=False)
class ValueSet:
    """A parser value set. bits: the widths of the fields that are compared with it."""

    name: str
    index: int
    max_size: int | None
    bits: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        return sum((b + 7) // 8 for b in self.bits)


@dataclass(eq=False)
class Calculation:
    """A hash over fields, constants, headers and the payload."""

    name: str
    index: int
    algorithm: str
    inputs: tuple[CalculationInput, ...]


@dataclass(frozen=True)
class CalculationInput:
    """One input of a calculation. kind: field, constant, header or payload."""

    kind: str
    header: Header | None = None
    field: Field | None = None
    value: int = 0
    bits: int = 0


@dataclass(eq=False)
class Checksum:
    """A calculation whose result is a header's checksum. The checksum is verified after parsing,
    written before deparsing, or both."""

    name: str
    header: Header
    field: Field
    calculation: Calculation
    condition: Bool | None
    update: bool
    verify: bool


@dataclass(frozen=True)
class FieldList:
    """The metadata that a copy keeps when a packet is cloned, resubmitted or recirculated."""

    id: int
    fields: tuple[tuple[Header, Field], ...]


@dataclass(eq=False)
class ParserOp:
    """An operation of a parser state. op: extract, set, verify, shift, advance or primitive, which
    also determines the members that are used."""

    op: str
    path: str
    target: Header | Stack | tuple[UnionStack, int] | None = None
    destination: Expression | None = None
    value: Data | None = None
    length: Data | None = None
    condition: Bool | None = None
    primitive: Primitive | None = None


@dataclass(frozen=True)
class Transition:
    """A transition of a parser state. value, mask: the bytes with which the key is compared. value
    is None if the masked key has to be in the value set."""

    value: bytes | None
    mask: bytes | None
    next: str | None
    value_set: ValueSet | None = None


@dataclass(eq=False)
class State:
    """A parser state. default: the next state if no transition matches."""

    name: str
    ops: tuple[ParserOp, ...]
    key: tuple[Data, ...]
    key_bits: tuple[int, ...]
    transitions: tuple[Transition, ...]
    default: str | None
    source: str = ""


@dataclass(eq=False)
class Parser:
    """A parser. states: its states by name."""

    first: str | None
    states: dict[str, State]


@dataclass(eq=False)
class Deparser:
    """The deparser: the headers in the order in which they are sent, and the primitives that run
    before."""

    headers: tuple[Header, ...]
    primitives: tuple[Primitive, ...]


Object = Register | Counter | Meter | LearnList | Calculation
Argument = Expression | Object | str | tuple[Data | None, ...]

"""The program that BMv2 JSON describes, as values that the reader makes for the translator."""

from __future__ import annotations

from dataclasses import dataclass, field

from agglab.switch.expression import Bool, Data, Expression, FieldOf
from agglab.switch.storage import Field, Header, Register, Stack, UnionStack


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
    """One step of an action: `op` with checked arguments (see switch/bmv2_json/actions.py)."""

    op: str
    args: tuple[Argument, ...]
    path: str
    source: str = ""
    """The P4 text it comes from, as Node.source gives it; so everywhere here."""


@dataclass(eq=False)
class Action:
    """An action; `index` is its position in the JSON (names may repeat, indexes do not)."""

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
    """One field of a table's key; `kind` is exact, lpm, ternary, range or valid."""

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
    """An entry of the program itself; key and mask are laid out as pipeline.h says."""

    key: bytes
    mask: bytes
    priority: int
    action: Action
    args: tuple[int, ...]


@dataclass(eq=False)
class Profile:
    """An action profile, with a selector if groups of members can be made."""

    name: str
    index: int
    id: int
    selector: Calculation | None = None
    actions: tuple[Action, ...] = ()
    """The actions that its members can hold: those of all its tables, one of each name."""

    def action(self, name: str) -> Action | None:
        """The action of that name."""
        return next((a for a in self.actions if a.name == name), None)


@dataclass(eq=False)
class Table:
    """A match-action table; `index` is what pipeline.h calls `table`."""

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
    """Action index -> next node."""
    hit_miss: tuple[str | None, str | None] | None = None
    """(next after a hit, next after a miss) where the program asks for them."""
    base_default_next: str | None = None
    path: str = ""
    source: str = ""
    meter: Meter | None = None
    profile: Profile | None = None
    """The action profile whose members or groups its entries refer to, if it has one."""

    @property
    def key_bytes(self) -> int:
        return sum(k.bytes for k in self.keys)

    def action(self, name: str) -> Action | None:
        """The table's action of that name."""
        return next((a for a in self.actions if a.name == name), None)

    def outcomes(self) -> dict[int, Action]:
        """Returns the possible results of a look-up: an action's index and the action to execute.
        In a table with a profile, the index is that of the profile's action with the same name."""
        if self.profile is None:
            return {action.index: action for action in self.actions}
        return {a.index: self.action(a.name) or a for a in self.profile.actions}


@dataclass(eq=False)
class Conditional:
    """A branch of the control flow."""

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
    """A control flow (`ingress`, `egress`): nodes by name, none of which can be reached twice."""

    name: str
    first: str | None
    nodes: dict[str, Table | Conditional | ActionCall]


@dataclass(frozen=True)
class Counter:
    """An array of `size` packet-and-byte counters, or the direct counter of `table`."""

    name: str
    index: int
    id: int
    size: int
    table: str | None = None


@dataclass(frozen=True)
class Meter:
    """An array of `size` meters, or the direct meter of `table`, whose colour goes to `target`."""

    name: str
    index: int
    id: int
    size: int
    bytes: bool
    table: str | None = None
    target: FieldOf | None = None


@dataclass(frozen=True)
class LearnList:
    """The fields of a digest."""

    name: str
    index: int
    id: int
    fields: tuple[tuple[Header, Field], ...]


@dataclass(eq=False)
class ValueSet:
    """A parser value set; `bits` are the widths of the fields it is compared with."""

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
    """`kind` is field, constant, header or payload."""

    kind: str
    header: Header | None = None
    field: Field | None = None
    value: int = 0
    bits: int = 0


@dataclass(eq=False)
class Checksum:
    """A calculation verified after parsing and/or written before deparsing."""

    name: str
    header: Header
    field: Field
    calculation: Calculation
    condition: Bool | None
    update: bool
    verify: bool


@dataclass(frozen=True)
class FieldList:
    """The metadata that a clone, resubmitted or recirculated packet keeps."""

    id: int
    fields: tuple[tuple[Header, Field], ...]


@dataclass(eq=False)
class ParserOp:
    """`op`: extract, set, verify, shift, advance, primitive; which members count depends on it."""

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
    """`value` and `mask` are the key's bytes; value None: the key, masked, is in the value set."""

    value: bytes | None
    mask: bytes | None
    next: str | None
    value_set: ValueSet | None = None


@dataclass(eq=False)
class State:
    """A parser state; `default` is where no transition matches."""

    name: str
    ops: tuple[ParserOp, ...]
    key: tuple[Data, ...]
    key_bits: tuple[int, ...]
    transitions: tuple[Transition, ...]
    default: str | None
    source: str = ""


@dataclass(eq=False)
class Parser:
    """A parser: states by name."""

    first: str | None
    states: dict[str, State]


@dataclass(eq=False)
class Deparser:
    """Headers in the order they leave, after the deparser's own primitives."""

    headers: tuple[Header, ...]
    primitives: tuple[Primitive, ...]


Object = Register | Counter | Meter | LearnList | Calculation
Argument = Expression | Object | str | tuple[Data | None, ...]

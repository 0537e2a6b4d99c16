"""Indexes a P4Info by id. The index is used to check and translate the messages of clients."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from p4.config.v1 import p4info_pb2, p4types_pb2

from p4native.switch import Program
from p4native.switch.model import Action as ProgramAction
from p4native.switch.model import Table as ProgramTable
from p4native.switch.p4runtime.status import Code, StatusError, invalid, unsupported

WITH_PRIORITY = ("TERNARY", "RANGE", "OPTIONAL")
"""The match kinds whose entries need a priority."""


@dataclass(frozen=True)
class Field:
    """A match field, an action parameter or a field of a controller header."""

    id: int
    name: str
    bits: int
    kind: str = ""
    type: str = ""
    """The name of the P4 type, if it is a type of its own (`type bit<9> port_t`)."""


@dataclass(frozen=True)
class Action:
    """An action and its parameters, in the order in which the program declares them."""

    id: int
    name: str
    params: tuple[Field, ...]


@dataclass(frozen=True)
class Table:
    """A table. scopes: the id of each of its actions -> the places where this action may be
    used."""

    id: int
    name: str
    fields: tuple[Field, ...]
    scopes: dict[int, str]
    constant: bool
    constant_default: bool
    profile: int | None
    direct_counter: bool
    direct_meter: bool
    idle_timeout: bool

    @property
    def needs_priority(self) -> bool:
        """Whether entries of this table have a priority. The priority is then part of an entry's
        key."""
        return any(field.kind in WITH_PRIORITY for field in self.fields)


@dataclass(frozen=True)
class Profile:
    """An action profile. actions: the ids of the actions of its tables."""

    id: int
    name: str
    with_selector: bool
    max_group_size: int
    actions: frozenset[int]


@dataclass(frozen=True)
class ValueSet:
    """A parser value set."""

    id: int
    name: str
    fields: tuple[Field, ...]
    size: int


@dataclass(frozen=True)
class Digest:
    """A digest and the type of its samples."""

    id: int
    name: str
    spec: p4types_pb2.P4DataTypeSpec
    types: p4types_pb2.P4TypeInfo


@dataclass(frozen=True)
class Array:
    """An indirect counter, a meter or a register. kind: for registers only, the type of the cells
    (bit, int or bool)."""

    id: int
    name: str
    size: int
    kind: str = ""
    bits: int = 0


Found = TypeVar("Found")


class P4InfoIndex:
    """The parts of a P4Info that the server uses, by id."""

    def __init__(self, message: p4info_pb2.P4Info) -> None:
        self.message = message
        self.actions = {a.preamble.id: _action(a) for a in message.actions}
        direct = {c.direct_table_id for c in message.direct_counters}
        metered = {m.direct_table_id for m in message.direct_meters}
        self.tables = {t.preamble.id: _table(t, direct, metered) for t in message.tables}
        self.profiles = {p.preamble.id: self._profile(p) for p in message.action_profiles}
        self.meters = {m.preamble.id: _counter(m) for m in message.meters}
        self.value_sets = {v.preamble.id: _value_set(v) for v in message.value_sets}
        self.digests = {d.preamble.id: _digest(d, message.type_info) for d in message.digests}
        self.counters = {c.preamble.id: _counter(c) for c in message.counters}
        self.registers = {r.preamble.id: _register(r) for r in message.registers}
        headers = {h.preamble.name: _fields(h.metadata) for h in message.controller_packet_metadata}
        self.packet_in = headers.get("packet_in", ())
        self.packet_out = headers.get("packet_out", ())
        self._translated = {
            name
            for name, new in entries(message.type_info.new_types)
            if new.WhichOneof("representation") == "translated_type"
        }
        for field in (*self.packet_in, *self.packet_out):
            if field.type in self._translated:
                raise unsupported(f"P4Info: packet metadata {field.name} of a translated type")
        for name, fields in headers.items():
            if (bits := sum(field.bits for field in fields)) % 8:
                raise invalid(f"P4Info: {name}: its {bits} bits are not a whole number of bytes")
        self._check_references()

    def _profile(self, message: p4info_pb2.ActionProfile) -> Profile:
        tables = [self.tables[id_] for id_ in message.table_ids if id_ in self.tables]
        return Profile(
            id=message.preamble.id,
            name=message.preamble.name,
            with_selector=message.with_selector,
            max_group_size=message.max_group_size,
            actions=frozenset(action for table in tables for action in table.scopes),
        )

    def _check_references(self) -> None:
        for table in self.tables.values():
            if table.profile is not None and table.profile not in self.profiles:
                raise invalid(f"P4Info: table {table.name}: no action profile {table.profile:#x}")
            for action_id in table.scopes:
                if action_id not in self.actions:
                    raise invalid(f"P4Info: table {table.name} refers to no action {action_id:#x}")

    def check_program(self, program: Program) -> None:
        """Raises INVALID_ARGUMENT where the P4Info and the device configuration disagree."""
        known = {action.name: action for action in program.actions}
        self._narrow(program, known)
        described = {action.name for action in self.actions.values()}
        for table in self.tables.values():
            _check_table(table, program)
            _check_entries(program.tables[table.name], described)
            for action_id in table.scopes:
                _check_action(self.actions[action_id], known)
        named: tuple[tuple[str, Mapping[int, Any], Mapping[str, Any]], ...] = (
            ("counter", self.counters, program.counters),
            ("meter", self.meters, program.meters),
            ("register", self.registers, program.registers),
            ("action profile", self.profiles, program.profiles),
            ("value set", self.value_sets, program.value_sets),
            ("digest", self.digests, {learned.name: learned for learned in program.learn_lists}),
        )
        for kind, things, existing in named:
            for thing in things.values():
                if thing.name not in existing:
                    raise invalid(f"P4Info: {kind} {thing.name} is not in the device configuration")
                if isinstance(thing, Array):
                    _check_cells(f"{kind} {thing.name}", thing.size, existing[thing.name].size)

    def _narrow(self, program: Program, known: Mapping[str, ProgramAction]) -> None:
        """Sets the width of each field whose type P4Runtime translates to the width that the
        program has for the field."""
        for id_, table in self.tables.items():
            keys = program.tables[table.name].keys if table.name in program.tables else ()
            widths = [key.bits for key in keys]
            self.tables[id_] = replace(table, fields=self._narrowed(table.fields, widths))
        for id_, action in self.actions.items():
            widths = [p.bits for p in known[action.name].params] if action.name in known else []
            self.actions[id_] = replace(action, params=self._narrowed(action.params, widths))

    def _narrowed(self, fields: tuple[Field, ...], widths: list[int]) -> tuple[Field, ...]:
        if len(fields) != len(widths):
            return fields
        return tuple(
            replace(field, bits=width) if field.type in self._translated else field
            for field, width in zip(fields, widths, strict=True)
        )


def entries(known: Any) -> list[tuple[str, Any]]:
    """Returns the entries of a map. Classes generated for protobuf 3 have lists of entries instead
    of maps."""
    return list(known.items()) if hasattr(known, "items") else [(e.key, e.value) for e in known]


def find(
    things: dict[int, Found], kind: str, id_: int, code: Code = Code.INVALID_ARGUMENT
) -> Found:
    """Returns the object with an id. Raises StatusError with the given code if there is none."""
    try:
        return things[id_]
    except KeyError:
        raise StatusError(code, f"{kind}_id {id_:#x}: not in the P4Info") from None


def _fields(messages: Iterable[Any]) -> tuple[Field, ...]:
    fields = tuple(Field(m.id, m.name, m.bitwidth, type=m.type_name.name) for m in messages)
    for field in fields:
        _check_width(field)
    return fields


def _check_width(field: Field) -> None:
    if not field.bits:
        raise unsupported(f"P4Info: {field.name}, a string or translated type")
    if field.bits < 0:
        raise invalid(f"P4Info: {field.name} cannot have a width of {field.bits} bits")


def _name(kind: Any, value: int) -> str:
    """Returns the name of a value of an enumeration of P4Info. Refuses unknown values, because
    clients may send any number."""
    if value not in kind.values():
        raise invalid(f"P4Info: there is no {kind.DESCRIPTOR.name} {value}")
    return str(kind.Name(value))


def _match_field(message: p4info_pb2.MatchField) -> Field:
    kind = _name(p4info_pb2.MatchField.MatchType, message.match_type)
    field = Field(message.id, message.name, message.bitwidth, kind, message.type_name.name)
    if kind == "UNSPECIFIED":
        raise unsupported(f"P4Info: match kind {message.other_match_type!r} of {message.name}")
    _check_width(field)
    return field


def _action(message: p4info_pb2.Action) -> Action:
    return Action(message.preamble.id, message.preamble.name, _fields(message.params))


def _value_set(message: p4info_pb2.ValueSet) -> ValueSet:
    fields = tuple(_match_field(field) for field in message.match)
    return ValueSet(message.preamble.id, message.preamble.name, fields, message.size)


def _digest(message: p4info_pb2.Digest, types: p4types_pb2.P4TypeInfo) -> Digest:
    return Digest(message.preamble.id, message.preamble.name, message.type_spec, types)


def _table(message: p4info_pb2.Table, direct: set[int], metered: set[int]) -> Table:
    notify = p4info_pb2.Table.IdleTimeoutBehavior.Value("NOTIFY_CONTROL")
    scopes = {r.id: _name(p4info_pb2.ActionRef.Scope, r.scope) for r in message.action_refs}
    return Table(
        id=message.preamble.id,
        name=message.preamble.name,
        fields=tuple(_match_field(field) for field in message.match_fields),
        scopes=scopes,
        constant=message.is_const_table,
        constant_default=message.const_default_action_id != 0,
        profile=message.implementation_id or None,
        direct_counter=message.preamble.id in direct,
        direct_meter=message.preamble.id in metered,
        idle_timeout=message.idle_timeout_behavior == notify,
    )


def _counter(message: p4info_pb2.Counter | p4info_pb2.Meter) -> Array:
    return Array(message.preamble.id, message.preamble.name, message.size)


def _register(message: p4info_pb2.Register) -> Array:
    spec = message.type_spec
    kind = spec.WhichOneof("type_spec") or ""
    bits = 1
    if kind == "bitstring":
        kind = spec.bitstring.WhichOneof("type_spec") or ""
        bits = getattr(spec.bitstring, kind).bitwidth if kind else 0
    return Array(message.preamble.id, message.preamble.name, message.size, kind, bits)


def _check_table(table: Table, program: Program) -> None:
    if table.name not in program.tables:
        raise invalid(f"P4Info: table {table.name} is not in the device configuration")
    widths = [key.bits for key in program.tables[table.name].keys]
    if widths != [field.bits for field in table.fields]:
        raise invalid(
            f"P4Info: table {table.name} has other key fields in the device configuration"
        )
    found = program.tables[table.name]
    for what, described, there in (
        ("an action profile", table.profile is not None, found.profile is not None),
        ("a direct counter", table.direct_counter, found.direct_counters),
        ("a direct meter", table.direct_meter, found.meter is not None),
        ("an idle timeout", table.idle_timeout, found.support_timeout),
    ):
        if described and not there:
            raise invalid(
                f"P4Info: table {table.name} has {what}, "
                "but in the device configuration it does not"
            )


def _check_entries(table: ProgramTable, described: Container[str]) -> None:
    for entry in table.entries:
        if entry.action.name not in described:
            raise invalid(
                f"P4Info: action {entry.action.name} is missing; an entry of {table.name} uses it"
            )


def _check_action(action: Action, known: Mapping[str, ProgramAction]) -> None:
    if action.name not in known:
        raise invalid(f"P4Info: action {action.name} is not in the device configuration")
    if len(action.params) != len(known[action.name].params):
        raise invalid(
            f"P4Info: action {action.name} has other parameters in the device configuration"
        )


def _check_cells(what: str, described: int, there: int) -> None:
    if described > there:
        raise invalid(
            f"P4Info: {what} has {described} cells, but in the device configuration it has {there}"
        )

"""The classes that serve the entity TableEntry: they keep the entries of all tables, as clients
wrote them and as the program holds them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, Update

from p4native.switch import Group, Match, Member, MeterRates, Pipeline, PipelineError
from p4native.switch.p4runtime.matches import (
    decode_action,
    decode_match,
    encode_action,
    encode_match,
)
from p4native.switch.p4runtime.p4info import P4InfoIndex, Table, find
from p4native.switch.p4runtime.profiles import ActionProfiles, ActionSet
from p4native.switch.p4runtime.rates import check_counts, decode_rates, encode_rates
from p4native.switch.p4runtime.status import Code, StatusError, invalid, unsupported
from p4native.switch.tables import DEFAULT_ENTRY

Key = tuple[tuple[Match, ...], int]
"""The key of an entry within its table: the match and the priority."""


@dataclass
class Stored:
    """One entry: its canonical message (without counters), and its handle in the running
    program."""

    message: p4runtime_pb2.TableEntry
    handle: int
    made: ActionSet | None = None
    """The group and members that were made for the entry, if it has an action set."""
    last_hit_ns: int = 0
    """The last time at which a look-up found the entry or the entry was written."""
    noticed_ns: int = 0


@dataclass
class Chosen:
    """What an entry leads to: an action, or a member or group of an action profile."""

    message: p4runtime_pb2.TableAction
    action: str = ""
    args: tuple[int, ...] = ()
    target: Member | Group | None = None
    made: ActionSet | None = None


@dataclass
class Contents:
    """One table's entries and default entry. original: the default entry of the program itself."""

    entries: dict[Key, Stored] = field(default_factory=dict)
    original: p4runtime_pb2.TableAction | None = None
    default: p4runtime_pb2.TableEntry | None = None


class TableEntries:
    """The entries of all tables of one loaded program."""

    def __init__(
        self,
        index: P4InfoIndex,
        pipeline: Pipeline,
        profiles: ActionProfiles,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._index = index
        self._pipeline = pipeline
        self._profiles = profiles
        self._clock_ns = clock_ns
        self._by_name = {action.name: action for action in index.actions.values()}
        self._contents = {table.id: self._initial(table) for table in index.tables.values()}

    def _initial(self, table: Table) -> Contents:
        contents = Contents()
        initial = self._pipeline.tables.entries(table.name)
        # The program's own entries have -1, -2, ... in their order; clients see N, N-1, ..., 1.
        lowest = min((entry.priority for entry in initial), default=0)
        for entry in initial:
            message = p4runtime_pb2.TableEntry(
                table_id=table.id,
                match=encode_match(table, entry.match),
                action=encode_action(self._by_name[entry.action], entry.args),
                priority=entry.priority - lowest + 1 if table.needs_priority else 0,
                is_const=entry.const,
            )
            key = (tuple(entry.match), message.priority)
            contents.entries[key] = Stored(message, entry.handle)
        default = self._pipeline.tables.default(table.name)
        if default and default[0] in self._by_name:
            contents.original = encode_action(self._by_name[default[0]], default[1])
        contents.default = _default_entry(table, contents.original)
        return contents

    def write(self, kind: int, message: p4runtime_pb2.TableEntry) -> None:
        """Inserts, modifies or deletes an entry. Raises StatusError if the message is wrong."""
        table = find(self._index.tables, "table", message.table_id)
        if kind != Update.DELETE:
            _check_fields(table, message)
        if message.is_default_action:
            self._write_default(table, kind, message)
            return
        if table.constant and (kind != Update.MODIFY or message.HasField("action")):
            raise StatusError(
                Code.PERMISSION_DENIED,
                f"table {table.name}: its entries are const and cannot be changed",
            )
        if not table.fields:
            raise invalid(f"table {table.name}: it has no key, so it takes only a default entry")
        writers = {Update.INSERT: self._insert, Update.MODIFY: self._modify}
        writers.get(kind, self._delete)(table, message)

    def _insert(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        contents = self._contents[table.id]
        match, priority = key = _key(table, message)
        if key in contents.entries:
            raise StatusError(Code.ALREADY_EXISTS, f"table {table.name}: the entry exists already")
        _check_counter(table, message)
        rates = _rates(table, message)
        room = self._pipeline.program.tables[table.name].max_size
        if len(contents.entries) >= room:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, f"table {table.name}: full, it holds {room} entries"
            )
        chosen = self._choose(table, message.action)
        handle = self._add(table, match, chosen, priority)
        stored = p4runtime_pb2.TableEntry(
            table_id=table.id,
            match=encode_match(table, match),
            action=chosen.message,
            priority=priority,
            idle_timeout_ns=message.idle_timeout_ns,
        )
        now_ns = self._clock_ns()
        contents.entries[key] = Stored(
            _with_cookies(stored, message), handle, chosen.made, now_ns, now_ns
        )
        self._write_resources(table, handle, message, rates)

    def _choose(self, table: Table, message: p4runtime_pb2.TableAction) -> Chosen:
        """Returns what an entry leads to. For an action set, also makes a group that belongs to the
        entry."""
        if table.profile is None:
            action, args = decode_action(self._index, table, message, default=False)
            return Chosen(encode_action(action, args), action.name, args)
        if message.WhichOneof("type") == "action_profile_action_set":
            made = self._profiles.make_set(table, message.action_profile_action_set)
            return Chosen(made.message, target=made.group, made=made)
        return Chosen(message, target=self._profiles.target(table, message))

    def _add(self, table: Table, match: tuple[Match, ...], chosen: Chosen, priority: int) -> int:
        if chosen.target is None:
            return self._pipeline.tables.add(
                table.name, match, chosen.action, chosen.args, priority
            )
        try:
            return self._pipeline.tables.add_indirect(table.name, match, chosen.target, priority)
        except PipelineError:
            self._release(chosen.made)
            raise

    def _release(self, made: ActionSet | None) -> None:
        if made is not None:
            self._profiles.release(made)

    def _modify(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        stored = self.find(table, message)
        _check_counter(table, message)
        rates = _rates(table, message)
        if message.HasField("action"):
            if stored.message.is_const:
                raise StatusError(
                    Code.PERMISSION_DENIED,
                    f"table {table.name}: the entry is const and cannot be changed",
                )
            self._change(table, stored, self._choose(table, message.action))
        if not stored.message.is_const:
            _with_cookies(stored.message, message)
            stored.message.idle_timeout_ns = message.idle_timeout_ns
        stored.last_hit_ns = stored.noticed_ns = self._clock_ns()
        self._write_resources(table, stored.handle, message, rates)

    def _change(self, table: Table, stored: Stored, chosen: Chosen) -> None:
        if chosen.target is None:
            self._pipeline.tables.modify(table.name, stored.handle, chosen.action, chosen.args)
        else:
            self._pipeline.tables.modify_indirect(table.name, stored.handle, chosen.target)
        self._release(stored.made)
        stored.made = chosen.made
        stored.message.action.CopyFrom(chosen.message)

    def _delete(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        stored = self.find(table, message)
        if stored.message.is_const:
            raise StatusError(
                Code.PERMISSION_DENIED,
                f"table {table.name}: the entry is const and cannot be changed",
            )
        self._pipeline.tables.delete(table.name, stored.handle)
        self._release(stored.made)
        del self._contents[table.id].entries[_key(table, message)]

    def _write_default(self, table: Table, kind: int, message: p4runtime_pb2.TableEntry) -> None:
        if kind != Update.MODIFY:
            raise invalid(f"table {table.name}: the default entry can only be modified")
        if message.match or message.priority:
            raise invalid(f"table {table.name}: a default entry has neither match nor priority")
        if table.constant_default:
            raise StatusError(
                Code.PERMISSION_DENIED, f"table {table.name}: its default action is const"
            )
        if message.idle_timeout_ns:
            raise invalid(f"table {table.name}: a default entry does not time out")
        if table.profile is not None:
            raise invalid(
                f"table {table.name}: with an action profile its default is always NoAction"
            )
        _check_counter(table, message)
        rates = _rates(table, message)
        contents = self._contents[table.id]
        wanted = message.action if message.HasField("action") else contents.original
        if wanted is None:
            raise invalid(f"table {table.name}: the program declares no default to go back to")
        action, args = decode_action(self._index, table, wanted, default=True)
        self._pipeline.tables.set_default(table.name, action.name, args)
        contents.default = _default_entry(table, encode_action(action, args))
        if message.HasField("action"):
            _with_cookies(contents.default, message)
        self._write_resources(table, DEFAULT_ENTRY, message, rates)

    def held(self, kind: int, message: p4runtime_pb2.TableEntry) -> list[Entity]:
        """Returns the entry that a write would change, in a form that restores it, or an empty list
        if there is no such entry. The form includes the entry's counter if the write changes the
        counter."""
        try:
            table = find(self._index.tables, "table", message.table_id)
            if message.is_default_action:
                default = self._contents[table.id].default
                stored = Stored(default, DEFAULT_ENTRY) if default else None
            else:
                stored = self._contents[table.id].entries.get(_key(table, message))
        except StatusError:
            return []
        if stored is None or stored.message.is_const:
            return []
        query = p4runtime_pb2.TableEntry()
        query.meter_config.SetInParent()
        if kind == Update.DELETE or message.HasField("counter_data"):
            query.counter_data.SetInParent()
        return [self._answer(table, stored, query)]

    def find(self, table: Table, message: p4runtime_pb2.TableEntry) -> Stored:
        """Returns the entry that a message's match and priority name, or the default entry. Raises
        NOT_FOUND if there is no such entry."""
        if message.is_default_action:
            return self._default(table)
        stored = self._contents[table.id].entries.get(_key(table, message))
        if stored is None:
            raise StatusError(Code.NOT_FOUND, f"table {table.name}: there is no such entry")
        return stored

    def entries(self, table: Table) -> list[Stored]:
        """Returns all entries of a table except the default entry."""
        return list(self._contents[table.id].entries.values())

    def chosen(self, table: Table, query: p4runtime_pb2.TableEntry) -> list[Stored]:
        """Returns the entries that a query asks for. With a match, this is one entry, or NOT_FOUND
        is raised. With is_default_action, it is the default entry. Otherwise it is all other
        entries."""
        one = query.match or query.is_default_action
        return [self.find(table, query)] if one else self.entries(table)

    def _default(self, table: Table) -> Stored:
        default = self._contents[table.id].default
        assert default is not None
        return Stored(default, DEFAULT_ENTRY)

    def read(self, query: p4runtime_pb2.TableEntry) -> Iterator[Entity]:
        """Yields the entries that fit those fields of the query that are set (P4Runtime 1.4,
        wildcard reads)."""
        for table, stored in self._select(query):
            entity = self._answer(table, stored, query)
            if query.HasField("time_since_last_hit"):
                self._touch(table, stored)
                elapsed_ns = self._clock_ns() - stored.last_hit_ns
                entity.table_entry.time_since_last_hit.elapsed_ns = elapsed_ns
            yield entity

    def _answer(self, table: Table, stored: Stored, query: p4runtime_pb2.TableEntry) -> Entity:
        """Returns an entry with the counter and meter that the query asks for."""
        entity = Entity(table_entry=stored.message)
        if query.HasField("counter_data") and table.direct_counter:
            packets, bytes_ = self._pipeline.counters.read_entry(table.name, stored.handle)
            entity.table_entry.counter_data.packet_count = packets
            entity.table_entry.counter_data.byte_count = bytes_
        if query.HasField("meter_config") and table.direct_meter:
            rates = self._pipeline.meters.read_entry(table.name, stored.handle)
            if rates is not None:
                entity.table_entry.meter_config.CopyFrom(encode_rates(rates))
        return entity

    def _touch(self, table: Table, stored: Stored) -> None:
        """Records the time of a hit if a packet has matched the entry since the last call."""
        if self._pipeline.tables.take_hit(table.name, stored.handle):
            stored.last_hit_ns = stored.noticed_ns = self._clock_ns()

    def idle(self) -> list[p4runtime_pb2.TableEntry]:
        """Returns the entries that had no hit for their idle_timeout_ns. Each is returned again
        after another timeout without a hit."""
        found = []
        for table in self._index.tables.values():
            if not table.idle_timeout:
                continue
            for stored in self.entries(table):
                timeout_ns = stored.message.idle_timeout_ns
                if not timeout_ns:
                    continue
                self._touch(table, stored)
                if self._clock_ns() - stored.noticed_ns >= timeout_ns:
                    stored.noticed_ns = self._clock_ns()
                    found.append(_without_action(stored.message))
        return found

    @property
    def timed(self) -> bool:
        """Whether there is a table whose entries can time out."""
        return any(table.idle_timeout for table in self._index.tables.values())

    def _select(self, query: p4runtime_pb2.TableEntry) -> Iterator[tuple[Table, Stored]]:
        tables = list(self._index.tables.values())
        if query.table_id:
            tables = [find(self._index.tables, "table", query.table_id)]
        for table in tables:
            timed = table.idle_timeout and not query.is_default_action
            if query.HasField("time_since_last_hit") and query.table_id and not timed:
                what = "a default entry does" if query.is_default_action else "its entries do"
                raise invalid(
                    f"table {table.name}: time_since_last_hit is asked for, but {what} not time out"
                )
            for stored in self._candidates(table, query):
                if _fits(stored.message, query):
                    yield table, stored

    def _candidates(self, table: Table, query: p4runtime_pb2.TableEntry) -> list[Stored]:
        contents = self._contents[table.id]
        if query.is_default_action:
            return [self._default(table)]
        if not query.table_id or not query.match:
            return list(contents.entries.values())
        wanted = decode_match(table, query.match)
        return [stored for (match, _), stored in contents.entries.items() if match == wanted]

    def _write_resources(
        self,
        table: Table,
        handle: int,
        message: p4runtime_pb2.TableEntry,
        rates: MeterRates | None,
    ) -> None:
        """Writes an entry's counter and meter. A counter that is not given keeps its value. A meter
        that is not given loses its configuration."""
        if message.HasField("counter_data"):
            data = message.counter_data
            self._pipeline.counters.write_entry(
                table.name, handle, data.packet_count, data.byte_count
            )
        if table.direct_meter:
            self._pipeline.meters.write_entry(table.name, handle, rates)


def _key(table: Table, message: p4runtime_pb2.TableEntry) -> Key:
    if table.needs_priority and message.priority <= 0:
        raise invalid(
            f"table {table.name}: the priority must be above 0, but it is {message.priority}"
        )
    if not table.needs_priority and message.priority:
        raise invalid(
            f"table {table.name}: the priority must be 0, because no key field is ternary or range"
        )
    return decode_match(table, message.match), message.priority


def _check_fields(table: Table, message: p4runtime_pb2.TableEntry) -> None:
    """Refuses a message with fields that are not allowed in a write."""
    if message.is_const:
        raise invalid(f"table {table.name}: is_const may not be set in a write")
    if message.HasField("meter_counter_data"):
        raise unsupported(f"table {table.name}: meter_counter_data")
    if message.HasField("time_since_last_hit"):
        raise invalid(f"table {table.name}: time_since_last_hit can only be read")
    if message.idle_timeout_ns and not table.idle_timeout:
        raise invalid(
            f"table {table.name}: idle_timeout_ns is given, but its entries do not time out"
        )
    if message.idle_timeout_ns < 0:
        raise invalid(f"table {table.name}: idle_timeout_ns is negative")
    if message.HasField("meter_config") and not table.direct_meter:
        raise invalid(
            f"table {table.name}: meter_config is given, but the table has no direct meter"
        )


def _check_counter(table: Table, message: p4runtime_pb2.TableEntry) -> None:
    if message.HasField("counter_data") and not table.direct_counter:
        raise invalid(
            f"table {table.name}: counter_data is given, but the table has no direct counter"
        )
    check_counts(f"table {table.name}", message.counter_data)


def _rates(table: Table, message: p4runtime_pb2.TableEntry) -> MeterRates | None:
    if not message.HasField("meter_config"):
        return None
    return decode_rates(f"table {table.name}", message.meter_config)


def _with_cookies(
    stored: p4runtime_pb2.TableEntry, message: p4runtime_pb2.TableEntry
) -> p4runtime_pb2.TableEntry:
    stored.controller_metadata = message.controller_metadata
    stored.metadata = message.metadata
    return stored


def _without_action(entry: p4runtime_pb2.TableEntry) -> p4runtime_pb2.TableEntry:
    """Returns the entry in the form of an IdleTimeoutNotification: the key, the timeout, and the
    client's metadata."""
    told = p4runtime_pb2.TableEntry()
    told.CopyFrom(entry)
    told.ClearField("action")
    return told


def _default_entry(
    table: Table, action: p4runtime_pb2.TableAction | None
) -> p4runtime_pb2.TableEntry:
    return p4runtime_pb2.TableEntry(table_id=table.id, action=action, is_default_action=True)


def _fits(entry: p4runtime_pb2.TableEntry, query: p4runtime_pb2.TableEntry) -> bool:
    action_id = query.action.action.action_id
    return (
        (not query.priority or entry.priority == query.priority)
        and (not action_id or entry.action.action.action_id == action_id)
        and (
            not query.controller_metadata or entry.controller_metadata == query.controller_metadata
        )
        and (not query.metadata or entry.metadata == query.metadata)
    )

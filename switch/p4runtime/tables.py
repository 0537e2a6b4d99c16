"""TableEntry: the entries of all tables, as clients wrote them and as the program holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, Update

from switch import Match, Pipeline
from switch.p4runtime.matches import decode_action, decode_match, encode_action, encode_match
from switch.p4runtime.p4info import P4InfoIndex, Table, find
from switch.p4runtime.status import Code, StatusError, invalid, unsupported

Key = tuple[tuple[Match, ...], int]
"""What tells the entries of a table apart: the match and the priority."""


@dataclass
class Stored:
    """One entry: its canonical message (without counters) and the library's handle."""

    message: p4runtime_pb2.TableEntry
    handle: int


@dataclass
class Contents:
    """One table's entries and default entry; `original` is the default the program came with."""

    entries: dict[Key, Stored] = field(default_factory=dict)
    original: p4runtime_pb2.TableAction | None = None
    default: p4runtime_pb2.TableEntry | None = None


class TableEntries:
    """All tables of one installed program."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline) -> None:
        self._index = index
        self._pipeline = pipeline
        self._by_name = {action.name: action for action in index.actions.values()}
        self._contents = {table.id: self._initial(table) for table in index.tables.values()}

    def _initial(self, table: Table) -> Contents:
        contents = Contents()
        initial = self._pipeline.table_entries(table.name)
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
        default = self._pipeline.table_default(table.name)
        if default and default[0] in self._by_name:
            contents.original = encode_action(self._by_name[default[0]], default[1])
        contents.default = _default_entry(table, contents.original)
        return contents

    def write(self, kind: int, message: p4runtime_pb2.TableEntry) -> None:
        """Insert, modify or delete; StatusError says what is wrong."""
        table = find(self._index.tables, "table", message.table_id)
        _check_unsupported(table, message)
        if message.is_const:
            raise invalid(f"table {table.name}: is_const may not be set in a write")
        if message.is_default_action:
            self._write_default(table, kind, message)
            return
        if table.constant and (kind != Update.MODIFY or message.HasField("action")):
            raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: its entries are const")
        if not table.fields:
            raise invalid(f"table {table.name}: it has no key, so only a default entry")
        writers = {Update.INSERT: self._insert, Update.MODIFY: self._modify}
        writers.get(kind, self._delete)(table, message)

    def _insert(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        contents = self._contents[table.id]
        match, priority = key = _key(table, message)
        if key in contents.entries:
            raise StatusError(Code.ALREADY_EXISTS, f"table {table.name}: the entry exists")
        action, args = decode_action(self._index, table, message.action, default=False)
        self._check_counter(table, message)
        room = self._pipeline.program.tables[table.name].max_size
        if len(contents.entries) >= room:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, f"table {table.name}: full, it holds {room} entries"
            )
        handle = self._pipeline.table_add(table.name, match, action.name, args, priority)
        stored = p4runtime_pb2.TableEntry(
            table_id=table.id,
            match=encode_match(table, match),
            action=encode_action(action, args),
            priority=priority,
        )
        contents.entries[key] = Stored(_with_cookies(stored, message), handle)
        self._write_counter(table, handle, message)

    def _modify(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        stored = self.find(table, message)
        self._check_counter(table, message)
        if message.HasField("action"):
            if stored.message.is_const:
                raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: a const entry")
            action, args = decode_action(self._index, table, message.action, default=False)
            self._pipeline.table_modify(table.name, stored.handle, action.name, args)
            stored.message.action.CopyFrom(encode_action(action, args))
        if not stored.message.is_const:
            _with_cookies(stored.message, message)
        self._write_counter(table, stored.handle, message)

    def _delete(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        stored = self.find(table, message)
        if stored.message.is_const:
            raise StatusError(Code.PERMISSION_DENIED, f"table {table.name}: a const entry")
        self._pipeline.table_delete(table.name, stored.handle)
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
        if message.HasField("counter_data"):
            raise unsupported("counter_data of a default entry")
        contents = self._contents[table.id]
        wanted = message.action if message.HasField("action") else contents.original
        if wanted is None:
            raise invalid(f"table {table.name}: the program declares no default to go back to")
        action, args = decode_action(self._index, table, wanted, default=True)
        self._pipeline.table_set_default(table.name, action.name, args)
        contents.default = _default_entry(table, encode_action(action, args))
        if message.HasField("action"):
            _with_cookies(contents.default, message)

    def find(self, table: Table, message: p4runtime_pb2.TableEntry) -> Stored:
        """The entry that a message's match and priority name, or NOT_FOUND."""
        stored = self._contents[table.id].entries.get(_key(table, message))
        if stored is None:
            raise StatusError(Code.NOT_FOUND, f"table {table.name}: no such entry")
        return stored

    def entries(self, table: Table) -> list[Stored]:
        """All entries of a table but the default."""
        return list(self._contents[table.id].entries.values())

    def read(self, query: p4runtime_pb2.TableEntry) -> Iterator[Entity]:
        """Entries that fit the query's set fields (P4Runtime 1.4, wildcard reads)."""
        for table, stored in self._select(query):
            entity = Entity(table_entry=stored.message)
            if query.HasField("counter_data") and table.direct_counter and stored.handle >= 0:
                packets, bytes_ = self._pipeline.direct_counter_read(table.name, stored.handle)
                entity.table_entry.counter_data.packet_count = packets
                entity.table_entry.counter_data.byte_count = bytes_
            yield entity

    def _select(self, query: p4runtime_pb2.TableEntry) -> Iterator[tuple[Table, Stored]]:
        tables = list(self._index.tables.values())
        if query.table_id:
            tables = [find(self._index.tables, "table", query.table_id)]
        for table in tables:
            for stored in self._candidates(table, query):
                if _fits(stored.message, query):
                    yield table, stored

    def _candidates(self, table: Table, query: p4runtime_pb2.TableEntry) -> list[Stored]:
        contents = self._contents[table.id]
        if query.is_default_action:
            return [Stored(contents.default, -1)] if contents.default else []
        if not query.table_id or not query.match:
            return list(contents.entries.values())
        wanted = decode_match(table, query.match)
        return [stored for (match, _), stored in contents.entries.items() if match == wanted]

    def _check_counter(self, table: Table, message: p4runtime_pb2.TableEntry) -> None:
        if message.HasField("counter_data") and not table.direct_counter:
            raise invalid(f"table {table.name}: counter_data given, it has no direct counter")

    def _write_counter(self, table: Table, handle: int, message: p4runtime_pb2.TableEntry) -> None:
        if message.HasField("counter_data"):
            data = message.counter_data
            self._pipeline.direct_counter_write(
                table.name, handle, data.packet_count, data.byte_count
            )


def _key(table: Table, message: p4runtime_pb2.TableEntry) -> Key:
    if table.needs_priority and message.priority <= 0:
        raise invalid(f"table {table.name}: priority must be above 0, it is {message.priority}")
    if not table.needs_priority and message.priority:
        raise invalid(f"table {table.name}: priority must be 0, no key field is ternary or range")
    return decode_match(table, message.match), message.priority


def _check_unsupported(table: Table, message: p4runtime_pb2.TableEntry) -> None:
    for name in ("meter_config", "meter_counter_data", "time_since_last_hit"):
        if message.HasField(name):
            raise unsupported(f"table {table.name}: {name}")
    if message.idle_timeout_ns:
        raise unsupported(f"table {table.name}: idle_timeout_ns")


def _with_cookies(
    stored: p4runtime_pb2.TableEntry, message: p4runtime_pb2.TableEntry
) -> p4runtime_pb2.TableEntry:
    stored.controller_metadata = message.controller_metadata
    stored.metadata = message.metadata
    return stored


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

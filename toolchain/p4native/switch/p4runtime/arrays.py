"""The classes that read and write the entities CounterEntry, DirectCounterEntry and
RegisterEntry."""

from __future__ import annotations

from collections.abc import Iterator

from p4.v1 import p4data_pb2, p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, Update

from p4native.switch import Pipeline
from p4native.switch.p4runtime.bytestring import decode, decode_signed, encode, encode_signed
from p4native.switch.p4runtime.p4info import Array, P4InfoIndex, Table, find
from p4native.switch.p4runtime.rates import check_counts
from p4native.switch.p4runtime.status import Code, StatusError, invalid, unsupported
from p4native.switch.p4runtime.tables import TableEntries


def only_modify(kind: int, what: str) -> None:
    """Refuses to insert or delete an entity that always exists."""
    if kind != Update.MODIFY:
        raise invalid(f"{what}: it can be modified, but not inserted or deleted")


def indexes(array: Array, message: object) -> range:
    """Returns the cells that a message names: one cell, or all cells if it has no index."""
    if not message.HasField("index"):  # type: ignore[attr-defined]
        return range(array.size)
    index = message.index.index  # type: ignore[attr-defined]
    if index < 0:
        raise invalid(f"{array.name}: index {index} is negative")
    if index >= array.size:
        raise StatusError(
            Code.OUT_OF_RANGE, f"{array.name}: index {index}, it has {array.size} cells"
        )
    return range(index, index + 1)


class Counters:
    """The indirect counters of one loaded program."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline) -> None:
        self._arrays = index.counters
        self._pipeline = pipeline

    def write(self, kind: int, message: p4runtime_pb2.CounterEntry) -> None:
        """Sets one cell, or all cells if no index is given."""
        array = find(self._arrays, "counter", message.counter_id)
        only_modify(kind, f"counter {array.name}")
        check_counts(array.name, message.data)
        cells = indexes(array, message)
        if not message.HasField("data"):
            return
        for index in cells:
            self._pipeline.counters.write(
                array.name, index, message.data.packet_count, message.data.byte_count
            )

    def read(self, query: p4runtime_pb2.CounterEntry) -> Iterator[Entity]:
        """Yields one cell, one array or (counter_id 0) all arrays."""
        arrays = list(self._arrays.values())
        if query.counter_id:
            arrays = [find(self._arrays, "counter", query.counter_id)]
        for array in arrays:
            for index in indexes(array, query):
                packets, bytes_ = self._pipeline.counters.read(array.name, index)
                entity = Entity()
                entry = entity.counter_entry
                entry.counter_id = array.id
                entry.index.index = index
                entry.data.packet_count = packets
                entry.data.byte_count = bytes_
                yield entity


class DirectCounters:
    """The counters of table entries."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline, tables: TableEntries) -> None:
        self._tables = index.tables
        self._pipeline = pipeline
        self._entries = tables

    def write(self, kind: int, message: p4runtime_pb2.DirectCounterEntry) -> None:
        """Sets the counter of one entry."""
        table = self._table(message.table_entry)
        only_modify(kind, f"direct counter of table {table.name}")
        check_counts(table.name, message.data)
        stored = self._entries.find(table, message.table_entry)
        if message.HasField("data"):
            self._pipeline.counters.write_entry(
                table.name, stored.handle, message.data.packet_count, message.data.byte_count
            )

    def read(self, query: p4runtime_pb2.DirectCounterEntry) -> Iterator[Entity]:
        """Yields the counter of one entry. Without a match, yields those of all entries of a table;
        without a table, those of all tables."""
        tables = [table for table in self._tables.values() if table.direct_counter]
        if query.table_entry.table_id:
            tables = [self._table(query.table_entry)]
        for table in tables:
            for stored in self._entries.chosen(table, query.table_entry):
                packets, bytes_ = self._pipeline.counters.read_entry(table.name, stored.handle)
                entity = Entity()
                entry = entity.direct_counter_entry
                entry.table_entry.CopyFrom(stored.message)
                entry.table_entry.ClearField("action")
                entry.data.packet_count = packets
                entry.data.byte_count = bytes_
                yield entity

    def _table(self, message: p4runtime_pb2.TableEntry) -> Table:
        table = find(self._tables, "table", message.table_id)
        if not table.direct_counter:
            raise invalid(f"table {table.name}: it has no direct counter")
        return table


class Registers:
    """The registers of one loaded program. This server gives access to registers, which BMv2's
    server does not."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline) -> None:
        self._arrays = index.registers
        self._pipeline = pipeline

    def write(self, kind: int, message: p4runtime_pb2.RegisterEntry) -> None:
        """Sets one cell, or all cells if no index is given."""
        array = find(self._arrays, "register", message.register_id)
        only_modify(kind, f"register {array.name}")
        cells = indexes(array, message)
        value = _decode_cell(array, message.data)
        for index in cells:
            self._pipeline.registers.write(array.name, index, value)

    def read(self, query: p4runtime_pb2.RegisterEntry) -> Iterator[Entity]:
        """Yields one cell, one array or (register_id 0) all arrays."""
        arrays = list(self._arrays.values())
        if query.register_id:
            arrays = [find(self._arrays, "register", query.register_id)]
        for array in arrays:
            for index in indexes(array, query):
                entity = Entity()
                entry = entity.register_entry
                entry.register_id = array.id
                entry.index.index = index
                _encode_cell(array, self._pipeline.registers.read(array.name, index), entry.data)
                yield entity


def _decode_cell(array: Array, data: p4data_pb2.P4Data) -> int:
    where = f"register {array.name}"
    given = data.WhichOneof("data")
    if array.kind not in ("bit", "int", "bool"):
        raise unsupported(f"{where}: values of type {array.kind or 'unknown'}")
    if given != ("bool" if array.kind == "bool" else "bitstring"):
        raise invalid(
            f"{where}: the data is of kind {given or 'nothing'}, but the type is {array.kind}"
        )
    if array.kind == "bool":
        return int(data.bool)
    reader = decode if array.kind == "bit" else decode_signed
    return reader(data.bitstring, array.bits, where)


def _encode_cell(array: Array, value: int, data: p4data_pb2.P4Data) -> None:
    if array.kind == "bool":
        data.bool = bool(value)
    elif array.kind == "bit":
        data.bitstring = encode(value)
    elif array.kind == "int":
        data.bitstring = encode_signed(value, array.bits)
    else:
        raise unsupported(f"register {array.name}: values of type {array.kind or 'unknown'}")

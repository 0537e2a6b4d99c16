"""The classes that read and write the entities MeterEntry and DirectMeterEntry. Rates are per
second. A meter without a configuration marks all packets green."""

from __future__ import annotations

from collections.abc import Iterator

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity

from p4native.switch import Pipeline
from p4native.switch.p4runtime.arrays import indexes, only_modify
from p4native.switch.p4runtime.p4info import P4InfoIndex, Table, find
from p4native.switch.p4runtime.rates import decode_rates, encode_rates
from p4native.switch.p4runtime.status import invalid, unsupported
from p4native.switch.p4runtime.tables import TableEntries


class Meters:
    """The indirect meters of one loaded program."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline) -> None:
        self._arrays = index.meters
        self._pipeline = pipeline

    def write(self, kind: int, message: p4runtime_pb2.MeterEntry) -> None:
        """Sets one cell, or all cells if no index is given. Without a configuration, all packets
        are green again."""
        array = find(self._arrays, "meter", message.meter_id)
        only_modify(kind, f"meter {array.name}")
        if message.HasField("counter_data"):
            raise unsupported(f"meter {array.name}: counter_data")
        cells = indexes(array, message)
        rates = None
        if message.HasField("config"):
            rates = decode_rates(f"meter {array.name}", message.config)
        for index in cells:
            self._pipeline.meters.write(array.name, index, rates)

    def read(self, query: p4runtime_pb2.MeterEntry) -> Iterator[Entity]:
        """Yields one cell, one array or (meter_id 0) all arrays."""
        arrays = list(self._arrays.values())
        if query.meter_id:
            arrays = [find(self._arrays, "meter", query.meter_id)]
        for array in arrays:
            for index in indexes(array, query):
                entity = Entity()
                entity.meter_entry.meter_id = array.id
                entity.meter_entry.index.index = index
                rates = self._pipeline.meters.read(array.name, index)
                if rates is not None:
                    entity.meter_entry.config.CopyFrom(encode_rates(rates))
                yield entity


class DirectMeters:
    """The meters of table entries."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline, tables: TableEntries) -> None:
        self._tables = index.tables
        self._pipeline = pipeline
        self._entries = tables

    def write(self, kind: int, message: p4runtime_pb2.DirectMeterEntry) -> None:
        """Sets the meter of one entry. Without a configuration, all its packets are green again."""
        table = self._table(message.table_entry)
        only_modify(kind, f"direct meter of table {table.name}")
        stored = self._entries.find(table, message.table_entry)
        rates = None
        if message.HasField("config"):
            rates = decode_rates(f"direct meter of table {table.name}", message.config)
        self._pipeline.meters.write_entry(table.name, stored.handle, rates)

    def read(self, query: p4runtime_pb2.DirectMeterEntry) -> Iterator[Entity]:
        """Yields the meter of one entry. Without a match, yields those of all entries of a table;
        without a table, those of all tables."""
        tables = [table for table in self._tables.values() if table.direct_meter]
        if query.table_entry.table_id:
            tables = [self._table(query.table_entry)]
        for table in tables:
            for stored in self._entries.chosen(table, query.table_entry):
                entity = Entity()
                entry = entity.direct_meter_entry
                entry.table_entry.CopyFrom(stored.message)
                entry.table_entry.ClearField("action")
                rates = self._pipeline.meters.read_entry(table.name, stored.handle)
                if rates is not None:
                    entry.config.CopyFrom(encode_rates(rates))
                yield entity

    def _table(self, message: p4runtime_pb2.TableEntry) -> Table:
        table = find(self._tables, "table", message.table_id)
        if not table.direct_meter:
            raise invalid(f"table {table.name}: it has no direct meter")
        return table

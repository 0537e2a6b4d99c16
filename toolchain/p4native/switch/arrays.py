"""The classes Counters and Registers, which read and write the counters and registers of one
running program."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from p4native.switch.errors import PipelineError
from p4native.switch.library import U64, Instance, check
from p4native.switch.model import Counter
from p4native.switch.storage import Register
from p4native.switch.tables import Tables, check_entry


class Counters:
    """The counters of one running program, including those of table entries. `pipeline.counters` is
    an instance."""

    def __init__(self, instance: Instance, tables: Tables) -> None:
        self._instance = instance
        self._tables = tables

    def _counter(self, name: str, index: int) -> Counter:
        counter = self._instance.program.counters.get(name)
        if counter is None:
            raise PipelineError(f"no counter is called '{name}'")
        if not 0 <= index < counter.size:
            raise PipelineError(
                f"counter '{name}' has the indexes 0 to {counter.size - 1}, not {index}"
            )
        return counter

    def read(self, name: str, index: int) -> tuple[int, int]:
        """Returns (packets, bytes) of one cell. The index into a direct counter is an entry's
        handle."""
        direct = self._instance.program.direct_counters.get(name)
        if direct and direct.table:
            return self.read_entry(direct.table, index)
        counter = self._counter(name, index)
        packets, size = U64(), U64()
        result = self._instance.call("pl_counter_read", counter.index, index, packets, size)
        check(result, f"counter '{name}'")
        return packets.value, size.value

    def write(self, name: str, index: int, packets: int, bytes_: int) -> None:
        """Sets one cell. The index into a direct counter is an entry's handle."""
        direct = self._instance.program.direct_counters.get(name)
        if direct and direct.table:
            self.write_entry(direct.table, index, packets, bytes_)
            return
        counter = self._counter(name, index)
        result = self._instance.call("pl_counter_write", counter.index, index, packets, bytes_)
        check(result, f"counter '{name}'")

    def read_entry(self, table: str, handle: int) -> tuple[int, int]:
        """Returns (packets, bytes) of a table entry. The table must have direct counters."""
        found = self._tables.find(table)
        packets, size = U64(), U64()
        result = self._instance.call("pl_entry_counter_read", found.index, handle, packets, size)
        check_entry(result, found, "direct counters")
        return packets.value, size.value

    def write_entry(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        """Sets the counter of a table entry."""
        found = self._tables.find(table)
        result = self._instance.call("pl_entry_counter_write", found.index, handle, packets, bytes_)
        check_entry(result, found, "direct counters")


class Registers:
    """The registers of one running program. `pipeline.registers` is an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def _register(self, name: str, index: int) -> Register:
        register = self._instance.program.registers.get(name)
        if register is None:
            raise PipelineError(f"no register is called '{name}'")
        if not 0 <= index < register.size:
            raise PipelineError(
                f"register '{name}' has the indexes 0 to {register.size - 1}, not {index}"
            )
        return register

    def read(self, name: str, index: int) -> int:
        """Returns the value of one register cell."""
        register = self._register(name, index)
        value = ctypes.create_string_buffer(register.bytes)
        result = self._instance.call("pl_register_read", register.index, index, value)
        check(result, f"register '{name}'")
        return int.from_bytes(value.raw, "big")

    def read_many(self, name: str, indices: Sequence[int]) -> list[int]:
        """Returns the values of many cells of one register, in the order of the indices."""
        if not indices:
            return []
        register = self._register(name, max(indices))
        self._register(name, min(indices))
        size, count = register.bytes, len(indices)
        values = ctypes.create_string_buffer(size * count)
        numbers = (ctypes.c_uint32 * count)(*indices)
        result = self._instance.call("pl_registers_read", register.index, numbers, count, values)
        check(result, f"register '{name}'")
        raw = values.raw
        return [int.from_bytes(raw[at : at + size], "big") for at in range(0, size * count, size)]

    def write(self, name: str, index: int, value: int) -> None:
        """Sets one register cell. The value is cut to the register's width."""
        register = self._register(name, index)
        data = (value % (1 << register.bits)).to_bytes(register.bytes, "big")
        result = self._instance.call("pl_register_write", register.index, index, data)
        check(result, f"register '{name}'")

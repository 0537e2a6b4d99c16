"""Counters, registers, multicast groups and clone sessions of an instance."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from agglab.switch.errors import PipelineError
from agglab.switch.library import U64, Replica, check
from agglab.switch.model import Counter, Register
from agglab.switch.profiles import Profiles


class Arrays(Profiles):
    """What `Pipeline` does with arrays and replication."""

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set a group's (port, rid) copies; an empty list deletes it."""
        result = self.library.pl_multicast_group(
            self.handle, group % (1 << 32), *self._replicas(replicas)
        )
        check(result, f"multicast group {group}")

    def set_clone_session(
        self, session: int, replicas: Sequence[tuple[int, int]], max_bytes: int = 0
    ) -> None:
        """Set a clone session's (port, rid) copies; an empty list deletes it. With max_bytes no
        copy leaves longer than that."""
        result = self.library.pl_clone_session(
            self.handle, session % (1 << 32), *self._replicas(replicas), max_bytes
        )
        check(result, f"clone session {session}")

    def _replicas(self, replicas: Sequence[tuple[int, int]]) -> tuple[object, int]:
        for port, rid in replicas:
            if not (0 <= port < 1 << 16 and 0 <= rid < 1 << 16):
                raise PipelineError(f"port and rid have 16 bits, not {port} and {rid}")
        array = (Replica * len(replicas))(*[Replica(port, rid) for port, rid in replicas])
        return array, len(replicas)

    def _counter(self, name: str, index: int) -> Counter:
        counter = self.program.counters.get(name)
        if counter is None:
            raise PipelineError(f"no counter is called '{name}'")
        if not 0 <= index < counter.size:
            raise PipelineError(f"counter '{name}' has the indexes 0 to {counter.size - 1}")
        return counter

    def counter_read(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell; the index into a direct counter is an entry's handle."""
        direct = self.program.direct_counters.get(name)
        if direct and direct.table:
            return self.direct_counter_read(direct.table, index)
        counter = self._counter(name, index)
        packets, size = U64(), U64()
        result = self.library.pl_counter_read(self.handle, counter.index, index, packets, size)
        check(result, f"counter '{name}'")
        return packets.value, size.value

    def counter_write(self, name: str, index: int, packets: int, bytes_: int) -> None:
        """Set one cell; the index into a direct counter is an entry's handle."""
        direct = self.program.direct_counters.get(name)
        if direct and direct.table:
            self.direct_counter_write(direct.table, index, packets, bytes_)
            return
        counter = self._counter(name, index)
        result = self.library.pl_counter_write(self.handle, counter.index, index, packets, bytes_)
        check(result, f"counter '{name}'")

    def _register(self, name: str, index: int) -> Register:
        register = self.program.registers.get(name)
        if register is None:
            raise PipelineError(f"no register is called '{name}'")
        if not 0 <= index < register.size:
            raise PipelineError(f"register '{name}' has the indexes 0 to {register.size - 1}")
        return register

    def register_read(self, name: str, index: int) -> int:
        """The value of one register cell."""
        register = self._register(name, index)
        value = ctypes.create_string_buffer(register.bytes)
        result = self.library.pl_register_read(self.handle, register.index, index, value)
        check(result, f"register '{name}'")
        return int.from_bytes(value.raw, "big")

    def registers_read(self, name: str, indices: Sequence[int]) -> list[int]:
        """The values of many cells of one register, one after the other."""
        if not indices:
            return []
        register = self._register(name, max(indices))
        self._register(name, min(indices))
        size, count = register.bytes, len(indices)
        values = ctypes.create_string_buffer(size * count)
        numbers = (ctypes.c_uint32 * count)(*indices)
        result = self.library.pl_registers_read(self.handle, register.index, numbers, count, values)
        check(result, f"register '{name}'")
        raw = values.raw
        return [int.from_bytes(raw[at : at + size], "big") for at in range(0, size * count, size)]

    def register_write(self, name: str, index: int, value: int) -> None:
        """Set one register cell, cut to its width."""
        register = self._register(name, index)
        data = (value % (1 << register.bits)).to_bytes(register.bytes, "big")
        result = self.library.pl_register_write(self.handle, register.index, index, data)
        check(result, f"register '{name}'")

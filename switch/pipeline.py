"""One instance of a compiled program: packets in and out, tables, counters, registers (ctypes)."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from switch.build import build_library
from switch.encoding import decode_match, encode_action, encode_match
from switch.errors import PipelineError
from switch.matches import Match
from switch.model import Action, Counter, Register, Table
from switch.program import Program
from switch.translate import translate

MAX_FRAME = 65535
RECORD = struct.Struct("=HI")

ERRORS = {
    errno.EEXIST: "an equal entry exists already",
    errno.ENOENT: "no entry has that handle",
    errno.ENOSPC: "the table is full",
    errno.EPERM: "the program makes this constant",
    errno.ENOMEM: "out of memory",
    errno.EINVAL: "not a valid value",
}


class Replica(ctypes.Structure):
    """struct pl_replica"""

    _fields_ = (("port", ctypes.c_uint16), ("rid", ctypes.c_uint16))


U16, U32, U64, I32 = ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
INT, BYTES, POINTER = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
U64_OUT = ctypes.POINTER(U64)
REPLICAS = ctypes.POINTER(Replica)

PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "pl_new": (POINTER, (U64,)),
    "pl_free": (None, (POINTER,)),
    "pl_set_limits": (None, (POINTER, U16, U32)),
    "pl_table_add": (INT, (POINTER, U32, BYTES, BYTES, I32, U32, BYTES, U64_OUT)),
    "pl_table_modify": (INT, (POINTER, U32, U64, U32, BYTES)),
    "pl_table_delete": (INT, (POINTER, U32, U64)),
    "pl_table_set_default": (INT, (POINTER, U32, U32, BYTES)),
    "pl_entry_counter_read": (INT, (POINTER, U32, U64, U64_OUT, U64_OUT)),
    "pl_entry_counter_write": (INT, (POINTER, U32, U64, U64, U64)),
    "pl_multicast_group": (INT, (POINTER, U32, REPLICAS, U32)),
    "pl_clone_session": (INT, (POINTER, U32, REPLICAS, U32)),
    "pl_counter_read": (INT, (POINTER, U32, U32, U64_OUT, U64_OUT)),
    "pl_counter_write": (INT, (POINTER, U32, U32, U64, U64)),
    "pl_register_read": (INT, (POINTER, U32, U32, BYTES)),
    "pl_register_write": (INT, (POINTER, U32, U32, BYTES)),
    "pl_drops": (U32, (POINTER, U64_OUT, U32)),
    "pl_collect": (POINTER, (POINTER, U16, BYTES, U32, U64, U64_OUT)),
}


def load_library(path: Path) -> ctypes.CDLL:
    """The shared object with the prototypes of pipeline.h."""
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


@dataclass(frozen=True)
class Entry:
    """One table entry as it was added."""

    handle: int
    match: tuple[Match, ...]
    action: str
    args: tuple[int, ...]
    priority: int
    const: bool


class Pipeline:
    """A program loaded as native code, with tables, counters and registers of its own."""

    program: Program
    library_path: Path
    """The shared object that exports the functions of runtime/pipeline.h."""
    handle: int
    """The `struct pipeline *` of this instance, as an integer address."""

    def __init__(self, program: Program, library_path: Path, seed: int = 0) -> None:
        self.program = program
        self.library_path = library_path
        self.library = load_library(library_path)
        made = self.library.pl_new(seed % (1 << 64))
        if not made:
            raise PipelineError("out of memory for the program's tables and registers")
        self.handle = made
        self._entries: dict[str, dict[int, Entry]] = {name: {} for name in program.tables}
        self._defaults: dict[str, tuple[str, tuple[int, ...]]] = {}
        for table in program.tables.values():
            self._remember_constants(table)

    @classmethod
    def load(cls, path: str | Path, seed: int = 0) -> Pipeline:
        """Read BMv2 JSON, compile it (cached) and make an instance; `seed` feeds `random()`."""
        return cls.of(Program.read(path), seed)

    @classmethod
    def of(cls, program: Program, seed: int = 0) -> Pipeline:
        """The same for a program that has been read already."""
        return cls(program, build_library(translate(program)), seed)

    def _remember_constants(self, table: Table) -> None:
        """Constant entries take the first slots, in the program's order."""
        for slot, entry in enumerate(table.entries):
            match = decode_match(table, entry.key, entry.mask)
            args = entry.args
            known = Entry(slot, match, entry.action.name, args, entry.priority, const=True)
            self._entries[table.name][slot] = known
        if table.default_action:
            self._defaults[table.name] = (table.default_action.name, table.default_args)

    def close(self) -> None:
        """Free the instance; nothing may use `handle` afterwards."""
        if self.handle:
            self.library.pl_free(self.handle)
            self.handle = 0

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def function_address(self, name: str) -> int:
        """The address of an exported function of pipeline.h, such as `pl_process`."""
        address = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        assert address
        return address

    def set_limits(self, drop_port: int = 511, priority_queues: int = 1) -> None:
        """The egress_spec that means drop, and the number of priorities before packets drop."""
        self.library.pl_set_limits(self.handle, drop_port, priority_queues)

    def process(self, port: int, frame: bytes, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Run one packet; the (port, frame) copies it leads to, in BMv2's order."""
        if len(frame) > MAX_FRAME:
            raise PipelineError(f"a frame has at most {MAX_FRAME} bytes, not {len(frame)}")
        size = U64()
        data = self.library.pl_collect(self.handle, port, frame, len(frame), now_us, size)
        if not data:
            raise PipelineError("out of memory for the packets that leave")
        records = ctypes.string_at(data, size.value)
        copies = []
        at = 0
        while at < len(records):
            out_port, length = RECORD.unpack_from(records, at)
            at += RECORD.size
            copies.append((out_port, records[at : at + length]))
            at += length
        return copies

    def _check(self, result: int, what: str) -> None:
        if result:
            raise PipelineError(f"{what}: {ERRORS.get(-result, errno.errorcode.get(-result))}")

    def _table(self, name: str) -> Table:
        table = self.program.tables.get(name)
        if table is None:
            raise PipelineError(f"no table is called '{name}'")
        return table

    def _action(self, table: Table, name: str) -> Action:
        action = table.action(name)
        if action is None:
            allowed = ", ".join(a.name for a in table.actions)
            raise PipelineError(f"table '{table.name}' has no action '{name}' (it has: {allowed})")
        return action

    def table_add(
        self,
        table: str,
        match: Sequence[Match],
        action: str,
        args: Sequence[int] = (),
        priority: int = 0,
    ) -> int:
        """Add an entry and return its handle; larger priority wins (ternary, range)."""
        found = self._table(table)
        chosen = self._action(found, action)
        key, mask = encode_match(found, match)
        data = encode_action(chosen, args)
        handle = U64()
        result = self.library.pl_table_add(
            self.handle, found.index, key, mask, priority, chosen.index, data, handle
        )
        self._check(result, f"table '{table}'")
        entry = Entry(handle.value, tuple(match), action, tuple(args), priority, const=False)
        self._entries[table][handle.value] = entry
        return handle.value

    def table_modify(self, table: str, handle: int, action: str, args: Sequence[int] = ()) -> None:
        """Replace an entry's action and arguments."""
        found = self._table(table)
        chosen = self._action(found, action)
        data = encode_action(chosen, args)
        result = self.library.pl_table_modify(self.handle, found.index, handle, chosen.index, data)
        self._check(result, f"table '{table}'")
        old = self._entries[table][handle]
        self._entries[table][handle] = Entry(
            handle, old.match, action, tuple(args), old.priority, const=False
        )

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        found = self._table(table)
        self._check(
            self.library.pl_table_delete(self.handle, found.index, handle), f"table '{table}'"
        )
        del self._entries[table][handle]

    def table_set_default(self, table: str, action: str, args: Sequence[int] = ()) -> None:
        """Set what a miss does."""
        found = self._table(table)
        chosen = self._action(found, action)
        data = encode_action(chosen, args)
        result = self.library.pl_table_set_default(self.handle, found.index, chosen.index, data)
        self._check(result, f"table '{table}'")
        self._defaults[table] = (action, tuple(args))

    def table_default(self, table: str) -> tuple[str, tuple[int, ...]] | None:
        """The action and arguments of a miss, or None when the table has none."""
        return self._defaults.get(self._table(table).name)

    def table_entries(self, table: str) -> list[Entry]:
        """All entries, constant ones first, then in the order they were added."""
        return list(self._entries[self._table(table).name].values())

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set a group's (port, rid) copies; an empty list deletes it."""
        result = self.library.pl_multicast_group(
            self.handle, group % (1 << 32), *self._replicas(replicas)
        )
        self._check(result, f"multicast group {group}")

    def set_clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set a clone session's (port, rid) copies; an empty list deletes it."""
        result = self.library.pl_clone_session(
            self.handle, session % (1 << 32), *self._replicas(replicas)
        )
        self._check(result, f"clone session {session}")

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
        self._check(result, f"counter '{name}'")
        return packets.value, size.value

    def counter_write(self, name: str, index: int, packets: int, bytes_: int) -> None:
        """Set one cell; the index into a direct counter is an entry's handle."""
        direct = self.program.direct_counters.get(name)
        if direct and direct.table:
            self.direct_counter_write(direct.table, index, packets, bytes_)
            return
        counter = self._counter(name, index)
        result = self.library.pl_counter_write(self.handle, counter.index, index, packets, bytes_)
        self._check(result, f"counter '{name}'")

    def direct_counter_read(self, table: str, handle: int) -> tuple[int, int]:
        """(packets, bytes) of a table entry; the table must have direct counters."""
        found = self._table(table)
        packets, size = U64(), U64()
        result = self.library.pl_entry_counter_read(self.handle, found.index, handle, packets, size)
        self._check_direct(result, found)
        return packets.value, size.value

    def direct_counter_write(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        """Set the counter of a table entry."""
        found = self._table(table)
        result = self.library.pl_entry_counter_write(
            self.handle, found.index, handle, packets, bytes_
        )
        self._check_direct(result, found)

    def _check_direct(self, result: int, table: Table) -> None:
        if result == -errno.EPERM:
            raise PipelineError(f"table '{table.name}' has no direct counters")
        self._check(result, f"table '{table.name}'")

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
        self._check(result, f"register '{name}'")
        return int.from_bytes(value.raw, "big")

    def register_write(self, name: str, index: int, value: int) -> None:
        """Set one register cell, cut to its width."""
        register = self._register(name, index)
        data = (value % (1 << register.bits)).to_bytes(register.bytes, "big")
        result = self.library.pl_register_write(self.handle, register.index, index, data)
        self._check(result, f"register '{name}'")

    def drops(self) -> dict[str, int]:
        """Packets or copies dropped so far, by reason."""
        count = self.library.pl_drops(self.handle, None, 0)
        values = (U64 * count)()
        self.library.pl_drops(self.handle, values, count)
        names = (BYTES * count).in_dll(self.library, "pl_drop_names")
        return {(n or b"").decode(): v for n, v in zip(names, values, strict=True)}

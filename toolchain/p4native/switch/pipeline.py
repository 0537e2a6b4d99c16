"""The class Pipeline: one running instance of a compiled program. It processes packets, and has
tables, counters and registers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from p4native.switch.arrays import Counters, Registers
from p4native.switch.build import build_library
from p4native.switch.detail import Detail
from p4native.switch.digests import Digests
from p4native.switch.errors import PipelineError
from p4native.switch.library import BYTES, U64, Instance, array_of, load_library
from p4native.switch.meters import Meters
from p4native.switch.profiles import Profiles
from p4native.switch.program import PROGRAMS_KEPT, Program
from p4native.switch.replication import Replication
from p4native.switch.tables import Entry, Tables
from p4native.switch.translate import translate
from p4native.switch.value_sets import ValueSets

MAX_FRAME = 65535
MESSAGE_ROOM = 1 << 20
RECORD = struct.Struct("=HI")

__all__ = ["Entry", "Pipeline", "native_library"]


def native_library(program: Program, detail: Detail = Detail.NOTHING, quick: bool = False) -> Path:
    """Returns the shared object of a program, of which any number of pipelines can be made. It is
    compiled unless it is in the cache. quick: whether to compile in a quarter of the time, which
    pays off if only a few packets follow. Raises PipelineError."""
    return build_library(_translated(program, detail), quick=quick)


_translated = lru_cache(PROGRAMS_KEPT)(translate)


class Pipeline:
    """A program loaded as native code. Each instance has separate tables, counters and
    registers."""

    library_path: Path
    """The shared object that exports the functions of runtime/pipeline.h."""

    def __init__(self, program: Program, library_path: Path, seed: int = 0) -> None:
        self.library_path = library_path
        library = load_library(library_path)
        made = library.pl_new(seed % (1 << 64))
        if not made:
            raise PipelineError("out of memory for the program's tables and registers")
        self._instance = Instance(program, library, made)
        self.tables = Tables(self._instance)
        self.profiles = Profiles(self._instance)
        self.counters = Counters(self._instance, self.tables)
        self.registers = Registers(self._instance)
        self.meters = Meters(self._instance, self.tables)
        self.replication = Replication(self._instance)
        self.value_sets = ValueSets(self._instance)
        self.digests = Digests(self._instance)

    @property
    def program(self) -> Program:
        return self._instance.program

    @property
    def handle(self) -> int:
        """The `struct pipeline *` of this instance, as an integer address."""
        return self._instance.handle

    @classmethod
    def load(
        cls,
        path: str | Path,
        seed: int = 0,
        detail: Detail = Detail.NOTHING,
        quick: bool = False,
    ) -> Pipeline:
        """Reads BMv2 JSON, compiles it (or takes it from the cache) and makes an instance. seed:
        the seed of `random()`. detail: the messages that `take_messages` returns. quick: as
        native_library has it."""
        return cls.of(Program.read(path), seed, detail, quick)

    @classmethod
    def of(
        cls,
        program: Program,
        seed: int = 0,
        detail: Detail = Detail.NOTHING,
        quick: bool = False,
    ) -> Pipeline:
        """Makes a pipeline of a program that has been read already."""
        return cls(program, native_library(program, detail, quick), seed)

    def close(self) -> None:
        """Frees the instance. Nothing may use `handle` afterwards."""
        if self.handle:
            self._instance.library.pl_free(self.handle)
            self._instance.handle = 0

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def function_address(self, name: str) -> int:
        """Returns the address of an exported function of pipeline.h, such as `pl_process`."""
        address = ctypes.cast(getattr(self._instance.library, name), ctypes.c_void_p).value
        assert address
        return address

    def set_limits(self, drop_port: int = 511, priority_queues: int = 1) -> None:
        """Sets the egress_spec that means drop, and the number of priority queues. Packets whose
        priority has no queue are dropped."""
        self._instance.library.pl_set_limits(self.handle, drop_port, priority_queues)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Makes all changes within the block take effect at once, between two packets."""
        self._instance.library.pl_lock(self.handle)
        try:
            yield
        finally:
            self._instance.library.pl_unlock(self.handle)

    def process(self, port: int, frame: bytes, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Processes one packet and returns the packets that the program sends. Each is given as
        (port, frame), in BMv2's order."""
        if len(frame) > MAX_FRAME:
            raise PipelineError(f"a frame has at most {MAX_FRAME} bytes, not {len(frame)}")
        size = U64()
        data = self._instance.library.pl_collect(self.handle, port, frame, len(frame), now_us, size)
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

    def take_messages(self) -> list[str]:
        """Returns the lines that the program has reported since the last call (see Detail). While 1
        MiB waits to be taken, further lines are lost."""
        buffer = ctypes.create_string_buffer(MESSAGE_ROOM)
        size = self._instance.library.pl_take_messages(self.handle, buffer, MESSAGE_ROOM)
        return buffer.raw[:size].decode().splitlines()

    def drops(self) -> dict[str, int]:
        """Returns how many packets or copies were dropped so far, by reason."""
        count = self._instance.library.pl_drops(self.handle, None, 0)
        values = array_of(U64, count)()
        self._instance.library.pl_drops(self.handle, values, count)
        names = array_of(BYTES, count).in_dll(self._instance.library, "pl_drop_names")
        return {(n or b"").decode(): v for n, v in zip(names, values, strict=True)}

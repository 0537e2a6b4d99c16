"""One instance of a compiled program: packets in and out, tables, counters, registers (ctypes)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agglab.switch.build import build_library
from agglab.switch.detail import Detail
from agglab.switch.errors import PipelineError
from agglab.switch.library import BYTES, U64, load_library
from agglab.switch.program import Program
from agglab.switch.state import State
from agglab.switch.tables import Entry
from agglab.switch.translate import translate

MAX_FRAME = 65535
MESSAGE_ROOM = 1 << 20
RECORD = struct.Struct("=HI")

__all__ = ["Entry", "Pipeline"]


class Pipeline(State):
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
        self._init_tables()

    @classmethod
    def load(cls, path: str | Path, seed: int = 0, detail: Detail = Detail.NOTHING) -> Pipeline:
        """Read BMv2 JSON, compile it (cached) and make an instance; `seed` feeds `random()`, and
        `detail` is what `take_messages` tells."""
        return cls.of(Program.read(path), seed, detail)

    @classmethod
    def of(cls, program: Program, seed: int = 0, detail: Detail = Detail.NOTHING) -> Pipeline:
        """The same for a program that has been read already."""
        return cls(program, build_library(translate(program, detail)), seed)

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

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is changed within comes between two packets, all of it."""
        self.library.pl_lock(self.handle)
        try:
            yield
        finally:
            self.library.pl_unlock(self.handle)

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

    def take_messages(self) -> list[str]:
        """The lines that the program has said since the last call (see Detail); what is not taken
        before 1 MiB waits is lost."""
        buffer = ctypes.create_string_buffer(MESSAGE_ROOM)
        size = self.library.pl_take_messages(self.handle, buffer, MESSAGE_ROOM)
        return buffer.raw[:size].decode().splitlines()

    def drops(self) -> dict[str, int]:
        """Packets or copies dropped so far, by reason."""
        count = self.library.pl_drops(self.handle, None, 0)
        values = (U64 * count)()
        self.library.pl_drops(self.handle, values, count)
        names = (BYTES * count).in_dll(self.library, "pl_drop_names")
        return {(n or b"").decode(): v for n, v in zip(names, values, strict=True)}

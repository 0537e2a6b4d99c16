"""One instance of a compiled program: packets in and out, tables, counters, registers (ctypes)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from switch.matches import Match
from switch.program import Program


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

    @classmethod
    def load(cls, path: str | Path, seed: int = 0) -> Pipeline:
        """Read BMv2 JSON, compile it (cached) and make an instance; `seed` feeds `random()`."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the instance; nothing may use `handle` afterwards."""
        raise NotImplementedError

    def function_address(self, name: str) -> int:
        """The address of an exported function of pipeline.h, such as `pl_process`."""
        raise NotImplementedError

    def process(self, port: int, frame: bytes, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Run one packet; the (port, frame) copies it leads to, in BMv2's order."""
        raise NotImplementedError

    def table_add(
        self,
        table: str,
        match: Sequence[Match],
        action: str,
        args: Sequence[int] = (),
        priority: int = 0,
    ) -> int:
        """Add an entry and return its handle; larger priority wins (ternary, range)."""
        raise NotImplementedError

    def table_modify(
        self, table: str, handle: int, action: str, args: Sequence[int] = ()
    ) -> None:
        """Replace an entry's action and arguments."""
        raise NotImplementedError

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        raise NotImplementedError

    def table_set_default(self, table: str, action: str, args: Sequence[int] = ()) -> None:
        """Set what a miss does."""
        raise NotImplementedError

    def table_default(self, table: str) -> tuple[str, tuple[int, ...]] | None:
        """The action and arguments of a miss, or None when the table has none."""
        raise NotImplementedError

    def table_entries(self, table: str) -> list[Entry]:
        """All entries, constant ones first, then in the order they were added."""
        raise NotImplementedError

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set a group's (port, rid) copies; an empty list deletes it."""
        raise NotImplementedError

    def set_clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set a clone session's (port, rid) copies; an empty list deletes it."""
        raise NotImplementedError

    def counter_read(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell of an indirect counter."""
        raise NotImplementedError

    def counter_write(self, name: str, index: int, packets: int, bytes_: int) -> None:
        """Set one cell of an indirect counter."""
        raise NotImplementedError

    def direct_counter_read(self, table: str, handle: int) -> tuple[int, int]:
        """(packets, bytes) of a table entry; the table must have direct counters."""
        raise NotImplementedError

    def direct_counter_write(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        """Set the counter of a table entry."""
        raise NotImplementedError

    def register_read(self, name: str, index: int) -> int:
        """The value of one register cell."""
        raise NotImplementedError

    def register_write(self, name: str, index: int, value: int) -> None:
        """Set one register cell, cut to its width."""
        raise NotImplementedError

    def drops(self) -> dict[str, int]:
        """Packets or copies dropped so far, by reason."""
        raise NotImplementedError

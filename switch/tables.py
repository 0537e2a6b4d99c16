"""Tables of an instance: entries and defaults."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence
from dataclasses import dataclass

from agglab.switch.encoding import decode_match, encode_action, encode_match
from agglab.switch.errors import PipelineError
from agglab.switch.library import U64, check
from agglab.switch.matches import Group, Match, Member
from agglab.switch.model import Action, Table
from agglab.switch.program import Program

DEFAULT_ENTRY = (1 << 64) - 1
"""As a handle: the counter and meter of the default entry (PL_DEFAULT_ENTRY of pipeline.h)."""


@dataclass(frozen=True)
class Entry:
    """One table entry as it was added."""

    handle: int
    match: tuple[Match, ...]
    action: str
    args: tuple[int, ...]
    priority: int
    const: bool
    target: Member | Group | None = None
    """Instead of an action, in a table with an action profile."""


class Tables:
    """What `Pipeline` does with tables."""

    program: Program
    library: ctypes.CDLL
    handle: int

    def _init_tables(self) -> None:
        self._entries: dict[str, dict[int, Entry]] = {name: {} for name in self.program.tables}
        self._defaults: dict[str, tuple[str, tuple[int, ...]]] = {}
        for table in self.program.tables.values():
            self._remember_constants(table)

    def _remember_constants(self, table: Table) -> None:
        """Constant entries take the first slots, in the program's order."""
        for slot, entry in enumerate(table.entries):
            match = decode_match(table, entry.key, entry.mask)
            args = entry.args
            known = Entry(slot, match, entry.action.name, args, entry.priority, const=True)
            self._entries[table.name][slot] = known
        if table.default_action:
            self._defaults[table.name] = (table.default_action.name, table.default_args)

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
        check(result, f"table '{table}'")
        entry = Entry(handle.value, tuple(match), action, tuple(args), priority, const=False)
        self._entries[table][handle.value] = entry
        return handle.value

    def table_modify(self, table: str, handle: int, action: str, args: Sequence[int] = ()) -> None:
        """Replace an entry's action and arguments."""
        found = self._table(table)
        chosen = self._action(found, action)
        data = encode_action(chosen, args)
        result = self.library.pl_table_modify(self.handle, found.index, handle, chosen.index, data)
        check(result, f"table '{table}'")
        old = self._entries[table][handle]
        self._entries[table][handle] = Entry(
            handle, old.match, action, tuple(args), old.priority, const=False
        )

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        found = self._table(table)
        check(self.library.pl_table_delete(self.handle, found.index, handle), f"table '{table}'")
        del self._entries[table][handle]

    def table_set_default(self, table: str, action: str, args: Sequence[int] = ()) -> None:
        """Set what a miss does."""
        found = self._table(table)
        chosen = self._action(found, action)
        data = encode_action(chosen, args)
        result = self.library.pl_table_set_default(self.handle, found.index, chosen.index, data)
        check(result, f"table '{table}'")
        self._defaults[table] = (action, tuple(args))

    def table_default(self, table: str) -> tuple[str, tuple[int, ...]] | None:
        """The action and arguments of a miss, or None when the table has none."""
        return self._defaults.get(self._table(table).name)

    def table_entries(self, table: str) -> list[Entry]:
        """All entries, constant ones first, then in the order they were added."""
        return list(self._entries[self._table(table).name].values())

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
        check(result, f"table '{table.name}'")

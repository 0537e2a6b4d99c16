"""The class Tables, which manages the entries and default entries of one running program."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from p4native.switch.encoding import decode_match, encode_action, encode_match
from p4native.switch.errors import PipelineError
from p4native.switch.library import U64, Instance, check
from p4native.switch.matches import Group, Match, Member, target_number
from p4native.switch.model import Action, Table

DEFAULT_ENTRY = (1 << 64) - 1
"""The handle of the default entry, for its counter and meter; PL_DEFAULT_ENTRY of pipeline.h."""


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
    """The member or group of an action profile that the entry has in place of an action."""


class Encoded(NamedTuple):
    """An entry in a form that can be added to any instance of a program. words: the arguments of
    pl_table_add. The handle in `entry` is not used."""

    table: str
    entry: Entry
    words: tuple[int | bytes, ...]


class Tables:
    """The entries and default entries of one running program. `pipeline.tables` is an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._entries: dict[str, dict[int, Entry]] = {
            name: {} for name in self._instance.program.tables
        }
        self._defaults: dict[str, tuple[str, tuple[int, ...]]] = {}
        for table in self._instance.program.tables.values():
            self._remember_constants(table)

    def _remember_constants(self, table: Table) -> None:
        """Records the constant entries, which take the first slots in the program's order, and the
        default."""
        for slot, entry in enumerate(table.entries):
            match = decode_match(table, entry.key, entry.mask)
            args = entry.args
            known = Entry(slot, match, entry.action.name, args, entry.priority, const=True)
            self._entries[table.name][slot] = known
        if table.default_action:
            self._defaults[table.name] = (table.default_action.name, table.default_args)

    def find(self, name: str) -> Table:
        table = self._instance.program.tables.get(name)
        if table is None:
            raise PipelineError(f"no table is called '{name}'")
        return table

    def _action(self, table: Table, name: str) -> Action:
        action = table.action(name)
        if action is None:
            allowed = ", ".join(a.name for a in table.actions)
            raise PipelineError(f"table '{table.name}' has no action '{name}' (it has: {allowed})")
        return action

    def add(
        self,
        table: str,
        match: Sequence[Match],
        action: str,
        args: Sequence[int] = (),
        priority: int = 0,
    ) -> int:
        """Adds an entry and returns its handle. If several ternary or range entries match, the one
        with the largest priority wins."""
        return self.add_encoded(self.encode(table, match, action, args, priority))

    def encode(
        self,
        table: str,
        match: Sequence[Match],
        action: str,
        args: Sequence[int] = (),
        priority: int = 0,
    ) -> Encoded:
        """Checks an entry and returns it in a form that any instance of the same program can
        add."""
        found = self.find(table)
        chosen = self._action(found, action)
        key, mask = encode_match(found, match)
        entry = Entry(0, tuple(match), action, tuple(args), priority, const=False)
        words = (found.index, key, mask, priority, chosen.index, encode_action(chosen, args))
        return Encoded(table, entry, words)

    def add_encoded(self, encoded: Encoded) -> int:
        """Adds an entry and returns its handle."""
        handle = U64()
        result = self._instance.call("pl_table_add", *encoded.words, handle)
        check(result, f"table '{encoded.table}'")
        known = encoded.entry
        self._entries[encoded.table][handle.value] = Entry(
            handle.value, known.match, known.action, known.args, known.priority, const=False
        )
        return handle.value

    def modify(self, table: str, handle: int, action: str, args: Sequence[int] = ()) -> None:
        """Replaces an entry's action and arguments."""
        found = self.find(table)
        chosen = self._action(found, action)
        data = encode_action(chosen, args)
        result = self._instance.call("pl_table_modify", found.index, handle, chosen.index, data)
        check(result, f"table '{table}'")
        old = self._entries[table][handle]
        self._entries[table][handle] = Entry(
            handle, old.match, action, tuple(args), old.priority, const=False
        )

    def delete(self, table: str, handle: int) -> None:
        """Removes an entry."""
        found = self.find(table)
        check(
            self._instance.call("pl_table_delete", found.index, handle),
            f"table '{table}'",
        )
        del self._entries[table][handle]

    def set_default(self, table: str, action: str, args: Sequence[int] = ()) -> None:
        """Sets the action that runs on a miss, when no entry matches."""
        found = self.find(table)
        chosen = self._action(found, action)
        data = encode_action(chosen, args)
        result = self._instance.call("pl_table_set_default", found.index, chosen.index, data)
        check(result, f"table '{table}'")
        self._defaults[table] = (action, tuple(args))

    def default(self, table: str) -> tuple[str, tuple[int, ...]] | None:
        """Returns the action that runs on a miss and its arguments, or None if the table has
        none."""
        return self._defaults.get(self.find(table).name)

    def entries(self, table: str) -> list[Entry]:
        """Returns all entries: first the constant ones, then the others in the order in which they
        were added."""
        return list(self._entries[self.find(table).name].values())

    def add_indirect(
        self, table: str, match: Sequence[Match], target: Member | Group, priority: int = 0
    ) -> int:
        """Adds an entry to a table with an action profile and returns its handle."""
        found = self.find(table)
        key, mask = encode_match(found, match)
        number = target_number(target)
        handle = U64()
        result = self._instance.call(
            "pl_table_add_indirect", found.index, key, mask, priority, number, handle
        )
        check(result, f"table '{table}', {target}")
        entry = Entry(handle.value, tuple(match), "", (), priority, const=False, target=target)
        self._entries[table][handle.value] = entry
        return handle.value

    def modify_indirect(self, table: str, handle: int, target: Member | Group) -> None:
        """Makes an entry refer to another member or group."""
        found = self.find(table)
        number = target_number(target)
        result = self._instance.call("pl_table_modify_indirect", found.index, handle, number)
        check(result, f"table '{table}', {target}")
        old = self._entries[table][handle]
        self._entries[table][handle] = Entry(
            handle, old.match, "", (), old.priority, const=False, target=target
        )

    def set_default_indirect(self, table: str, target: Member | Group) -> None:
        """Sets the member or group of an action profile that is used on a miss, when no entry
        matches."""
        found = self.find(table)
        number = target_number(target)
        result = self._instance.call("pl_table_set_default_indirect", found.index, number)
        check(result, f"table '{table}', {target}")

    def take_hit(self, table: str, handle: int) -> bool:
        """Whether a packet has matched an entry since the last call. The table must have
        support_timeout."""
        found = self.find(table)
        hit = int(self._instance.call("pl_entry_take_hit", found.index, handle))
        check_entry(min(hit, 0), found, "timeouts")
        return hit > 0


def check_entry(result: int, table: Table, what: str) -> None:
    """Raises PipelineError if a call for a table's entry failed. what: the kind of objects that the
    table must have for this call."""
    if result == -errno.EPERM:
        raise PipelineError(f"table '{table.name}' has no {what}")
    check(result, f"table '{table.name}'")

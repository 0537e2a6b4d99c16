"""Computes the changes that must be written to a switch so that its entries become another set of
entries.

The kinds of changes are P4Runtime's: INSERT, MODIFY and DELETE. Deletions come first, so that there
is room for the entries that replace the deleted ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from agglab.testbed.systems.plan import CloneSession, Entries, Replica, TableEntry

NO_ENTRIES = Entries((), {})
Value = TypeVar("Value")


def table_changes(old: Entries, new: Entries) -> Iterator[tuple[str, TableEntry]]:
    """Yields (kind, entry) for every entry that differs between the two. Entries with the same
    `entry_key` count as one entry that is modified. If two entries of `new` have the same new key,
    both are inserted, so that the switch refuses the second."""
    before = {entry_key(entry): entry for entry in old.tables}
    after = {entry_key(entry) for entry in new.tables}
    for key, entry in before.items():
        if key not in after:
            yield "DELETE", entry
    for entry in new.tables:
        known = before.get(entry_key(entry))
        if known is None:
            yield "INSERT", entry
        elif known != entry:
            yield "MODIFY", entry


def group_changes(old: Entries, new: Entries) -> Iterator[tuple[str, int, tuple[Replica, ...]]]:
    """Yields (kind, group, copies) for every multicast group that differs between the two."""
    return _changes(old.groups, new.groups)


def session_changes(old: Entries, new: Entries) -> Iterator[tuple[str, int, CloneSession]]:
    """Yields (kind, number, session) for every clone session that differs between the two."""
    return _changes(old.sessions, new.sessions)


def _changes(
    old: Mapping[int, Value], new: Mapping[int, Value]
) -> Iterator[tuple[str, int, Value]]:
    for number, value in old.items():
        if number not in new:
            yield "DELETE", number, value
    for number, value in new.items():
        if number not in old:
            yield "INSERT", number, value
        elif value != old[number]:
            yield "MODIFY", number, value


def entry_key(entry: TableEntry) -> tuple[object, ...]:
    """Returns the key of an entry. Two entries of a switch with the same key exclude each other."""
    return entry.table, frozenset(entry.match.items()), entry.priority, entry.default

"""What must be written to turn one filling of a switch into another: pure values.

Kinds are P4Runtime's: INSERT, MODIFY, DELETE. Deletions come first, so that what takes their place
fits in.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.plan import Entries, TableEntry

NO_ENTRIES = Entries((), {})


def table_changes(old: Entries, new: Entries) -> Iterator[tuple[str, TableEntry]]:
    """(kind, entry) for every entry that is not the same in both. An entry is the one of its table
    and match; a second of the same in `new` is inserted too, for the switch to refuse."""
    before = {_key(entry): entry for entry in old.tables}
    after = {_key(entry) for entry in new.tables}
    for key, entry in before.items():
        if key not in after:
            yield "DELETE", entry
    for entry in new.tables:
        known = before.get(_key(entry))
        if known is None:
            yield "INSERT", entry
        elif known != entry:
            yield "MODIFY", entry


def group_changes(old: Entries, new: Entries) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """(kind, group, ports) for every multicast group that is not the same in both."""
    for group, ports in old.groups.items():
        if group not in new.groups:
            yield "DELETE", group, ports
    for group, ports in new.groups.items():
        if group not in old.groups:
            yield "INSERT", group, ports
        elif ports != old.groups[group]:
            yield "MODIFY", group, ports


def _key(entry: TableEntry) -> tuple[object, ...]:
    return entry.table, frozenset(entry.match.items()), entry.priority, entry.default

"""What is written to a switch when its filling changes: only the differences, deletions first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed.systems.plan import CloneSession, Entries, Replica, TableEntry
from agglab.testbed.systems.plan.changes import (
    NO_ENTRIES,
    group_changes,
    session_changes,
    table_changes,
)
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import rack


def entry(table: str, key: int, port: int) -> TableEntry:
    return TableEntry(table, {"dst": key}, "forward", {"port": port})


def entries(
    cells: dict[tuple[str, int], int],
    groups: dict[int, tuple[Replica, ...]],
    lengths: dict[int, int],
) -> Entries:
    tables = tuple(entry(table, key, port) for (table, key), port in cells.items())
    return Entries(tables, groups, {n: CloneSession((), length) for n, length in lengths.items()})


CELLS = st.dictionaries(
    st.tuples(st.sampled_from(["macs", "routes"]), st.integers(0, 4)), st.integers(0, 2)
)
GROUPS = st.dictionaries(
    st.integers(1, 4), st.tuples(st.builds(Replica, st.integers(1, 3), st.integers(0, 1)))
)
LENGTHS = st.dictionaries(st.integers(1, 4), st.integers(0, 2))


@settings(deadline=None)
@given(
    old=st.builds(entries, CELLS, GROUPS, LENGTHS), new=st.builds(entries, CELLS, GROUPS, LENGTHS)
)
def test_writing_the_changes_makes_the_new_of_the_old(old: Entries, new: Entries) -> None:
    tables = {(each.table, each.match["dst"]): each for each in old.tables}
    for kind, each in table_changes(old, new):
        key = each.table, each.match["dst"]
        assert (key in tables) == (kind != "INSERT")
        assert tables.get(key) != each or kind == "DELETE"
        if kind == "DELETE":
            del tables[key]
        else:
            tables[key] = each
    assert sorted(tables.values(), key=repr) == sorted(new.tables, key=repr)
    for changes, before, after in (
        (group_changes(old, new), old.groups, new.groups),
        (session_changes(old, new), old.sessions, new.sessions),
    ):
        made: dict[int, object] = dict(before)
        for kind, number, value in changes:
            assert (number in made) == (kind != "INSERT")
            if kind == "DELETE":
                del made[number]
            else:
                assert made.get(number) != value
                made[number] = value
        assert made == after


def test_an_entry_given_twice_is_left_for_the_switch_to_refuse() -> None:
    twice = Entries((entry("macs", 1, 1), entry("macs", 1, 2)), {})
    assert [kind for kind, _ in table_changes(NO_ENTRIES, twice)] == ["INSERT", "INSERT"]


def test_another_job_of_the_switch_is_not_touched() -> None:
    topology, other = rack(4), PlacedJob(2, ("h3", "h4"), 32, 32)
    old = plan(topology, [PlacedJob(1, ("h1", "h2"), 0, 32), other]).entries["s1"]
    new = plan(topology, [PlacedJob(1, ("h1",), 0, 16), other]).entries["s1"]
    changed = list(table_changes(old, new))
    assert {entry.match.get("job") for _, entry in changed} == {1}
    assert [kind for kind, entry in changed if entry.table == "members"] == ["DELETE", "MODIFY"]
    assert list(group_changes(old, new)) == [("MODIFY", 2, (Replica(1),))]

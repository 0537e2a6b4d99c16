"""What is written to a switch when its filling changes: only the differences, deletions first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.network.changes import NO_ENTRIES, group_changes, table_changes
from testbed.plan import Entries, Job, TableEntry, plan
from topologies import rack


def entry(table: str, key: int, port: int) -> TableEntry:
    return TableEntry(table, {"dst": key}, "forward", {"port": port})


def entries(cells: dict[tuple[str, int], int], groups: dict[int, tuple[int, ...]]) -> Entries:
    return Entries(tuple(entry(table, key, port) for (table, key), port in cells.items()), groups)


CELLS = st.dictionaries(
    st.tuples(st.sampled_from(["macs", "routes"]), st.integers(0, 4)), st.integers(0, 2)
)
GROUPS = st.dictionaries(st.integers(1, 4), st.tuples(st.integers(1, 3)))


@settings(deadline=None)
@given(old=st.builds(entries, CELLS, GROUPS), new=st.builds(entries, CELLS, GROUPS))
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
    groups = dict(old.groups)
    for kind, group, ports in group_changes(old, new):
        assert (group in groups) == (kind != "INSERT")
        if kind == "DELETE":
            del groups[group]
        else:
            assert groups.get(group) != ports
            groups[group] = ports
    assert groups == new.groups


def test_an_entry_given_twice_is_left_for_the_switch_to_refuse() -> None:
    twice = Entries((entry("macs", 1, 1), entry("macs", 1, 2)), {})
    assert [kind for kind, _ in table_changes(NO_ENTRIES, twice)] == ["INSERT", "INSERT"]


def test_another_job_of_the_switch_is_not_touched() -> None:
    topology, other = rack(4), Job(2, ("h3", "h4"), 32, 32)
    old = plan(topology, [Job(1, ("h1", "h2"), 0, 32), other]).entries["s1"]
    new = plan(topology, [Job(1, ("h1",), 0, 16), other]).entries["s1"]
    changed = list(table_changes(old, new))
    assert {entry.match.get("job") for _, entry in changed} == {1}
    assert [kind for kind, entry in changed if entry.table == "members"] == ["DELETE", "MODIFY"]
    assert list(group_changes(old, new)) == [("MODIFY", 2, (1,))]

"""When entries count as idle, by a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
from p4.v1.p4runtime_pb2 import TableEntry, Update

from p4native.compiler.command import main as compile_p4
from p4native.switch import Pipeline
from p4native.switch.p4runtime.p4info import P4InfoIndex
from p4native.switch.p4runtime.profiles import ActionProfiles
from p4native.switch.p4runtime.tables import TableEntries
from p4native.switch.p4runtime.text import read_p4info

assert p4native.switch.p4runtime

STATE = Path(__file__).parent / "state.p4"


class Timed:
    """The table I.metered of state.p4, whose entries time out; `now_ns` is the time."""

    def __init__(self, pipeline: Pipeline, index: P4InfoIndex) -> None:
        self.now_ns = 0
        self._pipeline = pipeline
        no_links: Any = None
        profiles = ActionProfiles(index, pipeline, no_links)
        self._entries = TableEntries(index, pipeline, profiles, lambda: self.now_ns)
        self._table = next(t.id for t in index.tables.values() if t.name == "I.metered")
        self._action = next(a.id for a in index.actions.values() if a.name == "I.paint")

    def write(self, kind: int, key: int, timeout_ns: int) -> None:
        entry = TableEntry(table_id=self._table, idle_timeout_ns=timeout_ns)
        entry.match.add(field_id=1).exact.value = bytes([key])
        entry.action.action.action_id = self._action
        self._entries.write(kind, entry)

    def hit(self, key: int) -> None:
        self._pipeline.process(0, bytes([key, 0, 0, 0]))

    def idle(self, now_ns: int) -> list[int]:
        """The keys of the entries that are told at this time."""
        self.now_ns = now_ns
        return [entry.match[0].exact.value[0] for entry in self._entries.idle()]

    def since_hit_ns(self, now_ns: int) -> list[int]:
        self.now_ns = now_ns
        query = TableEntry(table_id=self._table)
        query.time_since_last_hit.SetInParent()
        found = [entity.table_entry for entity in self._entries.read(query)]
        return [cast(int, entry.time_since_last_hit.elapsed_ns) for entry in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("idle")
    outputs = ["-o", str(folder / "json"), "--p4runtime-files", str(folder / "p4info.txtpb")]
    assert compile_p4([str(STATE), *outputs]) == 0
    return folder


@pytest.fixture
def timed(folder: Path) -> Iterator[Timed]:
    p4info: Any = read_p4info((folder / "p4info.txtpb").read_bytes())
    with Pipeline.load(folder / "json", quick=True) as pipeline:
        yield Timed(pipeline, P4InfoIndex(p4info))


def test_each_entry_is_told_after_its_own_time_and_again_after_another(timed: Timed) -> None:
    for key, timeout_ns in ((1, 100), (2, 250), (3, 0)):
        timed.write(Update.INSERT, key, timeout_ns)
    assert [timed.idle(now_ns) for now_ns in (99, 100, 199, 200)] == [[], [1], [], [1]]
    assert [timed.idle(now_ns) for now_ns in (249, 250, 300, 10**12)] == [[], [2], [1], [1, 2]]
    assert timed.idle(10**12 + 99) == [], "once, however long it was idle"


def test_a_hit_begins_the_time_anew(timed: Timed) -> None:
    timed.write(Update.INSERT, 1, 100)
    timed.write(Update.INSERT, 2, 100)
    timed.hit(1)
    assert timed.idle(60) == [], "the hit is noticed now"
    assert [timed.idle(now_ns) for now_ns in (100, 159, 160)] == [[2], [], [1]]
    assert timed.since_hit_ns(200) == [140, 200]


def test_a_change_begins_the_time_anew(timed: Timed) -> None:
    timed.write(Update.INSERT, 1, 100)
    timed.now_ns = 90
    timed.write(Update.MODIFY, 1, 100)
    assert [timed.idle(now_ns) for now_ns in (100, 189, 190)] == [[], [], [1]]
    assert timed.since_hit_ns(200) == [110]
    timed.write(Update.MODIFY, 1, 0)
    assert timed.idle(10**12) == []

"""A job's controller: asked before rounds and at its deadlines, which are kept or counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_parts import Parts, resolved

from agglab.testbed.run.controller_runner import ControllerRunner
from agglab.testbed.run.outcome import ControlCounts
from agglab.testbed.systems.plan import Entries, TableEntry

MS = 1_000_000
NEVER_NS = 2**63 - 1


def entry(chunk: int) -> TableEntry:
    return TableEntry("hot", {"chunk": chunk}, "add")


class Script:
    """Says what it was told to say; remembers what it was asked."""

    patience_ns = 2 * MS

    def __init__(self) -> None:
        self.deadline_ns = NEVER_NS
        self.period_ns = 10 * MS
        self.says: Any = None
        self.asked: list[tuple[Any, ...]] = []

    def begin_round(self, now_ns: int, number: int, job: Any, switches: Any) -> Any:
        self.asked.append(("round", now_ns, number, job.members))
        self.deadline_ns = now_ns + self.period_ns
        return self.says

    def step(self, now_ns: int, switches: Any) -> Any:
        self.asked.append(("step", now_ns))
        self.deadline_ns += self.period_ns
        return self.says


class Controlled(Parts):
    """Installing an entry takes `install_ns`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(resolved(folder))
        self.roster.fill_switches()
        self.script, self.install_ns = Script(), 0
        write_entries = self.backend.write_entries

        def slow(switch: str, entries: Entries) -> None:
            self.backend.now += self.install_ns
            write_entries(switch, entries)

        self.backend.write_entries = slow
        self.backend.taken()
        self.controlling = ControllerRunner(
            self.result,
            self.script,
            self.backend,
            self.clock,
            self.roster,
            self.table_writer,
            self.tell,
        )
        self.begin(self.controlling.steps)
        self.backend.now = 5 * MS
        self.clock.start_ns = 5 * MS
        self.scheduler.wake("tested")

    def round(self, number: int) -> None:
        self.controlling.begin_round(number)
        self.scheduler.deliver()

    def hot(self) -> list[list[int]]:
        """Chunks in the table at each time the switch was filled since it was last asked."""
        filled = [asked[2].tables for asked in self.backend.taken() if asked[0] == "write_entries"]
        return [[e.match["chunk"] for e in tables if e.table == "hot"] for tables in filled]

    @property
    def counts(self) -> ControlCounts:
        assert self.result.control is not None
        return self.result.control


@pytest.fixture
def parts(tmp_path: Path) -> Controlled:
    return Controlled(tmp_path)


def test_before_a_round_it_says_what_switches_hold_beside_what_is_planned(
    parts: Controlled,
) -> None:
    parts.script.says = {"s1": [entry(1), entry(2)]}
    parts.round(0)
    assert parts.script.asked == [("round", 0, 0, (0, 1, 2, 3))]
    parts.script.says = {"s1": [entry(2), entry(3), entry(4)]}
    parts.round(1)
    parts.script.says = {"s1": [entry(2), entry(3), entry(4)]}
    parts.round(2)
    assert parts.hot() == [[1, 2], [2, 3, 4]], "nothing is sent where nothing differs"
    assert [told["entries"] for told in parts.told] == [{"s1": 2}, {"s1": 3}, {}]
    assert (parts.counts.steps, parts.counts.entries, parts.counts.deadlines) == (3, 5, 0)


def test_a_deadline_that_a_round_has_set_is_kept(parts: Controlled) -> None:
    parts.round(0)
    parts.wait(0.009)
    assert len(parts.script.asked) == 1
    parts.wait(0.001)
    assert parts.script.asked[1:] == [("step", 10 * MS)]
    parts.wait(0.030)
    assert parts.script.asked[2:] == [("step", 40 * MS)]
    assert (parts.counts.deadlines, parts.counts.missed, parts.counts.latest_ns) == (2, 1, 20 * MS)
    assert parts.told[-1]["late_ns"] == 20 * MS


@pytest.mark.parametrize(("took_ns", "missed"), [(2 * MS, 0), (2 * MS + 1, 1)])
def test_a_deadline_whose_changes_take_too_long_is_missed(
    parts: Controlled, took_ns: int, missed: int
) -> None:
    parts.round(0)
    parts.script.says, parts.install_ns = {"s1": [entry(7)]}, took_ns
    parts.wait(0.010)
    assert parts.hot() == [[7]]
    assert (parts.counts.missed, parts.counts.latest_ns) == (missed, took_ns)


def test_a_switch_that_is_down_is_filled_with_it_when_it_is_back(parts: Controlled) -> None:
    parts.table_writer.stopped("s1")
    parts.script.says = {"s1": [entry(9)]}
    parts.round(0)
    assert parts.hot() == []
    parts.table_writer.write_again("s1")
    assert parts.hot() == [[9]]


def test_it_ends_with_its_job(parts: Controlled) -> None:
    parts.round(0)
    parts.roster.leave(parts.job)
    parts.scheduler.deliver()
    assert parts.ended == [None]

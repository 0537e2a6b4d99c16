"""Counts of switches that were restarted go on where they were."""

from __future__ import annotations

from agglab.testbed.run.restarted_counters import KeptCounts


def test_nothing_was_kept() -> None:
    assert KeptCounts().total("a", {3: (1, 60)}) == {3: (1, 60)}
    assert KeptCounts().total("a", {}) == {}


def test_each_restart_adds() -> None:
    kept = KeptCounts()
    kept.keep("a", {0: (1, 60), 1: (2, 200)})
    kept.keep("a", {0: (5, 300), 1: (0, 0)})
    assert kept.total("a", {0: (10, 1000), 1: (1, 1)}) == {0: (16, 1360), 1: (3, 201)}


def test_a_cell_that_is_not_read_any_more_is_not_forgotten() -> None:
    kept = KeptCounts()
    kept.keep("a", {0: (1, 60), 7: (2, 200)})
    kept.keep("a", {7: (1, 100)})
    assert kept.total("a", {8: (1, 1)}) == {0: (1, 60), 7: (3, 300), 8: (1, 1)}
    assert kept.total("b", {8: (1, 1)}) == {8: (1, 1)}

"""When programs are analysed."""

from __future__ import annotations

import pytest

from p4native.lsp.schedule import LIMIT_S, QUIET_S, Schedule


def test_a_program_waits_until_nobody_types() -> None:
    schedule = Schedule()
    schedule.changed("a", 10.0)
    schedule.changed("a", 10.05)
    assert schedule.take(10.0 + QUIET_S) is None
    assert schedule.wait_s(10.05) == pytest.approx(QUIET_S)
    assert schedule.take(10.06 + QUIET_S) == "a"
    assert schedule.take(99.0) is None and schedule.wait_s(99.0) is None


def test_it_waits_no_longer_than_the_limit() -> None:
    schedule = Schedule()
    times = [10.0 + step * QUIET_S / 2 for step in range(int(2 * LIMIT_S / QUIET_S))]
    for now_s in times:
        assert schedule.take(now_s) is None
        schedule.changed("a", now_s)
    assert schedule.take(10.001 + LIMIT_S) == "a"


def test_the_one_that_is_due_first_comes_first() -> None:
    schedule = Schedule()
    schedule.changed("late", 20.0)
    schedule.changed("early", 19.9)
    schedule.changed("closed", 10.0)
    schedule.forget("closed")
    assert [schedule.take(30.0) for _ in range(3)] == ["early", "late", None]

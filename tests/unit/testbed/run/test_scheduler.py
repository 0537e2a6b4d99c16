"""The scheduler alone: who is sent what, in which order, and when."""

from __future__ import annotations

from typing import Any

import pytest

from agglab.testbed.run.scheduler import FOREVER_NS, Process, RunClock, S, Scheduler


class Rig:
    def __init__(self) -> None:
        self.now = 0
        self.scheduler = Scheduler(lambda: self.now)
        self.heard: list[tuple[str, Any]] = []

    def add(self, name: str, deadlines: list[int], job: int | None = None) -> None:
        """A process that waits until these times, whatever it is sent, and then ends."""

        def steps() -> Process[None]:
            for deadline in deadlines:
                event = yield deadline
                self.heard.append((name, event and event["event"]))

        self.scheduler.add(name, steps(), job)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_events_reach_all_in_the_order_of_adding_and_only_whom_they_concern(rig: Rig) -> None:
    rig.add("fault", [FOREVER_NS] * 9)
    rig.add("one", [FOREVER_NS] * 9, 1)
    rig.add("two", [FOREVER_NS] * 9, 2)
    rig.scheduler.post({"event": "a", "job": 2})
    rig.scheduler.post({"event": "b"})
    assert rig.heard == []
    rig.scheduler.deliver()
    assert rig.heard == [("fault", "a"), ("two", "a"), ("fault", "b"), ("one", "b"), ("two", "b")]


def test_what_comes_of_an_event_comes_after_those_before_it(rig: Rig) -> None:
    def answers() -> Process[None]:
        while True:
            event = yield FOREVER_NS
            if event and event["event"] == "question":
                rig.scheduler.post({"event": "answer"})

    rig.scheduler.add("answers", answers())
    rig.add("listens", [FOREVER_NS] * 9)
    rig.scheduler.post({"event": "question"})
    rig.scheduler.post({"event": "other"})
    rig.scheduler.deliver()
    assert [event for _, event in rig.heard] == ["question", "other", "answer"]


def test_who_is_due_is_woken_and_nobody_before(rig: Rig) -> None:
    rig.add("soon", [5, 20])
    rig.add("late", [10])
    for now, due in ((4, []), (5, ["soon"]), (10, ["late"]), (30, ["soon"])):
        rig.now = now
        rig.heard.clear()
        rig.scheduler.expire()
        assert rig.heard == [(name, None) for name in due]


def test_the_next_deadline_is_that_of_the_processes_left(rig: Rig) -> None:
    rig.add("soon", [5])
    rig.add("late", [10])
    assert rig.scheduler.until_ns == 5 and rig.scheduler.runs("soon")
    rig.scheduler.wake("soon")
    assert rig.scheduler.until_ns == 10 and not rig.scheduler.runs("soon")
    rig.scheduler.wake("late")
    rig.scheduler.wake("late")  # nothing: it has ended
    assert rig.scheduler.until_ns == FOREVER_NS
    assert rig.heard == [("soon", None), ("late", None)]


def test_times_count_from_the_start_of_the_run(rig: Rig) -> None:
    clock = RunClock(lambda: rig.now)
    reached: list[int] = []

    def steps() -> Process[None]:
        start_ns = yield from clock.start()
        yield from clock.sleep_until(start_ns + 2 * S)
        reached.append(rig.now)

    rig.scheduler.add("steps", steps())
    rig.now = 7 * S
    rig.scheduler.expire()
    clock.start_ns = rig.now
    rig.scheduler.post({"event": "started"})
    rig.scheduler.deliver()
    assert rig.scheduler.until_ns == 9 * S and clock.after_s(0.5) == 7.5 * S
    for rig.now in (8 * S, 9 * S):
        rig.scheduler.post({"event": "whatever"})
        rig.scheduler.deliver()
    assert reached == [9 * S]

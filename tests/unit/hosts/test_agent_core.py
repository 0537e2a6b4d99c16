"""An agent's commands and events, with a driver that only remembers what it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from agglab.hosts.agent_config import Config
from agglab.hosts.agent_core import AgentCore
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.part import SERVER, Part
from agglab.hosts.workloads import Dense

CONFIG: dict[str, Any] = {
    "name": "h3",
    "system": "agglab.systems.ring.endpoint",
    "role": "worker",
    "job": 2,
    "rank": 2,
    "workers": 4,
    "bind": ("10.0.0.3", 9),
    "link_rate_bps": None,
    "work": Dense(10, "int32"),
    "seed": 1,
    "give_up_s": 1.0,
    "settings": {"window": 3, "session": 0},
    "control": "",
    "sums_dir": None,
}


class Session:
    """In place of an endpoint with its socket."""

    def __init__(self) -> None:
        self.endpoint: Any = self
        self.chunks, self.chunks_done, self.in_flight = 9, 0, 0
        self.stats: Mapping[str, int] = {"sent": 0, "retransmitted": 0}
        self.closed = False

    def waiting(self, most: int) -> list[list[int]]:
        return [[7, most]]

    def close(self) -> None:
        self.closed = True


class Driver:
    def __init__(self, **changes: Any) -> None:
        self.said: list[dict[str, Any]] = []
        self.done: list[Any] = []
        self.sessions: list[Session] = []
        self.core = AgentCore(Config(**CONFIG | changes), self, self.said.append, lambda: 5)
        self.core.start()

    def open(self, system: ModuleType, part: Part) -> Session:
        assert system.__name__ == CONFIG["system"]
        assert all(session.closed for session in self.sessions)
        self.sessions.append(Session())
        self.done.append(part)
        return self.sessions[-1]

    def begin_round(self, number: int) -> None:
        self.done.append(number)

    def leave_round(self) -> None:
        self.done.append("left")

    def stop(self) -> None:
        self.done.append("stopped")

    def counted(self, sent: int, retransmitted: int = 0) -> None:
        self.sessions[-1].stats = {"sent": sent, "retransmitted": retransmitted}

    def told(self) -> dict[str, Any]:
        """The last event, without what all have."""
        event = dict(self.said.pop())
        assert [event.pop(key) for key in ("job", "name", "rank", "t_ns")] == [2, "h3", 2, 5]
        return event


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_it_starts_with_all_workers_and_is_ready(driver: Driver) -> None:
    (part,) = driver.done
    assert (part.rank, part.workers, part.settings) == (2, 4, CONFIG["settings"])
    assert driver.told() == {"event": "ready"} and not driver.said


def test_what_is_no_workers_says_so() -> None:
    driver = Driver(role=SERVER, rank=4)
    assert driver.said[-1]["role"] == SERVER
    assert driver.done[0].rank == 4


def test_a_round_is_told_with_what_was_counted_in_it(driver: Driver) -> None:
    for number, sent in ((4, 10), (5, 13)):
        driver.core.execute({"command": "round", "round": number})
        assert driver.done[-1] == driver.core.round == number
        driver.counted(sent)
        driver.core.finish(1, 2, 0.5)
        stats = {"sent": 10 if number == 4 else 3, "retransmitted": 0}
        times = {"start_ns": 1, "end_ns": 2, "cpu_s": 0.5}
        assert driver.told() == {"event": "round", "round": number, **times, "stats": stats}
        assert driver.core.round is None and not driver.core.broken_off


def test_marks_are_told_once_each_when_they_are_reached(driver: Driver) -> None:
    driver.core.execute({"command": "round", "round": 0, "marks": [6, 2, 3]})
    reached = []
    for done in (1, 4, 5, 9):
        driver.sessions[-1].chunks_done = done
        driver.said.clear()
        driver.core.after_batch()
        reached.append([event["chunk"] for event in driver.said])
    assert reached == [[], [2, 3], [], [6]]


def test_an_abort_leaves_the_round_and_tells_what_it_waits_for(driver: Driver) -> None:
    driver.core.execute({"command": "round", "round": 1, "marks": [9]})
    driver.counted(3)
    driver.core.execute({"command": "abort"})
    assert driver.done[-1] == "left" and driver.core.broken_off and not driver.core.failed
    known = {"chunks": 0, "stats": {"sent": 3, "retransmitted": 0}}
    assert driver.told() == {"event": "aborted", "round": 1, "waiting": [[7, 64]], **known}
    assert driver.core.round is None and driver.core.marks == []


def test_an_abort_between_rounds_is_answered_and_nothing_is_left(driver: Driver) -> None:
    driver.core.execute({"command": "abort"})
    assert driver.told() == {"event": "aborted", "round": None, "waiting": [], "stats": {}}
    assert "left" not in driver.done and not driver.core.broken_off


def test_a_failed_round_says_why_and_what_is_missing(driver: Driver) -> None:
    driver.core.execute({"command": "round", "round": 1})
    driver.core.fail(RoundTimeout("nothing\n  came", [(1, 4)]))
    event = driver.told()
    assert (event["event"], event["error"], event["missing"]) == (
        "failed",
        "nothing came",
        [[1, 4]],
    )
    assert driver.core.failed and driver.core.broken_off
    driver.core.execute({"command": "configure", "members": [0, 2], "settings": {}})
    driver.core.execute({"command": "round", "round": 1})
    driver.core.fail(AllReduceError("no"))
    assert driver.told()["missing"] is None


def test_a_session_has_the_members_that_are_left_and_tells_what_the_last_one_did_not(
    driver: Driver,
) -> None:
    driver.counted(7, 2)
    driver.core.execute({"command": "configure", "members": [0, 2], "settings": {"session": 1}})
    part = driver.done[-1]
    assert (part.rank, part.workers, part.settings) == (1, 2, {"window": 3, "session": 1})
    assert driver.told() == {"event": "ready"}
    driver.counted(1)
    driver.core.execute({"command": "report"})
    stats = {"sent": 8, "retransmitted": 2}
    assert driver.told() == {"event": "served", "stats": stats, "waiting": [[7, 64]]}
    driver.core.execute({"command": "report"})
    assert driver.told()["stats"] == {"sent": 0, "retransmitted": 0}


def test_an_agent_settles_when_nothing_is_in_flight(driver: Driver) -> None:
    driver.core.execute({"command": "settle"})
    assert driver.told() == {"event": "settled", "waited": False}
    driver.sessions[-1].in_flight = 2
    driver.said.clear()
    driver.core.execute({"command": "settle"})
    driver.core.after_answers()
    assert not driver.said
    driver.sessions[-1].in_flight = 0
    driver.core.after_answers()
    assert driver.told() == {"event": "settled", "waited": True}
    driver.core.after_answers()
    assert not driver.said


def test_an_agent_that_answers_nobody_any_more_has_settled(driver: Driver) -> None:
    driver.core.execute({"command": "round", "round": 0})
    driver.core.fail(AllReduceError("no"))
    driver.sessions[-1].in_flight = 2
    driver.core.execute({"command": "settle"})
    assert driver.told() == {"event": "settled", "waited": False}


def test_progress_is_made_and_not_told(driver: Driver) -> None:
    driver.said.clear()
    driver.core.execute({"command": "round", "round": 3})
    driver.counted(5, 1)
    event = driver.core.progress()
    found = {name: event[name] for name in ("event", "round", "chunks", "of", "retransmitted")}
    assert found == {"event": "progress", "round": 3, "chunks": 0, "of": 9, "retransmitted": 1}
    assert not driver.said and driver.core.unreported["sent"] == 5


def test_slow_and_stop_reach_the_driver(driver: Driver) -> None:
    driver.core.execute({"command": "slow", "delay_s": 0.25})
    assert driver.core.slow_s == 0.25
    driver.core.execute({"command": "stop"})
    assert driver.done[-1] == "stopped"


def test_another_command_is_an_error(driver: Driver) -> None:
    with pytest.raises(AllReduceError, match="unknown command from the testbed"):
        driver.core.execute({"command": "x"})

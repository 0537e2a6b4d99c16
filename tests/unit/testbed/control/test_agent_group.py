"""A job's agents: started, awaited, asked, and called by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_parts import Parts, resolved

from agglab.testbed.control.agent_group import ANSWER_S, JobFailed
from agglab.testbed.worker_id import WorkerId

PS = "ps: {servers: [h4]}\njobs: [{workers: [h1, h2, h3]}]"


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(resolved(tmp_path, PS, "ps"))


def test_servers_have_ranks_above_those_of_workers(parts: Parts) -> None:
    group = parts.group
    assert group.needed == {0, 1, 2, 3} and group.servers == {3: WorkerId(1, "h4", "server", 3)}
    assert (group.called(1), group.called(3)) == ("h2: worker 1", "h4: server 0")
    assert parts.result.servers == {3: "h4"}


def test_programs_are_started_and_awaited(parts: Parts) -> None:
    parts.begin(lambda: parts.group.start([0, 3]))
    assert parts.backend.taken() == [("start", "h1"), ("start", "h4-server-3")]
    parts.event("ready", 3)
    parts.event("ready", 1)
    assert not parts.ended
    parts.event("ready", 0)
    assert parts.ended == [None]


def failure(parts: Parts) -> JobFailed:
    (error,) = parts.ended
    assert isinstance(error, JobFailed)
    return error


def test_who_is_not_ready_in_time_is_named(parts: Parts) -> None:
    parts.begin(lambda: parts.group.start([0, 3]))
    parts.event("ready", 0)
    parts.wait(9.9)
    assert not parts.ended
    parts.wait(0.1)
    error = failure(parts)
    assert (error.reason, error.rank) == ("h4: server 0 was not ready within 10 s", 3)


def test_who_ends_instead_is_named_with_what_there_is_to_show(parts: Parts) -> None:
    parts.begin(lambda: parts.group.start([0, 3]))
    parts.event("ended", 3, status=-9, report="the log")
    error = failure(parts)
    assert (error.reason, error.rank) == ("h4: server 0 exited early with status -9", 3)
    assert error.report == "the log"


def test_the_dead_are_not_waited_for_where_they_may_be(parts: Parts) -> None:
    parts.begin(lambda: parts.group.until_ready([0, 1], or_dead=True))
    parts.event("ended", 0, status=1)
    assert not parts.ended
    parts.event("ready", 1)
    assert parts.ended == [None] and set(parts.group.dead) == {0}


def test_who_comes_back_is_alive_and_knows_nothing(parts: Parts) -> None:
    parts.event("ended", 1, status=-9)
    assert not parts.group.forgetful
    parts.begin(lambda: parts.group.until_back([1]))
    parts.event("ready", 1)
    assert parts.ended == [None] and not parts.group.dead and parts.group.forgetful


def test_counts_of_servers_and_workers_are_kept_apart(parts: Parts) -> None:
    parts.event("round", 1, stats={"sent": 4})
    parts.event("served", 3, stats={"sent": 5})
    parts.event("aborted", 0, stats={})
    assert [event["stats"]["sent"] for event in parts.result.reports] == [4]
    assert [event["stats"]["sent"] for event in parts.result.served] == [5]


def test_all_are_stopped_when_servers_have_said_what_they_counted(parts: Parts) -> None:
    parts.begin(parts.group.stop)
    assert parts.backend.taken() == [("h4-server-3", "report")]
    parts.event("served", 3, stats={"sent": 1})
    stopped = [(name, "stop") for name in ("h1", "h2", "h3", "h4-server-3")]
    assert parts.backend.taken() == stopped and parts.ended == [None]


def test_a_server_that_does_not_answer_is_not_waited_for_for_long(parts: Parts) -> None:
    parts.begin(parts.group.stop)
    parts.wait(ANSWER_S)
    assert parts.backend.taken()[-1] == ("h4-server-3", "stop")

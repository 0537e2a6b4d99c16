"""A job's agents: started, awaited, asked, and called by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_parts import Parts, resolved

from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.run.agent_group import ANSWER_S, SETTLE_S, JobFailed

PS = "ps: {servers: [h4]}\njobs: [{workers: [h1, h2, h3]}]"


TWO_SERVERS = "ps: {servers: [h3, h4]}\njobs: [{workers: [h1, h2]}]"


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(resolved(tmp_path, PS, "ps"))


@pytest.fixture
def two_servers(tmp_path: Path) -> Parts:
    return Parts(resolved(tmp_path, TWO_SERVERS, "ps"))


def test_servers_have_ranks_above_those_of_workers(parts: Parts) -> None:
    group = parts.group
    assert group.needed == {0, 1, 2, 3} and group.servers == {3: WorkerId(1, "h4", "server", 3)}
    assert (group.called(1), group.called(3)) == ("h2: worker 1", "h4: server 0")
    assert parts.result.servers == {3: "h4"}


def test_servers_are_numbered_over_all_hosts(two_servers: Parts) -> None:
    called = [two_servers.group.called(rank) for rank in (2, 3)]
    assert called == ["h3: server 0", "h4: server 1"]


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


def test_a_server_that_ends_instead_of_answering_is_waited_for_no_longer(
    two_servers: Parts,
) -> None:
    two_servers.begin(two_servers.group.stop)
    two_servers.event("ended", 2, status=0)
    assert not two_servers.ended
    two_servers.event("served", 3, stats={})
    assert two_servers.ended == [None]


ALL_ASKED = [("h3-server-2", "settle"), ("h4-server-3", "settle")]


@pytest.mark.parametrize("waited", [(True, False), (False, True), (True, True)])
def test_all_are_asked_again_if_any_had_to_wait(
    two_servers: Parts, waited: tuple[bool, bool]
) -> None:
    two_servers.begin(two_servers.group.settle)
    assert sorted(two_servers.backend.taken()) == ALL_ASKED
    for rank, had_to_wait in zip((2, 3), waited, strict=True):
        two_servers.event("settled", rank, waited=had_to_wait)
    assert sorted(two_servers.backend.taken()) == ALL_ASKED and not two_servers.ended
    for rank in (3, 2):
        two_servers.event("settled", rank, waited=False)
    assert two_servers.ended == [None] and two_servers.result.settled
    assert two_servers.backend.taken() == []


def test_a_job_that_does_not_settle_in_time_says_so(two_servers: Parts) -> None:
    two_servers.begin(two_servers.group.settle)
    two_servers.event("settled", 2, waited=False)
    two_servers.wait(SETTLE_S)
    assert two_servers.ended == [None] and not two_servers.result.settled


def test_who_ends_while_the_job_settles_is_waited_for_no_longer(two_servers: Parts) -> None:
    two_servers.begin(two_servers.group.settle)
    two_servers.event("settled", 3, waited=True)
    assert not two_servers.ended
    two_servers.event("ended", 2, status=-9)
    assert two_servers.ended == [None] and two_servers.result.settled
    assert sorted(two_servers.backend.taken()) == ALL_ASKED, "nobody is asked again"


def test_packets_to_the_dead_are_not_waited_for(two_servers: Parts) -> None:
    two_servers.event("ended", 2, status=-9)
    two_servers.begin(two_servers.group.settle)
    assert two_servers.ended == [None] and two_servers.backend.taken() == []

"""What is done before a round runs again, by each `on_failure`, with a backend that remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_parts import Parts, resolved

from agglab.testbed.run.agent_group import ANSWER_S, JobFailed
from agglab.testbed.run.history import FaultHistory, FaultState
from agglab.testbed.run.recovery import Recovery
from agglab.testbed.run.round_failure import RoundFailure, failure_of
from agglab.testbed.run.session import JobSession
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.schema.faults import AgentCrash, AtTime, Fault
from agglab.testbed.systems.base import MissingChunks

PS = "ps: {servers: [h4]}\njobs: [{workers: [h1, h2, h3]}]"


class Rounds:
    """In place of Rounds: whose results were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def left(self, result: Any, number: int, members: tuple[int, ...]) -> None:
        self.asked.append(members)


class Rig(Parts):
    """A job in its first session, in which a round fails."""

    def __init__(
        self,
        folder: Path,
        on_failure: str,
        *killed: tuple[str, float | None],
        scenario: ResolvedScenario | None = None,
    ) -> None:
        super().__init__(scenario or resolved(folder, PS, "ps", on_failure))
        crashes = [
            AgentCrash(1, host, "server" if host == "h4" else "worker") for host, _ in killed
        ]
        lasting = [duration_s for _, duration_s in killed]
        self.states = [
            FaultState(Fault(n, "crash", crash, AtTime(0.0), lasting[n]), began_ns=1)
            for n, crash in enumerate(crashes)
        ]
        self.rounds: Any = Rounds()
        self.missing: dict[str, MissingChunks] = {}
        self.diagnosed: list[tuple[Any, Any]] = []
        """What the members and what the servers waited for, by host, at each diagnosis."""
        self.session = JobSession(self.group, self.roster)
        self.recovery = Recovery(
            self.result,
            self.group,
            self.session,
            self.clock,
            self.roster,
            self.rounds,
            FaultHistory(self.states, self.clock),
            self.diagnose,
        )
        self.roster.join(self.job)
        self.begin(lambda: self.session.begin(self.roster.take_share(self.job)))
        assert self.ended.pop() is None, "the session that the programs were started with"
        self.backend.taken()

    def diagnose(self, job: Any, waiting: Any, unserved: Any) -> dict[str, MissingChunks]:
        self.diagnosed.append((waiting, unserved))
        return self.missing

    def fail(self, event: str, rank: int, **content: Any) -> None:
        """A round fails by this event."""
        said = {"event": event, "job": 1, "rank": rank, "t_ns": self.clock.now_ns(), **content}
        self.group.note(said)
        failure = failure_of(said, self.group, self.job.on_failure)
        assert isinstance(failure, RoundFailure)
        self.begin(lambda: self.recovery.recover(failure, 0))

    def answer(self, *ranks: int) -> None:
        """Those left their round."""
        for rank in ranks:
            event = "served" if rank == 3 else "aborted"
            self.event(event, rank, waiting=[], stats={})

    def reason(self) -> tuple[str, int | None]:
        (error,) = self.ended
        assert isinstance(error, JobFailed), error
        return error.reason, error.rank

    def orders(self) -> list[str]:
        return [" ".join(map(str, asked[:2])) for asked in self.backend.taken()]


DIED: Any = ("ended", 1)


def test_all_leave_the_round_and_the_dead_is_named(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "fail")
    rig.missing = {"h2": MissingChunks({4, 5})}
    rig.fail(*DIED, status=-9)
    assert rig.orders() == ["h1 abort", "h3 abort", "h4-server-3 report"]
    rig.answer(0, 2, 3)
    assert rig.reason() == (
        "h2: worker 1 exited early with status -9 and never sent chunks 4-5 of job1",
        1,
    )
    assert rig.rounds.asked == [(0, 1, 2)] and rig.orders() == []


@pytest.mark.parametrize(("silent", "who"), [(2, "h3: worker 2"), (3, "h4: server 0")])
def test_who_does_not_answer_is_named(tmp_path: Path, silent: int, who: str) -> None:
    rig = Rig(tmp_path, "fail")
    rig.fail("failed", 0, error="no result", missing=[[0, 3]])
    rig.answer(*({1, 2, 3} - {silent}))
    assert not rig.ended
    rig.wait(ANSWER_S)
    assert rig.reason() == (f"{who} answers nothing", silent)


@pytest.mark.parametrize(
    ("owing", "says", "rank"),
    [
        ("h4", "h4: server 0 never sent chunk 7 of job1", 3),
        ("s1", "no; switch s1 never sent", None),
    ],
)
def test_who_owes_is_called_what_it_is(
    tmp_path: Path, owing: str, says: str, rank: int | None
) -> None:
    rig = Rig(tmp_path, "fail")
    rig.missing = {owing: MissingChunks({7})}
    rig.fail("failed", 0, error="no", missing=[[7, 7]])
    rig.answer(1, 2, 3)
    reason, named = rig.reason()
    assert named == rank and says in reason


def test_a_diagnosis_is_told_what_each_host_waits_for(tmp_path: Path) -> None:
    """MLfabric has two servers and a scheduler at one host here: what all wait for counts."""
    text = PS.replace("ps:", "mlfabric:")
    scenario = resolved(
        tmp_path, text, "mlfabric", work="kind: async_sgd, updates: 6, features: 64, rounds: 1"
    )
    rig = Rig(tmp_path, "fail", scenario=scenario)
    assert [rig.group.agent(rank).host for rank in rig.group.servers] == ["h4"] * 3
    rig.fail("failed", 0, error="no result", missing=[[0, 3]], waiting=[[0, 3]])
    rig.event("aborted", 1, waiting=[[4, 4]], stats={})
    rig.event("aborted", 2, waiting=[], stats={})
    rig.event("served", 3, waiting=[[5, 5]], stats={})
    rig.event("served", 4, waiting=[], stats={})
    rig.event("served", 5, waiting=[[6, 6]], stats={})
    waiting, unserved = {"h1": [[0, 3]], "h2": [[4, 4]], "h3": []}, {"h4": [[5, 5], [6, 6]]}
    assert rig.diagnosed == [(waiting, unserved)]


def test_the_dead_is_started_again_and_all_begin_a_session(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart")
    rig.fail(*DIED, status=1)
    rig.answer(0, 2, 3)
    assert rig.orders()[3:] == ["start h2"]
    rig.event("ready", 1)
    assert rig.orders() == [f"{h} configure" for h in ("h1", "h2", "h3")] + [
        "h4-server-3 configure"
    ]
    for rank in range(4):
        assert not rig.ended
        rig.event("ready", rank)
    assert rig.ended == [None] and rig.result.restarts == 1
    assert rig.rounds.asked == [(0, 1, 2)] * 2, "once more for who was silent"


def test_whom_a_fault_starts_again_is_waited_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart", ("h4", 0.5))
    rig.fail("ended", 3, status=-9)
    rig.answer(0, 1, 2)
    assert rig.orders() == ["h1 abort", "h2 abort", "h3 abort"]
    rig.states[0].ended_ns = rig.clock.now_ns()
    rig.event("ready", 3)
    assert rig.orders()[-1] == "h4-server-3 configure"


def test_whom_a_fault_has_started_meanwhile_is_not_started_twice(tmp_path: Path) -> None:
    """The others answer late: when they do, the fault is over and the program starts."""
    rig = Rig(tmp_path, "restart", ("h2", 0.5))
    rig.fail(*DIED, status=-9)
    rig.wait(0.5)
    rig.states[0].ended_ns = rig.clock.now_ns()
    rig.wait(0.1)
    rig.answer(0, 2, 3)
    assert "start h2" not in rig.orders() and not rig.ended
    rig.event("ready", 1)
    assert rig.orders()[-1] == "h4-server-3 configure"


def test_who_is_back_before_the_others_answer_is_not_started_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart", ("h2", 0.5))
    rig.fail(*DIED, status=-9)
    rig.wait(0.5)
    rig.states[0].ended_ns = rig.clock.now_ns()
    rig.event("ready", 1)
    rig.answer(0, 2, 3)
    orders = rig.orders()
    assert "start h2" not in orders and orders[-1] == "h4-server-3 configure"


def test_who_dies_by_itself_after_a_fault_is_started_by_us(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart", ("h2", 0.5))
    rig.wait(0.5)
    rig.states[0].ended_ns = rig.clock.now_ns()
    rig.wait(0.1)
    rig.fail(*DIED, status=1)
    rig.answer(0, 2, 3)
    assert rig.orders()[-1] == "start h2"


def test_whom_a_fault_killed_for_good_ends_the_job(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart", ("h4", None))
    rig.fail("ended", 3, status=-9)
    rig.answer(0, 1, 2)
    reason, rank = rig.reason()
    assert rank == 3 and reason.startswith("h4: server 0 exited early with status -9 (faults: ")


def test_survivors_go_on_without_the_dead(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "survivors")
    rig.fail(*DIED, status=-9)
    rig.answer(0, 2, 3)
    configured = ["h1 configure", "h3 configure", "h4-server-3 configure"]
    assert rig.orders()[3:] == ["write_entries s1", *configured]
    assert rig.group.members == (0, 2) and rig.result.lost == [1]


def test_survivors_need_their_server(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "survivors")
    rig.missing = {"h4": MissingChunks({7})}
    rig.fail("failed", 0, error="no", missing=[[7, 7]])
    rig.answer(1, 2, 3)
    assert rig.reason() == ("h4: server 0 never sent chunk 7 of job1", 3)


def test_a_server_is_to_blame_also_when_a_worker_is_gone_with_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "survivors")
    rig.fail(*DIED, status=-9)
    rig.event("ended", 3, status=-9)
    rig.answer(0, 2)
    assert rig.reason()[1] == 3


@pytest.mark.parametrize("waits_s", [1.9, 2.0])
def test_who_is_silent_is_waited_for_as_long_as_the_job_says(
    tmp_path: Path, waits_s: float
) -> None:
    rig = Rig(tmp_path, "restart")
    assert rig.job.give_up_s == 2.0 != ANSWER_S
    rig.fail("failed", 0, error="no result", missing=[[0, 3]])
    rig.answer(1, 3)
    rig.wait(ANSWER_S)
    rig.wait(waits_s)
    assert bool(rig.ended) == (waits_s == 2.0)


def test_what_running_again_would_not_mend_is_not_run_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart")
    rig.fail("failed", 0, error="the sum is infinite", missing=None)
    rig.answer(1, 2, 3)
    assert rig.reason() == ("h1: worker 0: the sum is infinite", None)


def test_all_restarts_that_a_job_may_have_are_made_and_no_more(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "restart")
    rig.result.restarts = rig.job.restarts_max - 1
    rig.fail("failed", 0, error="no", missing=[[7, 7]])
    rig.answer(1, 2, 3)
    for rank in range(4):
        rig.event("ready", rank)
    assert rig.ended.pop() is None and rig.result.restarts == rig.job.restarts_max == 10
    rig.fail("failed", 0, error="no", missing=[[7, 7]])
    rig.answer(1, 2, 3)
    assert rig.reason()[0].endswith("gave up after 10 restarts")


SCRIPT_FAILED: Any = ("failed", 1)
SAID: Any = {"error": "train.py: ValueError: no", "missing": None, "gone": True}


def test_a_script_that_has_failed_is_the_reason(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "fail")
    rig.fail(*SCRIPT_FAILED, **SAID)
    rig.answer(0, 1, 2, 3)
    assert rig.reason() == ("h2: worker 1: train.py: ValueError: no", 1)


def test_who_lost_its_script_begins_again_with_the_others(tmp_path: Path) -> None:
    """Its agent answers: it is not started again."""
    rig = Rig(tmp_path, "restart")
    rig.fail(*SCRIPT_FAILED, **SAID)
    assert "h2 abort" in rig.orders()
    rig.answer(0, 1, 2, 3)
    assert [order for order in rig.orders() if "configure" not in order] == []
    assert rig.group.members == (0, 1, 2) and not rig.result.lost


def test_survivors_go_on_without_who_lost_its_script(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "survivors")
    rig.fail(*SCRIPT_FAILED, **SAID)
    rig.answer(0, 1, 2, 3)
    assert rig.result.lost == [1] and rig.group.members == (0, 2)

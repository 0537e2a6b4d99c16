"""What a failure says about the faults of its run."""

from __future__ import annotations

import pytest

from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.run.history import FaultHistory, FaultState
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.run.scheduler import RunClock
from agglab.testbed.schema.faults import AgentCrash, Attack, AtTime, Fault

LIST = "crash h0 1 s after the start, crash h1 1 s after the start, crash h2 1 s after the start"
FOUR = f"{LIST}, crash h3 1 s after the start"
FIVE = f"{FOUR}, crash h4 1 s after the start"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, ""),
        (4, f" (faults: {FOUR})"),
        (6, f" (faults: {FIVE}, crash h5 1 s after the start)"),
        (7, f" (faults: {FIVE}, and 2 more)"),
        (256, f" (faults: {FIVE}, and 251 more)"),
    ],
)
def test_a_line_about_a_failure_does_not_list_hundreds_of_faults(count: int, text: str) -> None:
    clock = RunClock(lambda: 0)
    clock.start_ns = 500
    crashes = [
        Fault(n, "crash", AgentCrash(1, f"h{n}", "worker"), AtTime(1.0)) for n in range(count)
    ]
    states = [FaultState(crash, began_ns=1_000_000_500) for crash in crashes]
    not_begun = FaultState(Fault(999, "crash", AgentCrash(1, "h999", "worker"), AtTime(9.0)))
    assert FaultHistory([*states, not_begun], clock).so_far() == text


def crashed(began_ns: int | None, ended_ns: int | None = None) -> FaultState:
    fault = Fault(0, "crash", AgentCrash(1, "h1", "worker"), AtTime(1.0), duration_s=0.5)
    return FaultState(fault, began_ns, ended_ns)


def test_a_failure_comes_so_long_after_the_last_fault_that_began() -> None:
    states = [crashed(4_000_000_000), crashed(7_000_000_000), crashed(None)]
    clock = RunClock(lambda: 9_000_000_000)
    assert FaultHistory(states, clock).since_s(1) == 2.0
    assert FaultHistory(states[:0], clock).since_s(1_000_000_000) == 8.0


@pytest.mark.parametrize(("died_ns", "back"), [(19, True), (20, True), (21, None)])
def test_a_fault_brings_back_who_died_until_it_ended(died_ns: int, back: bool | None) -> None:
    history = FaultHistory([crashed(10, ended_ns=20)], RunClock(lambda: 30))
    assert history.comes_back(WorkerId(1, "h1"), died_ns) is back


def test_frames_of_all_attacks_are_counted_by_kind_and_by_host() -> None:
    sent = [("h4", {"forged": 3, "spoofed": 2}), ("h4", {"forged": 4}), ("h5", {"spoofed": 8})]
    states = [
        FaultState(Fault(n, "attack", Attack(host, 9, 1.0), AtTime(0.0)), began_ns=1)
        for n, (host, _) in enumerate(sent)
    ]
    for state, (_, kinds) in zip(states, sent, strict=True):
        state.sent.update(kinds)
    outcome = Outcome([])
    FaultHistory(states, RunClock(lambda: 0)).put_into(outcome)
    assert outcome.attacked == {"forged": 7, "spoofed": 10}
    assert outcome.injected == {"h4": 9, "h5": 8}

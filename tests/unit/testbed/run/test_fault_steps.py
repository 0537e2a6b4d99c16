"""What each kind of fault asks of the network when it begins and when it ends, call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_parts import Parts, resolved

from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.run.fault import ATTACK_STEP_NS, FaultProcess
from agglab.testbed.run.history import FaultState
from agglab.testbed.schema.faults import (
    Action,
    AgentCrash,
    AgentPause,
    AgentSlow,
    AtChunk,
    Attack,
    AtTime,
    Fault,
    Impair,
    LinkDown,
    RateChange,
    SwitchReprogram,
    SwitchRestart,
    Trigger,
)
from agglab.topologies.graph import Drop

MS = 1_000_000
BEGINS_MS, LASTS_MS = 250, 40
NUMBER = 3
LOSS = Drop(0.25)
Call = tuple[Any, ...]


class Recorder:
    """A backend that notes each call with the time in ms. Workers end as soon as they are
    killed."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.calls: list[Call] = []

    def __getattr__(self, method: str) -> Callable[..., None]:
        def note(*arguments: Any) -> None:
            values = [a.name if isinstance(a, WorkerId) else a for a in arguments]
            self.calls.append((self._parts.backend.now // MS, method, *values))
            if method == "kill_worker":
                (worker,) = arguments
                self._parts.scheduler.post(
                    {"event": "ended", "job": worker.job, "name": worker.name, "rank": worker.rank}
                )

        return note

    def start_worker(self, worker: WorkerId, configuration: Any) -> None:
        self.calls.append((self._parts.backend.now // MS, "start_worker", worker.name))
        assert configuration["name"] == worker.name


def frames(_: Fault) -> Iterator[tuple[str, bytes]]:
    number = 0
    while True:
        yield "forged", bytes([number])
        number += 1


@dataclass
class Story:
    """A fault that has run: what it asked of the network, what it told, and its record."""

    calls: list[Call]
    told: list[tuple[int, str]]
    state: FaultState


def run(
    folder: Path, action: Action, duration_s: float | None, trigger: Trigger | None = None
) -> Story:
    parts = Parts(resolved(folder))
    recorder = Recorder(parts)
    parts.clock.start_ns = 0
    fault = Fault(NUMBER, "tested", action, trigger or AtTime(BEGINS_MS / 1000), duration_s)
    state, told = FaultState(fault), []
    tables = SimpleNamespace(
        stopped=lambda switch: recorder.entries_lost(switch),
        write_again=lambda switch: recorder.write_again(switch),
    )
    tell = lambda event, **_: told.append((parts.backend.now // MS, event))  # noqa: E731
    process = FaultProcess(state, recorder, parts.clock, tables, parts.roster, frames, tell)
    parts.scheduler.add("fault", process.steps())
    for _ in range(1000):
        parts.wait(0.001)
        chunk = {"event": "chunk", "job": 1, "round": 0, "chunk": parts.backend.now // MS}
        parts.scheduler.post(chunk)
        parts.scheduler.deliver()
    return Story(recorder.calls, told, state)


ENDS_MS = BEGINS_MS + LASTS_MS
ONE_WAY = ("h1->s1",)
CASES = {
    LinkDown("h1-s1"): (
        ("set_link_down", NUMBER, "h1-s1", True),
        ("set_link_down", NUMBER, "h1-s1", False),
    ),
    RateChange("h1-s1", ONE_WAY, 7_000_000): (
        ("set_rate", NUMBER, ONE_WAY, 7_000_000),
        ("set_rate", NUMBER, ONE_WAY, None),
    ),
    Impair("h1-s1", ONE_WAY, LOSS): (
        ("set_impairment", NUMBER, "h1-s1", ONE_WAY, LOSS, True),
        ("set_impairment", NUMBER, "h1-s1", ONE_WAY, LOSS, False),
    ),
    AgentPause(1, "h2", "worker"): (("pause_worker", "h2", True), ("pause_worker", "h2", False)),
    AgentSlow(1, "h2", "worker", 0.004): (
        ("command", "h2", {"command": "slow", "delay_s": 0.004}),
        ("command", "h2", {"command": "slow", "delay_s": 0.0}),
    ),
    AgentCrash(1, "h2", "worker"): (("kill_worker", "h2"), ("start_worker", "h2")),
}


@pytest.mark.parametrize("action", CASES, ids=lambda action: type(action).__name__)
def test_a_fault_with_a_duration_begins_and_ends(action: Action, tmp_path: Path) -> None:
    begin, end = CASES[action]
    story = run(tmp_path, action, LASTS_MS / 1000)
    assert story.calls == [(BEGINS_MS, *begin), (ENDS_MS, *end)]
    assert story.told == [(BEGINS_MS, "fault"), (ENDS_MS, "fault_end")]
    assert (story.state.began_ns, story.state.ended_ns) == (BEGINS_MS * MS, ENDS_MS * MS)


@pytest.mark.parametrize("action", CASES, ids=lambda action: type(action).__name__)
def test_a_fault_without_a_duration_does_not_end(action: Action, tmp_path: Path) -> None:
    begin, _ = CASES[action]
    story = run(tmp_path, action, None)
    assert story.calls == [(BEGINS_MS, *begin)]
    assert story.told == [(BEGINS_MS, "fault")]
    assert story.state.ended_ns is None


def test_a_switch_stays_stopped_for_its_outage(tmp_path: Path) -> None:
    story = run(tmp_path, SwitchRestart("s1", LASTS_MS / 1000), None)
    assert story.calls == [
        (BEGINS_MS, "stop_switch", "s1"),
        (BEGINS_MS, "entries_lost", "s1"),
        (ENDS_MS, "start_switch", "s1"),
        (ENDS_MS, "write_again", "s1"),
    ]
    assert story.told == [(BEGINS_MS, "fault"), (ENDS_MS, "switch_emptied"), (ENDS_MS, "fault_end")]


def test_a_switch_is_reprogrammed_and_then_filled(tmp_path: Path) -> None:
    story = run(tmp_path, SwitchReprogram("s1"), None)
    assert story.calls == [(BEGINS_MS, "reprogram_switch", "s1"), (BEGINS_MS, "write_again", "s1")]
    assert [event for _, event in story.told] == ["fault", "switch_emptied", "fault_end"]


def test_an_attack_spreads_its_frames_and_ends(tmp_path: Path) -> None:
    story = run(tmp_path, Attack("h4", 10, 0.020), None)
    step_ms = ATTACK_STEP_NS // MS
    due = {BEGINS_MS + step_ms * k: 10 * k // 4 for k in (1, 2, 3, 4)}
    before = dict(zip(due, [0, *due.values()], strict=False))
    assert story.calls == [
        (at_ms, "inject", "h4", [bytes([n]) for n in range(before[at_ms], due[at_ms])])
        for at_ms in due
    ]
    assert story.state.sent == {"forged": 10}
    assert story.state.ended_ns == (BEGINS_MS + 20) * MS


@pytest.mark.parametrize(
    ("trigger", "begins_ms"), [(AtTime(0.1), 100), (AtChunk(1, 0, 120), 121)], ids=["time", "chunk"]
)
def test_a_duration_counts_from_the_trigger(
    trigger: Trigger, begins_ms: int, tmp_path: Path
) -> None:
    story = run(tmp_path, LinkDown("h1-s1"), LASTS_MS / 1000, trigger)
    assert [call[0] for call in story.calls] == [begins_ms, begins_ms + LASTS_MS]


@pytest.mark.parametrize("trigger", [AtChunk(2, 0, 5), AtChunk(1, 1, 5)], ids=["job", "round"])
def test_chunks_of_another_job_or_round_trigger_nothing(trigger: Trigger, tmp_path: Path) -> None:
    story = run(tmp_path, LinkDown("h1-s1"), LASTS_MS / 1000, trigger)
    assert not story.calls
    assert story.state.began_ns is None

"""Runs in turns, on virtual time: what comes of them, where turns end, and what is left behind."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from agglab.testbed.experiment.single_run import Experiment
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.programs.prepare import prepare
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import load
from agglab.testbed.virtual import VirtualBackend

TEXT = """
name: {name}
backend: virtual
topology: {{workers: 2}}
links: {{rate: 10mbit, loss: 5%}}
switch: {{lanes: 16, slots: 8}}
workload: {{elements: 2000, dtype: int32, rounds: {rounds}}}
"""
OWN_TIMES = [
    "faults: [{kind: link_down, link: h1-s1, at: 1ms, for: 1ms}]",
    "faults: [{kind: link_down, link: h1-s1, at_chunk: {round: 0, chunk: 3}, for: 1ms}]",
    "faults: [{kind: switch_restart, switch: s1, at_chunk: {round: 0, chunk: 3}, for: 1ms}]",
    "jobs: [{name: a, workers: [h1, h2], end: 1s}]",
    "jobs: [{name: a, workers: [h1, h2]}, {name: b, workers: [h1, h2]}]",
]


def experiment(tmp_path: Path, name: str, rounds: int = 3, more: str = "") -> Experiment:
    return written(tmp_path, name, TEXT.format(name=name, rounds=rounds) + more)


def written(tmp_path: Path, name: str, text: str) -> Experiment:
    path = tmp_path / f"{name}.yaml"
    path.write_text(text)
    (point,) = load(path).points
    folder = RunFolder(tmp_path / "results" / name)
    (tmp_path / "scratch").mkdir(exist_ok=True)
    scratch = tmp_path / "scratch" / name
    return Experiment(point.resolved, prepare(point.resolved), folder, scratch, io.StringIO())


def events(run: Experiment) -> str:
    """All that happened, but for the scenario's name."""
    text = (run.folder.path / "events.jsonl").read_text()
    return text.replace(f'"{run.resolved.name}"', '""')


def interleaved(runs: list[Experiment]) -> list[Experiment]:
    """Whose turn it was, until all were over."""
    turns: list[tuple[Experiment, Generator[None, None, Measurements]]]
    turns, took = [(run, run.turns()) for run in runs], []
    while turns:
        for run, turn in list(turns):
            took.append(run)
            try:
                next(turn)
            except StopIteration:
                turns.remove((run, turn))
    return took


def test_runs_in_turns_come_to_what_they_come_to_alone(tmp_path: Path) -> None:
    alone = [experiment(tmp_path, "alone2", 2), experiment(tmp_path, "alone3", 3)]
    for run in alone:
        run.measure()
    turned = [experiment(tmp_path, "turned2", 2), experiment(tmp_path, "turned3", 3)]
    two, three = turned
    assert interleaved(turned) == [two, three] * 3 + [three]
    assert [events(run) for run in turned] == [events(run) for run in alone]
    assert events(two).count('"verified"') == 2


def test_a_turn_is_a_round_and_its_verdict(tmp_path: Path) -> None:
    run = experiment(tmp_path, "rounds", 3)
    found = []
    for _ in run.turns():
        log = [json.loads(line) for line in events(run).splitlines()]
        found.append([e["event"] for e in log if e["event"] != "slots"])
    prepared, first, second = found
    assert prepared == ["start", "ready", "ready"]
    assert first == [*prepared, "started", "round_begin", "round", "round", "verified"]
    assert second == [*first, "round_begin", "round", "round", "verified"]


def test_the_turns_of_others_are_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for each of theirs, on the clock of the testbed."""
    others_ns, now_ns = [0], VirtualBackend.now_ns
    monkeypatch.setattr(VirtualBackend, "now_ns", lambda self: now_ns(self) + others_ns[0])
    turns = experiment(tmp_path, "resting", 3).turns()
    while True:
        try:
            next(turns)
        except StopIteration as end:
            measured: Measurements = end.value
            break
        others_ns[0] += 1_000_000_000
    (job,) = measured.outcome.jobs
    assert [done.rested_ns for done in job.rounds] == [0, 1_000_000_000, 1_000_000_000]


@pytest.mark.parametrize("more", OWN_TIMES)
def test_a_run_with_times_of_its_own_is_one_turn(tmp_path: Path, more: str) -> None:
    run = experiment(tmp_path, "timed", 3, more)
    assert interleaved([run]) == [run] * 2
    assert '"end"' in events(run)


TIERS = f"""
name: tiers
system: {Path(__file__).parents[1] / "own_system/tiers/tiers.py"}:Tiers
backend: virtual
topology: {{kind: two_tier, racks: 3, workers: 2}}
links: {{rate: 10mbit, queue: 1MB}}
switch: {{lanes: 4}}
workload: {{elements: 401, dtype: int32, rounds: 3}}
"""


def test_a_run_whose_system_has_a_controller_is_one_turn(tmp_path: Path) -> None:
    run = written(tmp_path, "tiers", TIERS)
    assert interleaved([run]) == [run] * 2
    assert '"controlled"' in events(run) and '"end"' in events(run)


def test_turns_that_are_given_up_leave_nothing(tmp_path: Path) -> None:
    run = experiment(tmp_path, "closed", 3)
    turns = run.turns()
    next(turns)
    next(turns)
    assert run.sums.is_dir()
    turns.close()
    assert not run.sums.exists()
    assert events(run).count('"verified"') == 1 and '"end"' not in events(run)

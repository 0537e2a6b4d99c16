"""What virtual time says about a scenario of real links. Nothing here is sent on real links."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_program import AGGREGATION, own_program

from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.testbed.experiment import interleaved_runs, virtual_rerun
from agglab.testbed.experiment.interleaved_runs import Run, take_turns
from agglab.testbed.experiment.virtual_rerun import FRAMES_MAX, Opinion
from agglab.testbed.judge.findings import Finding
from agglab.testbed.run.programs.prepare import prepare
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import Point, load

TEXT = """
name: small
topology: {workers: 2}
links: {rate: 100mbit}
switch: {lanes: 16, slots: 8, pcap: true, log: debug}
workload: {elements: 1000, dtype: int32, rounds: 2}
"""
WAITS = "if (meta.after != meta.all_workers) {"


@pytest.fixture
def point(tmp_path: Path) -> Callable[..., Point]:
    def made(more: str = "", waits: str = "") -> Point:
        path = tmp_path / "small.yaml"
        path.write_text(TEXT + more)
        settings = []
        if waits:
            change = (AGGREGATION, WAITS, f"if ({waits}) {{")
            settings = [f"switch.program={own_program(tmp_path, change)}"]
        return load(path, settings).points[0]

    return made


def asked(point: Point, scratch: Path, frames: int = 0) -> Opinion:
    prepared = prepare(point.resolved)
    return virtual_rerun.second_opinion(point, prepared, frames, scratch / "virtual")


def test_a_right_program_shows_nothing(point: Callable[..., Point], tmp_path: Path) -> None:
    assert asked(point(), tmp_path) == Opinion([])


@pytest.mark.long(but=["true"])
@pytest.mark.parametrize("waits", ["true", "meta.after != meta.all_workers || meta.cell == 2"])
def test_a_program_that_answers_only_when_asked(
    point: Callable[..., Point], tmp_path: Path, waits: str
) -> None:
    opinion = asked(point(waits=waits), tmp_path)
    assert opinion.findings is not None
    assert "sent-again" in [finding["kind"] for finding in opinion.findings]


@pytest.mark.parametrize(
    ("more", "frames", "lacking"),
    [
        ("", FRAMES_MAX + 1, "200001 packets are more than the 200000 that are simulated"),
        ("expect: {fidelity.verdict: cpu-bound}", 0, ""),
    ],
)
def test_what_is_too_large_is_not_simulated(
    point: Callable[..., Point], tmp_path: Path, more: str, frames: int, lacking: str
) -> None:
    opinion = asked(point(more), tmp_path, frames)
    assert (opinion.lacking, opinion.findings) == (lacking, None if lacking else [])


def test_what_cannot_run_in_virtual_time_is_said(
    point: Callable[..., Point], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "mine.py"
    worker.write_text(
        "from agglab.hosts import AllReducer\n"
        "class Mine(AllReducer):\n"
        "    def all_reduce(self, array, out=None):\n"
        "        return super().all_reduce(array, out)\n"
    )
    own = f"{{elements: 1000, rounds: 2, worker: '{worker}:Mine'}}"
    given = point().resolved
    (tmp_path / "own.yaml").write_text(f"name: own\nworkload: {own}\n")
    opinion = asked(load(tmp_path / "own.yaml").points[0], tmp_path)
    assert opinion.findings is None
    assert opinion.lacking.startswith("it cannot run there (")

    def lacks(*_: Any) -> Any:
        raise MachineLacks("a compiler", "get one")

    monkeypatch.setattr(virtual_rerun, "_findings", lacks)
    other = Point({}, given)
    (tmp_path / "2").mkdir()
    assert asked(other, tmp_path / "2").lacking == (
        "it cannot run there (this machine lacks a compiler: get one)"
    )


class Measured:
    """Stands in for an experiment on real links."""

    def __init__(self, *_: Any) -> None: ...

    def turns(self) -> Any:
        yield
        return self

    outcome: Any = SimpleNamespace(jobs=())


@pytest.mark.parametrize(
    ("found", "lacking", "verdict"),
    [([], "", "passed"), (None, "too large", "undecided"), (["slow"], "", "failed")],
)
def test_a_run_asks_when_it_has_measured(
    point: Callable[..., Point],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: list[str] | None,
    lacking: str,
    verdict: str,
) -> None:
    doubt = {"kind": "slow", "text": "a round took 2 s, but h1 was late", "firm": True}
    measured = {"findings": [], "doubts": [doubt], "totals": {"sent": 7}, "exact": True}
    findings = None if found is None else [Finding(k, "2 s").to_json() for k in found]
    monkeypatch.setattr(interleaved_runs, "Experiment", Measured)
    monkeypatch.setattr(interleaved_runs, "compute", lambda *_: measured)
    monkeypatch.setattr(interleaved_runs, "shortfalls", lambda *_: [])
    monkeypatch.setattr(interleaved_runs.Run, "_report_failures", lambda *_: None)
    monkeypatch.setattr(interleaved_runs, "second_opinion", lambda *_: Opinion(findings, lacking))
    folder, out = RunFolder(tmp_path / "r"), io.StringIO()
    given: Any = None
    assert take_turns([Run(point(), given, folder, tmp_path / "s", out)]) == PASSED
    metrics = folder.metrics()
    assert (metrics["verdict"], metrics["ok"]) == (verdict, verdict == "passed")
    assert out.getvalue() == "a round took 2 s, but h1 was late: judging that in virtual time\n"
    if verdict == "undecided":
        assert f"agglab run {tmp_path}/r/scenario.yaml --set backend=virtual" in metrics["reason"]


def test_an_error_while_judging_ends_only_its_own_run(
    point: Callable[..., Point], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(interleaved_runs, "Experiment", Measured)
    monkeypatch.setattr(interleaved_runs, "compute", broken)
    folder = RunFolder(tmp_path / "r")
    given: Any = None
    run = Run(point(), given, folder, tmp_path / "s", io.StringIO())
    assert take_turns([run]) == FAILED
    assert folder.metrics()["reason"].startswith("internal error: ZeroDivisionError")

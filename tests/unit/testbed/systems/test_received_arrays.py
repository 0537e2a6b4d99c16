"""Runs on virtual time whose workers hand their callers something else than they should: it is
found, whatever the integer sums are. tests/root/test_received.py has the same on real links."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.virtual.backend import VirtualBackend
from agglab.testbed.virtual.workers import AgentNode

TEXT = """
name: tiny
backend: virtual
topology: {workers: 3}
links: {rate: 10mbit}
switch: {lanes: 16, slots: 8}
workload: {elements: 1000, dtype: DTYPE, rounds: 3, give_up: 500ms}
"""


class Ran:
    def __init__(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "tiny.yaml"
        path.write_text(text)
        out = io.StringIO()
        self.code = run(load(path), tmp_path / "results", [], out)
        self.out = out.getvalue()
        self.folder = tmp_path / "results/tiny/latest"
        self.metrics: dict[str, Any] = json.loads((self.folder / "metrics.json").read_text())


def spoil(monkeypatch: pytest.MonkeyPatch, change, ranks=(1,), rounds=(1,)) -> None:
    """Change what a caller receives at the end of a round, and not the integer sums."""
    received = AgentNode.received

    def spoiled(self: AgentNode) -> Received:
        found = received(self)
        if self._config.rank not in ranks or self._core.round not in rounds:
            return found
        assert found.result is not None
        result = found.result[:].copy()
        change(result)
        return replace(found, result=result)

    monkeypatch.setattr(AgentNode, "received", spoiled)


def far(value: float):
    def change(result: np.ndarray) -> None:
        result[-1] = value

    return change


@pytest.mark.parametrize(
    ("change", "wrong", "index"),
    [
        (lambda r: np.multiply(r, 1.5, out=r), None, None),
        (lambda r: np.multiply(r, 1 + 1e-5, out=r, casting="same_kind"), None, None),
        (lambda r: np.negative(r, out=r), None, None),
        (far(7.0), 1, 999),
        (far(np.nan), 1, 999),
    ],
    ids=["half as much again", "a little too much", "sign", "last element", "NaN"],
)
def test_a_wrong_float_fails_the_run_and_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change, wrong: int | None, index: int | None
) -> None:
    spoil(monkeypatch, change)
    ran = Ran(tmp_path, TEXT.replace("DTYPE", "float32") + "expect: {exact: true}\n")
    assert ran.code == 1
    metrics = ran.metrics
    assert (metrics["exact"], metrics["wrong_sums"]) == (True, 0)
    assert metrics["error"]["within"] is False
    assert metrics["wrong_results"] == wrong if wrong else metrics["wrong_results"] > 100
    first = metrics["first_wrong"]
    assert (first["worker"], first["rank"], first["round"]) == ("h2", 1, 1)
    assert first["index"] == index or index is None
    assert "FAILED  tiny" in ran.out
    assert f"h2 (worker 1 of job1), round 1: result[{first['index']}] is " in ran.out
    assert f"{metrics['wrong_results']} results are WRONG" in ran.out
    report = (ran.folder / "report.html").read_text()
    assert f"h2 (worker 1 of job1), round 1: result[{first['index']}] is " in report
    assert "<td>wrong results</td>" in report


def test_a_wrong_integer_fails_a_run_that_expects_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoil(monkeypatch, far(7), ranks=(2,), rounds=(0,))
    ran = Ran(tmp_path, TEXT.replace("DTYPE", "int32"))
    assert ran.code == 1
    assert (ran.metrics["exact"], ran.metrics["wrong_results"]) == (False, 1)
    assert ran.metrics["first_wrong"]["got"] == 7
    assert "h3 (worker 2 of job1), round 0: result[999] is 7, but " in ran.out


def test_right_results_pass(tmp_path: Path) -> None:
    ran = Ran(tmp_path, TEXT.replace("DTYPE", "float32"))
    assert ran.code == 0
    assert ran.metrics["error"]["within"] is True and ran.metrics["first_wrong"] is None
    assert 0 < ran.metrics["error"]["max_abs"] <= ran.metrics["error"]["bound"]


CRASH = """
links: {rate: 10mbit, overrides: [{match: h3-s1, delay: 5ms}]}
faults: [{kind: worker_crash, worker: h3, at_chunk: {round: 1, chunk: 62}}]
"""


@pytest.mark.parametrize("policy", ["fail", "survivors"])
def test_what_workers_received_in_a_round_that_was_broken_off_is_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str
) -> None:
    """h1 has all of round 1 when h3 dies, which hears of the last chunk 5 ms later."""
    text = TEXT.replace("DTYPE", "float32").replace("links: {rate: 10mbit}\n", "")
    text = text.replace("give_up", f"on_failure: {policy}, give_up") + CRASH
    ran = Ran(tmp_path, text)
    events = map(json.loads, (ran.folder / "events.jsonl").read_text().splitlines())
    judged = [e for e in events if e["event"] == "verified_broken_off"]
    assert [(e["round"], e["ranks"], e["wrong_results"]) for e in judged] == [(1, [0], 0)]
    calls: list[int] = []

    def first_time(result: np.ndarray) -> None:
        calls.append(1)
        if len(calls) == 1:
            result[3] = 9.0

    spoil(monkeypatch, first_time, ranks=(0,))
    ran = Ran(tmp_path, text)
    assert (ran.code, ran.metrics["wrong_results"]) == (1, 1)
    assert "h1 (worker 0 of job1), round 1: result[3] is 9" in ran.out


def test_who_is_wrong_is_named_by_rank_although_a_worker_before_it_was_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoil(monkeypatch, far(7), ranks=(2,), rounds=(2,))
    crash = "faults: [{kind: worker_crash, worker: h1, at_chunk: {round: 1, chunk: 30}}]\n"
    text = TEXT.replace("DTYPE", "int32").replace("give_up", "on_failure: survivors, give_up")
    ran = Ran(tmp_path, text + crash)
    assert (ran.code, ran.metrics["wrong_results"]) == (1, 1)
    assert "h3 (worker 2 of job1), round 2: result[999] is 7, but " in ran.out


def test_one_wrong_job_of_two_makes_the_run_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoil(monkeypatch, far(7), ranks=(2,))  # the first job has no such rank
    jobs = "jobs: [{name: a, workers: [h1, h2]}, {name: b, workers: [h3, h4, h5]}]\n"
    text = TEXT.replace("DTYPE", "int32").replace("workers: 3", "workers: 5")
    ran = Ran(tmp_path, text + jobs)
    assert (ran.code, ran.metrics["exact"]) == (1, False)
    assert [ran.metrics["jobs"][name]["exact"] for name in "ab"] == [True, False]


def test_a_worker_that_has_left_nothing_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken = VirtualBackend.received

    def missing(self: VirtualBackend, job: int, rank: int, number: int) -> Any:
        left = taken(self, job, rank, number)
        return None if (rank, number) == (2, 1) else left

    monkeypatch.setattr(VirtualBackend, "received", missing)
    ran = Ran(tmp_path, TEXT.replace("DTYPE", "int32"))
    assert (ran.code, ran.metrics["exact"], ran.metrics["wrong_results"]) == (1, False, 1000)
    assert "h3 (worker 2 of job1), round 1: result is nothing, but int32 of 1000" in ran.out

"""`agglab compare`: what differs, whether it is more than noise, and the exit code that says so."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.cli import main
from agglab.testbed.cli.comparing.differences import (
    Comparison,
    Pair,
    Result,
    changes,
    compare,
    read,
)
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.scenario import load

TEXT = """
name: pair
backend: virtual
topology: {kind: rack, workers: 2}
links: {rate: 10mbit, loss: 1%}
switch: {lanes: 16, slots: 8}
workload: {elements: 400, rounds: 8}
"""
SWEEP = "sweep: {workload.elements: [200, 400]}\n"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for name, more in (("run", ""), ("sweep", SWEEP)):
        (folder / "s.yaml").write_text(TEXT + more)
        run(load(folder / "s.yaml"), folder / name, [], io.StringIO())
    return folder


def first(made: Path, kind: str = "run") -> Path:
    return (made / kind / "pair/latest").resolve()


def other(made: Path, tmp_path: Path, change: Change, kind: str = "run") -> Path:
    """A copy whose metrics were changed."""
    folder = Path(shutil.copytree(first(made, kind), tmp_path / "other"))
    metrics = json.loads((folder / "metrics.json").read_text())
    change(metrics)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder


def times(metrics: dict[str, Any]) -> list[float]:
    return metrics["jobs"]["job1"]["allreduce"]["time_s"]["all"]


def told(a: Path, b: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main.main(["compare", str(a), str(b)])
    return code, capsys.readouterr().out


def test_a_result_is_like_itself(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("run", "sweep"):
        code, text = told(first(made, kind), first(made, kind), capsys)
        assert code == 0 and "ALIKE" in text and "the same in all 8 rounds" in text


def test_slower_rounds_are_more_than_noise(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def slower(metrics: dict[str, Any]) -> None:
        times(metrics)[:] = [2 * time_s for time_s in times(metrics)]

    code, text = told(first(made), other(made, tmp_path, slower), capsys)
    assert code == 1 and "B takes 2 times as long as A" in text
    assert "DIFFERENT: the times differ by more than noise" in text


def test_other_rounds_of_the_same_kind_are_noise(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shuffled(metrics: dict[str, Any]) -> None:
        times(metrics)[0] *= 1.01

    code, text = told(first(made), other(made, tmp_path, shuffled), capsys)
    assert code == 0 and "not more than noise" in text and "ALIKE" in text


def test_of_too_few_rounds_it_cannot_be_told(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def few(metrics: dict[str, Any]) -> None:
        times(metrics)[:] = [10 * time_s for time_s in times(metrics)[:1]]

    code, text = told(first(made), other(made, tmp_path, few), capsys)
    assert code == 1 and "too few rounds to tell" in text and "CANNOT TELL" in text


@pytest.mark.parametrize(
    ("path", "value"),
    [("exact", False), ("verdict", "undecided"), ("fidelity.verdict", "cpu-bound")],
)
def test_a_flag_that_differs_is_a_difference(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, value: object
) -> None:
    def flagged(metrics: dict[str, Any]) -> None:
        *sections, name = path.split(".")
        for section in sections:
            metrics = metrics[section]
        metrics[name] = value

    code, text = told(first(made), other(made, tmp_path, flagged), capsys)
    assert code == 1 and f"  {path}: " in text and text.endswith("DIFFERENT\n")


def test_scenario_and_maker_are_compared(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = other(made, tmp_path, lambda metrics: None)
    scenario = (folder / "scenario.yaml").read_text()
    (folder / "scenario.yaml").write_text(scenario.replace("10mbit", "20mbit"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["packages"]["numpy"] = "0.0"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    _, text = told(first(made), folder, capsys)
    assert "  links.rate: 10mbit -> 20mbit\n" in text and "  packages.numpy: " in text


def test_the_same_code_installed_elsewhere_is_no_difference(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a checkout knows its commit, and each has its files in folders of its own."""
    folder = other(made, tmp_path, lambda metrics: None)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["git"] = {"commit": "f" * 40, "modified": False}
    for each in manifest["programs"]:
        each |= {"source": "/elsewhere/switchml.p4", "json": "/elsewhere/switchml.json"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    code, text = told(first(made), folder, capsys)
    assert code == 0 and "produced by (manifest)\n  nothing differs\n" in text
    manifest["code_sha256"] = "of other code"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "  git.commit: " in told(first(made), folder, capsys)[1]


def test_sweeps_are_matched_point_by_point(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def changed(metrics: dict[str, Any]) -> None:
        times(metrics["points"][0]["metrics"])[:] = [9.0] * 8
        metrics["points"][1]["settings"]["workload.elements"] = "800"

    code, text = told(first(made, "sweep"), other(made, tmp_path, changed, "sweep"), capsys)
    assert code == 1 and "only in A: workload.elements 400\n" in text
    assert "only in B: workload.elements 800\n" in text
    assert "\nworkload.elements 200\n  time of a round: B takes" in text


def test_many_comparisons_are_corrected_for(made: Path, tmp_path: Path) -> None:
    """What is rare in one comparison is not in twenty."""

    def twenty(metrics: dict[str, Any]) -> None:
        point = metrics["points"][0]
        points = [json.loads(json.dumps(point)) for _ in range(20)]
        for number, each in enumerate(points):
            each["settings"] = {"seed": str(number)}
        metrics["points"] = points

    a = other(made, tmp_path, twenty, "sweep")
    b = Path(shutil.copytree(a, tmp_path / "b"))
    metrics = json.loads((a / "metrics.json").read_text())
    rounds = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    times(metrics["points"][0]["metrics"])[:] = rounds
    (a / "metrics.json").write_text(json.dumps(metrics))
    times(metrics["points"][0]["metrics"])[:] = [time_s + 0.4 for time_s in rounds]
    (b / "metrics.json").write_text(json.dumps(metrics))
    (found,) = compare(read(a), read(b)).pairs[0].times
    assert found.difference and found.difference.p < 0.05
    assert found.p == pytest.approx(20 * found.difference.p) and not found.more_than_noise


def test_of_two_equal_differences_neither_is_surer(made: Path) -> None:
    """Holm's method never gives a comparison a smaller p than one before it."""
    jobs = [
        {name: {"allreduce": {"time_s": {"all": sample}}} for name in ("a", "b")}
        for sample in ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0])
    ]
    one, two = (Result(made, {"jobs": each}, {}, RecordedScenario("")) for each in jobs)
    ((first_p, second_p),) = [[each.p for each in pair.times] for pair in compare(one, two).pairs]
    (alone,) = compare(
        *(replace(each, metrics={"jobs": {"a": each.metrics["jobs"]["a"]}}) for each in (one, two))
    ).pairs
    assert first_p == second_p == 2 * (alone.times[0].p or 0) > 0


def test_a_run_that_only_one_result_has_is_a_difference(made: Path) -> None:
    one = Result(made, {}, {}, RecordedScenario(""))
    pairs = [Pair("", [], [], [])]
    assert Comparison(one, one, [], [], pairs, [], []).alike
    assert not Comparison(one, one, [], [], pairs, ["point 1"], []).alike
    assert not Comparison(one, one, [], [], pairs, [], ["point 1"]).alike
    assert not Comparison(one, one, [], [], [], [], []).alike


def test_as_json(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compare", str(first(made)), str(first(made)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["alike"] is True and found["runs"][0]["times"][0]["more_than_noise"] is False


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "not the folder of a run"),
        ("[]", "is not a JSON object"),
        ("[" * 100_000, "is not JSON"),
        ('{"points": 3}', "damaged"),
        ('{"jobs": {"a": {"allreduce": {"time_s": {"all": ["x"]}}}}}', "damaged"),
    ],
)
def test_what_is_no_result_is_named(
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    said: str,
) -> None:
    (tmp_path / "bad").mkdir()
    if content is not None:
        (tmp_path / "bad/metrics.json").write_text(content)
    assert main.main(["compare", str(first(made)), str(tmp_path / "bad")]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_changes_of_trees() -> None:
    found = changes({"a": {"b": 1, "c": [1, 2]}}, {"a": {"b": 1, "c": [1, 3], "d": 4}})
    assert [(c.path, c.a, c.b) for c in found] == [("a.c[1]", 2, 3), ("a.d", "nothing", 4)]

"""From what a run measured to its exit code: small runs on virtual time."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load

TEXT = """
name: tiny
backend: virtual
topology: {workers: 2}
links: {rate: 10mbit}
switch: {lanes: 16, slots: 8}
workload: {elements: 1000, dtype: int32, rounds: 2}
"""


def ran(folder: Path, text: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, metrics.json, and what was printed."""
    path = folder / "tiny.yaml"
    path.write_text(TEXT + text)
    out = io.StringIO()
    code = run(load(path), folder / "results", [], out)
    metrics = json.loads((folder / "results/tiny/latest/metrics.json").read_text())
    return code, metrics, out.getvalue()


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("{exact: true, rounds: 2}", ""),
        ("{rounds: 3}", "expected rounds = 3, got 2"),
        ("{rounds: {max: 1}}", "expected rounds <= 1, got 2"),
        ("{rounds: {min: 3}}", "expected rounds >= 3, got 2"),
        ("{error.within: true}", "expected error.within = true, got nothing"),
    ],
)
def test_an_expectation_that_does_not_hold_fails_the_run(
    tmp_path: Path, expected: str, reason: str
) -> None:
    code, metrics, said = ran(tmp_path, f"expect: {expected}\n")
    assert (code, metrics["ok"], metrics["reason"]) == (bool(reason), not reason, reason)
    assert ("FAILED" if reason else "PASSED") in said and reason in said


@pytest.mark.parametrize(("limit", "code"), [("3", 0), ("2", 1)])
def test_one_failed_point_fails_a_sweep(tmp_path: Path, limit: str, code: int) -> None:
    sweep = f"sweep: {{workload.rounds: [2, 3]}}\nexpect: {{rounds: {{max: {limit}}}}}\n"
    got, metrics, _ = ran(tmp_path, sweep)
    assert (got, metrics["ok"]) == (code, not code)
    assert [point["metrics"]["ok"] for point in metrics["points"]] == [True, not code]
    assert metrics["reason"] == ("rounds 3: expected rounds <= 2, got 3" if code else "")


@pytest.mark.parametrize(("most", "code"), [("1.6", 0), ("1.4", 1)])
def test_growth_is_that_of_the_last_point_over_the_first(
    tmp_path: Path, most: str, code: int
) -> None:
    sweep = f"sweep: {{workload.rounds: [2, 3]}}\nexpect: {{growth.rounds: {{max: {most}}}}}\n"
    got, metrics, _ = ran(tmp_path, sweep)
    assert (got, metrics["growth"]) == (code, {"rounds": 1.5})

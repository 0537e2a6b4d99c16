"""Verdicts and exit codes of one run, and of several."""

from __future__ import annotations

from typing import Any

import pytest

from agglab.testbed.base import exit_codes
from agglab.testbed.judge.verdicts import CODES, FAILED, PASSED, UNDECIDED, together, verdict_of
from agglab.testbed.results.side_by_side import comparison, sweep


def test_a_verdict_is_a_word_and_a_code() -> None:
    assert {word: CODES[word] for word in (PASSED, FAILED, UNDECIDED)} == {
        "passed": 0,
        "failed": 1,
        "undecided": 4,
    }


@pytest.mark.parametrize(
    ("metrics", "verdict"),
    [
        ({"ok": False, "verdict": "undecided"}, UNDECIDED),
        ({"ok": True}, PASSED),
        ({"ok": False, "reason": "interrupted"}, FAILED),
    ],
)
def test_metrics_without_a_verdict_have_passed_or_failed(
    metrics: dict[str, Any], verdict: str
) -> None:
    assert verdict_of(metrics) == verdict


@pytest.mark.parametrize(
    ("each", "whole"),
    [
        ((), PASSED),
        ((PASSED, PASSED), PASSED),
        ((PASSED, UNDECIDED), UNDECIDED),
        ((UNDECIDED, FAILED, PASSED), FAILED),
    ],
)
def test_a_failure_outranks_what_cannot_be_judged(each: tuple[str, ...], whole: str) -> None:
    assert together(each) == whole
    assert exit_codes.together(CODES[word] for word in each) == CODES[whole]


@pytest.mark.parametrize(
    ("codes", "whole"), [((3, 0), 3), ((4, 3), 3), ((3, 1, 4), 1), ((4, 0, 130), 130)]
)
def test_a_run_that_did_not_end_outranks_one_that_cannot_be_judged(
    codes: tuple[int, ...], whole: int
) -> None:
    assert exit_codes.together(codes) == whole


def run_of(verdict: str) -> dict[str, Any]:
    reason = "" if verdict == PASSED else f"it {verdict}"
    return {"ok": verdict == PASSED, "verdict": verdict, "reason": reason, "exact": True}


@pytest.mark.parametrize(("other", "whole"), [(PASSED, UNDECIDED), (FAILED, FAILED)])
def test_several_runs(other: str, whole: str) -> None:
    runs = {"a": run_of(UNDECIDED), "b": run_of(other)}
    points = [{"settings": {"n": n}, "metrics": run} for n, run in enumerate(runs.values())]
    for metrics in (comparison(runs, []), sweep(points, [])):
        assert (metrics["verdict"], metrics["ok"]) == (whole, False)
        assert "it undecided" in metrics["reason"]

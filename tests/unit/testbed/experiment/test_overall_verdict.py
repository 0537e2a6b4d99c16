"""The verdict of a run whose own counts leave something in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from agglab.testbed.experiment.overall_verdict import conclude, shortfalls
from agglab.testbed.experiment.virtual_rerun import Opinion
from agglab.testbed.judge.verdicts import FAILED, PASSED, UNDECIDED
from agglab.testbed.schema.expectations import FINDINGS, Expectation

FIRM = {"kind": "sent-again", "text": "900 packets were sent again, but h1 was late", "firm": True}
SLIGHT = {"kind": "sent-again", "text": "3 packets were sent again", "firm": False}
AGAIN = {"kind": "sent-again", "text": "7 of 9 packets were sent again", "numbers": {}}
WINDOW = {"kind": "small-window", "text": "the window fills 50%", "numbers": {}}
CLEAR, NONE = Opinion([]), Opinion(None, "300000 packets are too many")
COMMAND = "agglab run r/scenario.yaml --set backend=virtual"


class Asked:
    """Gives an opinion, and counts how often."""

    def __init__(self, opinion: Opinion) -> None:
        self.opinion, self.times = opinion, 0

    def __call__(self) -> Opinion:
        self.times += 1
        return self.opinion


def concluded(
    doubts: Sequence[Any],
    opinion: Opinion,
    missed: Sequence[str] = (),
    expected: Sequence[Expectation] = (),
    found: Sequence[Any] = (),
) -> tuple[dict[str, Any], int]:
    asked = Asked(opinion)
    metrics = {"findings": list(found), "doubts": list(doubts), "exact": True}
    return conclude(metrics, missed, expected, asked, COMMAND), asked.times


@pytest.mark.parametrize(
    ("doubts", "opinion", "missed", "verdict", "times"),
    [
        ([], NONE, [], PASSED, 0),
        ([], NONE, ["x"], FAILED, 0),
        ([SLIGHT], CLEAR, [], PASSED, 1),
        ([SLIGHT], NONE, [], PASSED, 1),
        ([SLIGHT], Opinion([AGAIN]), [], FAILED, 1),
        ([FIRM], CLEAR, [], PASSED, 1),
        ([FIRM], NONE, [], UNDECIDED, 1),
        ([FIRM], Opinion([AGAIN]), [], FAILED, 1),
        ([FIRM], Opinion([WINDOW]), [], PASSED, 1),
        ([FIRM], NONE, ["x"], FAILED, 0),
    ],
)
def test_virtual_time_decides_what_counts_cannot(
    doubts: list[Any], opinion: Opinion, missed: list[str], verdict: str, times: int
) -> None:
    metrics, asked = concluded(doubts, opinion, missed)
    assert (metrics["verdict"], metrics["ok"], asked) == (verdict, verdict == PASSED, times)
    assert (metrics["second_opinion"] is None) == (times == 0)
    assert bool(metrics["reason"]) == (verdict != PASSED)


def test_an_undecided_run_says_why_and_what_to_do() -> None:
    metrics, _ = concluded([FIRM], NONE)
    assert metrics["reason"] == (
        "this run cannot tell a fault of the program from a lack of processors: 900 packets were "
        "sent again, but h1 was late. It was not judged in virtual time either: 300000 packets are "
        f"too many. Judge it with {COMMAND}, or repeat the run on a quieter machine"
    )
    assert metrics["second_opinion"] == {"findings": None, "lacking": NONE.lacking}


def test_a_failed_run_says_what_virtual_time_shows() -> None:
    metrics, _ = concluded([FIRM], Opinion([AGAIN, WINDOW]))
    assert metrics["reason"] == (
        "in virtual time, where no process is ever late, the same scenario shows sent-again: "
        "7 of 9 packets were sent again"
    )
    assert metrics["second_opinion"] == {"findings": [AGAIN, WINDOW], "lacking": ""}


STATED = [Expectation(FINDINGS, listed=("sent-again",))]
ALLOWED = [Expectation(FINDINGS, listed=("sent-again",), optional=True)]


@pytest.mark.parametrize("expected", [STATED, ALLOWED])
def test_what_a_scenario_states_is_not_in_doubt(expected: list[Expectation]) -> None:
    outcome: Any = SimpleNamespace(jobs=[], never_begun=[])
    metrics = {"findings": [], "doubts": [FIRM]}
    assert shortfalls(outcome, metrics, expected) == []
    result, asked = concluded([FIRM], NONE, expected=expected)
    assert (result["verdict"], asked) == (PASSED, 0)


def test_what_virtual_time_repeats_is_no_new_reason() -> None:
    metrics, _ = concluded([FIRM], Opinion([AGAIN]), expected=ALLOWED)
    assert metrics["verdict"] == PASSED
    slow = {"kind": "slow", "text": "a round took 2 s", "firm": True}
    metrics, _ = concluded([slow], Opinion([AGAIN]), expected=ALLOWED)
    assert metrics["verdict"] == PASSED

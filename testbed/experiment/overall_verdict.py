"""Concludes from what a run has measured whether it passed: from its expectations, its findings and
its doubts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agglab.testbed.experiment.virtual_rerun import Opinion
from agglab.testbed.judge import findings
from agglab.testbed.judge.verdicts import FAILED, PASSED, UNDECIDED
from agglab.testbed.results.shortcomings import failures, shortcomings, stated_kinds
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.schema.expectations import Expectation

Metrics = Mapping[str, Any]
OF_ANY_CLOCK = ("small-window",)
"""The kinds of findings that do not depend on the clock, so that a second opinion on them says
nothing new."""
VIRTUALLY = "in virtual time, where no process is ever late, the same scenario shows "


def shortfalls(outcome: Outcome, metrics: Metrics, expected: Sequence[Expectation]) -> list[str]:
    """Returns the reasons for which a run fails by what it has shown. metrics: as `compute` returns
    them."""
    stated = {kind for kinds in stated_kinds(expected) for kind in kinds}
    shown = [*metrics["findings"], *(d for d in metrics["doubts"] if d["kind"] in stated)]
    return shortcomings(outcome, shown, expected) + failures(metrics, expected)


def conclude(
    metrics: Metrics,
    missed: Sequence[str],
    expected: Sequence[Expectation],
    ask: Callable[[], Opinion],
    command: str,
) -> dict[str, Any]:
    """Returns the whole of metrics.json.

    missed: what `shortfalls` has returned. ask: a function that returns a second opinion. It is
    called only if the run has doubts and would pass without them. command: the command that runs
    the scenario in virtual time.
    """
    stated = {kind for kinds in stated_kinds(expected) for kind in kinds}
    doubts = [doubt for doubt in metrics["doubts"] if doubt["kind"] not in stated]
    opinion = ask() if doubts and not missed else None
    if opinion and opinion.findings is not None:
        contrary = _contrary(metrics, opinion.findings, stated)
        missed = [VIRTUALLY + "; ".join(contrary)] if contrary else []
        doubts = []
    open_doubts = [doubt["text"] for doubt in doubts if doubt["firm"]]
    verdict = FAILED if missed else UNDECIDED if open_doubts else PASSED
    reason = "; ".join(missed)
    if verdict == UNDECIDED:
        assert opinion is not None
        reason = undecided(open_doubts, opinion.lacking, command)
    return {
        "ok": verdict == PASSED,
        "verdict": verdict,
        "reason": reason,
        **metrics,
        "second_opinion": opinion.to_json() if opinion else None,
    }


def _contrary(
    metrics: Metrics, found: Sequence[Mapping[str, Any]], stated: set[str]
) -> Sequence[str]:
    """Returns the findings of a second opinion that neither the run has shown nor the scenario
    states."""
    shown = {finding["kind"] for finding in metrics["findings"]}
    return findings.unexpected(found, (), [*stated, *shown, *OF_ANY_CLOCK])


def undecided(doubts: Sequence[str], lacking: str, command: str) -> str:
    """Returns why a run cannot be judged, and what to do."""
    return (
        f"this run cannot tell a fault of the program from a lack of processors: "
        f"{'; '.join(doubts)}. It was not judged in virtual time either: {lacking}. Judge it with "
        f"{command}, or repeat the run on a quieter machine"
    )

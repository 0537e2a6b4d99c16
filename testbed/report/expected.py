"""Compares the expectations of a scenario's section `expect` with what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.testbed.results.metric_values import lookup, show
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.scenario.metric_names import GROWTH, RATIO
from agglab.testbed.schema.expectations import FINDINGS, Expectation
from agglab.testbed.schema.finding_kinds import WARNINGS

Metrics = Mapping[str, Any]


@dataclass(frozen=True)
class Judged:
    """One expectation: the expected and the measured value as text, and whether it holds."""

    metric: str
    wanted: str
    got: str
    holds: bool


def judged(recorded: RecordedScenario, metrics: Metrics) -> list[Judged]:
    """Returns the expectations that concern these metrics: the growth for a sweep, the ratios for a
    comparison, and all others for a single run."""
    return [_judged(each, metrics) for each in recorded.expectations if _is_about(each, metrics)]


def _is_about(expectation: Expectation, metrics: Metrics) -> bool:
    if "points" in metrics:
        return expectation.metric.startswith(GROWTH)
    if "contenders" in metrics:  # which do not tell of which point they are
        return expectation.metric.startswith(RATIO) and not expectation.at
    return "totals" in metrics and not expectation.metric.startswith((GROWTH, RATIO))


def _judged(expectation: Expectation, metrics: Metrics) -> Judged:
    metric = expectation.metric
    wanted = str(expectation).removeprefix(metric).strip()
    if metric == FINDINGS:
        listed = set(expectation.listed)
        every = [str(finding["kind"]) for finding in metrics["findings"]]
        kinds = [kind for kind in every if kind in listed or kind not in WARNINGS]
        found = set(kinds)
        holds = found <= listed if expectation.optional else found == listed
        return Judged(metric, wanted, _listed(kinds), holds)
    if metric.startswith(GROWTH):
        value = metrics["growth"].get(metric.removeprefix(GROWTH))
    else:
        value = lookup(metrics, metric)
    return Judged(metric, wanted, show(value), expectation.holds(value))


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(kinds)) or "none"

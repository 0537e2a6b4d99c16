"""Says what a run falls short of: expectations, right sums and results, and findings that its
scenario does not allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from agglab.testbed.judge import fidelity, findings
from agglab.testbed.results.metric_values import lookup, show
from agglab.testbed.run.outcome import JobResult, Outcome
from agglab.testbed.scenario.workloads.correctness import combine
from agglab.testbed.schema.expectations import FINDINGS, Expectation

NOTHING_COMPARED = "no sum was compared with a right one"


def shortcomings(
    outcome: Outcome, found: Sequence[Mapping[str, Any]], expected: Sequence[Expectation]
) -> list[str]:
    """Returns the reasons for which a run fails unless the scenario expects them: wrong sums or
    results, failed jobs, faults that never began, and findings (as in metrics.json)."""
    metrics = {expectation.metric for expectation in expected}
    missed = [_wrong(r) for r in outcome.jobs if _is_wrong_unexpectedly(r, expected)]
    missed += [
        f"{fault} never began, because the run was already over" for fault in outcome.never_begun
    ]
    if not any(metric.startswith("failure.") for metric in metrics):
        missed += [r.failure.reason for r in outcome.jobs if r.failure]
    return missed + findings.unexpected(found, *stated_kinds(expected))


def stated_kinds(expected: Sequence[Expectation]) -> tuple[list[str], list[str]]:
    """Returns the kinds of findings that a scenario requires, and those that it allows."""
    stated = [e for e in expected if e.metric == FINDINGS]
    required, allowed = (
        [kind for e in stated if e.optional == optional for kind in e.listed]
        for optional in (False, True)
    )
    return required, allowed


def _wrong(result: JobResult) -> str:
    """Returns a sentence about the first wrong sum or result of a job, and about how many are
    wrong."""
    first = first_wrong(result)
    assert first is not None
    place = first["what"] if first["index"] is None else f"{first['what']}[{first['index']}]"
    allowed = "" if first["allowed"] is None else f" within {first['allowed']:.3g}"
    wanted, got = (
        f"{value:.9g}" if isinstance(value, float) else value
        for value in (first["expected"], first["got"])
    )
    verdict = combine([verdict for _, verdict in result.judged])
    return (
        f"{first['worker']} (worker {first['rank']} of {first['job']}), round {first['round']}: "
        f"{place} is {got}, but {wanted} was expected{allowed}; {verdict.wrong_sums} sums and "
        f"{verdict.wrong_results} results are wrong"
    )


def _is_wrong_unexpectedly(result: JobResult, expected: Sequence[Expectation]) -> bool:
    """Returns whether a job's sums or results are wrong although the scenario does not say that
    they are or may be. Wrong sums explain wrong results, but right sums do not."""
    verdict = combine([verdict for _, verdict in result.judged])
    sums, results = (
        _is_expected(result, expected, flag, count)
        for flag, count in (("exact", "wrong_sums"), ("error.within", "wrong_results"))
    )
    if result.job.dtype != "float32":
        sums = sums or results  # the result is the sum
    results = results or (sums and verdict.wrong_sums > 0)
    return bool(verdict.wrong_sums and not sums) or bool(verdict.wrong_results and not results)


def _is_expected(result: JobResult, expected: Sequence[Expectation], flag: str, count: str) -> bool:
    """Returns whether the scenario expects `flag` to be false, or states `count`, for this job or
    for all."""
    of_job = f"jobs.{result.job.name}."
    stated = {e.metric.removeprefix(of_job): e for e in expected}
    return count in stated or (flag in stated and stated[flag].equals is False)


def failures(metrics: Mapping[str, Any], expected: Sequence[Expectation]) -> list[str]:
    """Returns a text such as `expected x <= 1, got 2` for each expectation that does not hold."""
    missed = []
    for expectation in expected:
        if expectation.metric == FINDINGS:
            continue  # a list of its own, judged by `shortcomings`
        value = lookup(metrics, expectation.metric)
        if not expectation.holds(value):
            why = _why_unknown(expectation.metric, value, metrics)
            missed.append(f"expected {expectation}, got {show(value)}{why}")
    return missed


def _why_unknown(metric: str, value: Any, metrics: Mapping[str, Any]) -> str:
    """Returns, after a colon, why a metric has no value or one that says nothing of the network."""
    if metric == "links_as_predicted" and metrics["links_unclear"]:
        return f": {metrics['links_unclear']}"
    if metric.endswith("exact") and value is None:
        return f": {NOTHING_COMPARED}"
    if metric == "fidelity.verdict" and value in fidelity.OF_THE_MACHINE:
        return ": the machine was too slow for this run"
    return ""


def first_wrong(result: JobResult) -> dict[str, Any] | None:
    """Returns the first array of a job that has a wrong element, and the position of that
    element."""
    for number, verdict in sorted(result.judged, key=lambda judged: judged[0]):
        if first := verdict.first:
            return {
                "job": result.job.name,
                "worker": result.job.hosts[first.rank],
                "rank": first.rank,
                "round": number,
                "what": first.what,
                "index": first.index,
                "expected": first.expected,
                "allowed": first.allowed,
                "got": _plain(first.got),
            }
    return None


def _plain(value: float | int | str) -> float | int | str:
    """Returns the value in a form that JSON can express. JSON has no NaN."""
    return value if isinstance(value, str) or isfinite(value) else str(value)

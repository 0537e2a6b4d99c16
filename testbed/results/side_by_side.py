"""Compares the metrics of several runs: the ratios of contenders, and the growth along a sweep. The
results depend on nothing but the runs' own metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from agglab.testbed.judge.verdicts import FAILED, PASSED, together, verdict_of
from agglab.testbed.results import failure_reasons
from agglab.testbed.results.metric_values import lookup, show
from agglab.testbed.results.noise import LEAST
from agglab.testbed.run.result_folder import point_folder
from agglab.testbed.scenario.metric_names import GROWTH, RATIO, ComparisonContext
from agglab.testbed.scenario.sweep import label
from agglab.testbed.scenario.workloads import judged_time
from agglab.testbed.scenario.workloads.correctness import all_exact
from agglab.testbed.schema.expectations import Expectation
from agglab.testbed.schema.finding_kinds import WARNINGS
from agglab.testbed.schema.key import JOB_NAME

Metrics = Mapping[str, Any]
CHIEF = (
    "allreduce.time_s.median",
    "allreduce.time_s.min",
    "allreduce.ate_per_s",
    "link_bound_s",
    "link_bound_ratio",
    "lossy_bound_s",
    "lossy_bound_ratio",
    "totals.retransmitted",
)
"""The metrics whose ratios are always computed."""
TIMES = "allreduce.time_s.all"


def comparison(runs: Mapping[str, Metrics], expected: Sequence[Expectation]) -> dict[str, Any]:
    """Returns the metrics of a comparison. runs: the metrics of each contender. expected: the
    expectations of their ratios."""
    contest = ComparisonContext(tuple(runs))
    asked = [contest.about(expectation.metric) for expectation in expected]
    ratios: dict[str, dict[str, Any]] = {a: {} for a in runs}
    for a in runs:
        for b in (b for b in runs if b != a):
            paths = [*CHIEF, *(path for names, path in asked if names == (a, b))]
            paths.append(judged_time.common((runs[a], runs[b])).metric)
            ratios[a][b] = _ratios(runs[a], runs[b], paths)
    missed = _missed(expected, [_ratio(runs[a], runs[b], path) for (a, b), path in asked])
    return {
        **_together(runs.values(), _failed_contenders(runs), missed),
        "exact": all_exact(run.get("exact") for run in runs.values()),
        "contenders": dict(runs),
        "ratio": ratios,
    }


def sweep(points: Sequence[Metrics], expected: Sequence[Expectation]) -> dict[str, Any]:
    """Returns the metrics of a sweep. points: the `settings` and `metrics` of each point. expected:
    the expectations of their growth."""
    growth = {}
    for expectation in expected:
        path = expectation.metric.removeprefix(GROWTH)
        first, last = (points[i]["metrics"] for i in (0, -1))
        growth[path] = _ratio(last.get("contenders", last), first.get("contenders", first), path)
    runs = [point["metrics"] for point in points]
    return {
        **_together(runs, _failed_points(points), _missed(expected, growth.values())),
        "exact": all_exact(run.get("exact") for run in runs),
        "growth": growth,
        "points": list(points),
    }


def _together(
    runs: Iterable[Metrics], failed: Sequence[tuple[str, str]], missed: Sequence[str]
) -> dict[str, Any]:
    """Returns `ok`, `verdict` and `reason` of several runs. failed: the label and the reason of
    each run that did not pass. missed: the expectations about all runs that do not hold."""
    verdict = together([*map(verdict_of, runs), *(FAILED for _ in missed)])
    return {
        "ok": verdict == PASSED,
        "verdict": verdict,
        "reason": "; ".join([*failure_reasons.grouped(failed), *missed]),
    }


def reason_lines(metrics: Metrics) -> list[str]:
    """Returns why a run failed, or runs of a sweep or comparison: at most `reasons.LINES_MAX` lines
    about these, and one for each expectation about several of them that does not hold."""
    if "points" not in metrics and "contenders" not in metrics:
        return failure_reasons.grouped([("", metrics["reason"] or "")])
    if "points" in metrics:
        failed, section = _failed_points(metrics["points"]), GROWTH
    else:
        failed, section = _failed_contenders(metrics["contenders"]), RATIO
    single = failure_reasons.split(metrics["reason"])
    whole = [reason for reason in single if reason.startswith(f"expected {section}")]
    return [*failure_reasons.grouped(failed), *whole]


def warning_lines(metrics: Metrics) -> list[str]:
    """Returns the warnings of all runs, in at most `reasons.LINES_MAX` lines, and one about seeds
    that are too few for intervals."""
    runs = runs_of(metrics)
    said = [
        (": ".join(part for part in (run.point, run.contender) if part), f"{kind}: {each['text']}")
        for run in runs
        for each in run.metrics.get("findings", ())
        if (kind := each["kind"]) in WARNINGS
    ]
    seeds = len({run.settings["seed"] for run in runs if "seed" in run.settings})
    few = f"{seeds} seeds have a range and no 95 % interval, for which at least {LEAST} are needed"
    return [*failure_reasons.grouped(said), *([few] if 1 < seeds < LEAST else [])]


def _failed_contenders(runs: Mapping[str, Metrics]) -> list[tuple[str, str]]:
    """Returns the name and the reason of each contender that failed."""
    return [(name, run["reason"]) for name, run in runs.items() if not run["ok"]]


def _failed_points(points: Sequence[Metrics]) -> list[tuple[str, str]]:
    labels = [label(tuple(point["settings"].items())) for point in points]
    named = zip(labels, points, strict=True)
    return [each for name, point in named for each in _failed(name, point["metrics"])]


def _failed(name: str, metrics: Metrics) -> list[tuple[str, str]]:
    """Returns a name and the reason of each run of a point that failed, and those of its ratios
    that are not as expected. name: the point's."""
    if metrics["ok"]:
        return []
    if "contenders" not in metrics:
        return [(name, metrics["reason"])]
    contenders = _failed_contenders(metrics["contenders"])
    failed = [(f"{name}: {contender}", reason) for contender, reason in contenders]
    ratios = [
        r for r in failure_reasons.split(metrics["reason"]) if r.startswith(f"expected {RATIO}")
    ]
    return [*failed, *((name, each) for each in ratios)]


@dataclass(frozen=True)
class OfSeveral:
    """One run among those of a sweep or a comparison.

    settings: the swept keys and their values; empty without a sweep. contender: the contender's
    name; empty if nothing is compared. folder: the run's folder, relative to the folder of all
    runs. first: the name of the point's first contender. times_first: the run's headline time
    divided by that of the first contender. spread: the smallest and the largest such ratio of
    single rounds, if the headline is their time.
    """

    settings: Mapping[str, str]
    contender: str
    folder: str
    metrics: Metrics
    first: str = ""
    times_first: float | None = None
    spread: tuple[float, float] | None = None

    @property
    def point(self) -> str:
        return ", ".join(f"{path} {value}" for path, value in self.settings.items())


def contenders_of(metrics: Metrics) -> Mapping[str, Metrics]:
    """Returns the contenders' metrics by name, which is also the name of their folder. Raises
    ValueError for any other name, because a result folder may come from an untrusted source."""
    contenders: Mapping[str, Metrics] = metrics["contenders"]
    if not contenders or not all(re.fullmatch(JOB_NAME.pattern, name) for name in contenders):
        raise ValueError(f"no contenders: {list(contenders)}")
    return contenders


def runs_of(metrics: Metrics) -> list[OfSeveral]:
    """Returns all runs of a sweep's or a comparison's metrics, in their order."""
    if "points" not in metrics:
        return _at_point({}, "", metrics)
    runs = []
    for number, point in enumerate(metrics["points"]):
        runs += _at_point(point["settings"], point_folder(number), point["metrics"])
    return runs


def _at_point(settings: Mapping[str, str], folder: str, metrics: Metrics) -> list[OfSeveral]:
    if "contenders" not in metrics:
        return [OfSeveral(settings, "", folder, metrics)]
    contenders = contenders_of(metrics)
    first, chief = next(iter(contenders)), judged_time.common(contenders.values())
    runs = []
    for name, run in contenders.items():
        place = f"{folder}/{name}" if folder else name
        times, paired = (
            _ratio(run, contenders[first], chief.metric),
            _paired(run, contenders[first]),
        )
        of_rounds = chief == judged_time.ROUND and paired["all"]
        spread = (paired["min"], paired["max"]) if of_rounds else None
        runs.append(OfSeveral(settings, name, place, run, first, times, spread))
    return runs


def busiest(run: Metrics) -> tuple[str, float] | None:
    """Returns the direction that carried the most bytes, and how many bytes it carried in each
    round; None if no round was completed."""
    ways = {
        name: way["bytes"] for link in run.get("links", {}).values() for name, way in link.items()
    }
    rounds = max((job["rounds"] for job in run.get("jobs", {}).values()), default=0)
    if not rounds or not ways:
        return None
    name = max(ways, key=lambda way: ways[way])
    return name, ways[name] / rounds


def _ratios(a: Metrics, b: Metrics, paths: Sequence[str]) -> dict[str, Any]:
    """Returns the ratios of a's metrics to b's as a tree, in which each metric's path leads to its
    ratio."""
    tree: dict[str, Any] = {}
    for path in dict.fromkeys(paths):
        *sections, name = path.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = _ratio(a, b, path)
    return {**tree, "paired_rounds": _paired(a, b)}


def _ratio(a: Metrics, b: Metrics, path: str) -> float | None:
    """Returns the value of a divided by that of b; None if one of them is not a number or b's is
    0."""
    above, below = (lookup(run, path) for run in (a, b))
    if not all(isinstance(value, (int, float)) for value in (above, below)):
        return None  # the metrics of `first_wrong` may be text
    return above / below if below else None


def _paired(a: Metrics, b: Metrics) -> dict[str, Any]:
    """Returns the ratios of the k-th rounds' times, a's divided by b's. Rounds with the same
    number are compared because they took turns, so a disturbance of one probably also disturbed
    the other."""
    times = (lookup(run, TIMES) or () for run in (a, b))
    ratios = [above / below for above, below in zip(*times, strict=False) if below]
    if not ratios:
        return {"median": None, "min": None, "max": None, "all": []}
    return {"median": median(ratios), "min": min(ratios), "max": max(ratios), "all": ratios}


def _missed(expected: Sequence[Expectation], values: Iterable[float | None]) -> list[str]:
    """Returns the expectations that do not hold."""
    return [
        f"expected {expectation}, got {show(value)}"
        for expectation, value in zip(expected, values, strict=True)
        if not expectation.holds(value)
    ]

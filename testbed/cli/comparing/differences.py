"""Computes the differences between two result folders as values. The module `text` turns them into
sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agglab.testbed.judge.verdicts import verdict_of
from agglab.testbed.results.files import NoResults, read_object
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.noise import Difference, difference
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.results.side_by_side import runs_of
from agglab.testbed.scenario.workloads import judged_time

Metrics = Mapping[str, Any]
LIKELY = 0.05
"""A difference counts as more than noise if chance produces it with at most this probability."""
NOT_OF_THE_RESULT = ("started", "source", "settings", "scenario", "seed", "events_sha256")
"""The fields of the manifest that are not compared. They differ between any two runs, or repeat
what the scenario says."""
FLAGS = ("verdict", "exact", "error.within", "links_as_predicted", "fidelity.verdict", "rounds")
SHOWN = (
    "allreduce.time_s.median",
    "allreduce.time_s.min",
    "allreduce.ate_per_s",
    "link_bound_s",
    "link_bound_ratio",
    "error.max_abs",
)
ABSENT = "nothing"
PLACE = re.compile(r"programs\[\d+\]\.(source|json)")
"""The keys of the manifest that say where a file is."""


@dataclass(frozen=True)
class Result:
    """The result folder of a run, a sweep or a comparison."""

    folder: Path
    metrics: Metrics
    manifest: Metrics
    asked: RecordedScenario


@dataclass(frozen=True)
class Change:
    """A key whose values differ between two results. a, b: its value in each result; ABSENT if the
    result does not have the key."""

    path: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Times:
    """The times of a job in both results. of: what takes such a time, a round or a step. p: the
    p-value of `difference`, corrected for the number of jobs and runs that are compared (Holm);
    None if there is nothing to compare."""

    job: str
    of: str
    a: Sequence[float]
    b: Sequence[float]
    difference: Difference | None
    p: float | None = None

    @property
    def same(self) -> bool:
        """Whether all rounds took exactly the same time."""
        return list(self.a) == list(self.b)

    @property
    def more_than_noise(self) -> bool | None:
        """Whether the difference is more than noise; None if there are too few rounds to tell."""
        if self.same:
            return False
        if self.difference is None or self.p is None or self.difference.p_least > LIKELY:
            return None
        return self.p <= LIKELY


@dataclass(frozen=True)
class Pair:
    """A run that both results have. label: its point and contender; empty for a single run."""

    label: str
    flags: Sequence[Change]
    numbers: Sequence[Change]
    times: Sequence[Times]

    @property
    def alike(self) -> bool:
        return not self.flags and all(each.more_than_noise is False for each in self.times)


@dataclass(frozen=True)
class Comparison:
    """The differences of two results. only_a, only_b: labels of runs that only one of the results
    has."""

    a: Result
    b: Result
    scenario: Sequence[Change]
    made_by: Sequence[Change]
    pairs: Sequence[Pair]
    only_a: Sequence[str]
    only_b: Sequence[str]

    @property
    def unmatched(self) -> list[str]:
        return [*self.only_a, *self.only_b]

    @property
    def alike(self) -> bool:
        """Whether the results have the same runs, at least one, and no run of one differs from that
        of the other by more than noise."""
        return bool(self.pairs) and not self.unmatched and all(pair.alike for pair in self.pairs)


def read(folder: Path) -> Result:
    """Returns the result in a folder. Raises NoResults."""
    metrics = read_object(folder / "metrics.json")
    whole = next((f for f in (folder, *folder.resolve().parents[:2]) if _has_manifest(f)), None)
    manifest = read_object(whole / "manifest.json") if whole else {}
    scenario = folder / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8", errors="replace") if scenario.is_file() else ""
    return Result(folder, metrics, manifest, RecordedScenario(text))


def _has_manifest(folder: Path) -> bool:
    return (folder / "manifest.json").is_file()


def compare(a: Result, b: Result) -> Comparison:
    """Returns the differences of two results. Raises NoResults if metrics.json is malformed."""
    try:
        first, second = (_runs(result.metrics) for result in (a, b))
        both = [label for label in first if label in second]
        pairs = _corrected([_pair(label, first[label], second[label]) for label in both])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"metrics.json is damaged or from another version of Agglab: {error!r}"
        raise NoResults(f"{a.folder} or {b.folder}: {what}") from error
    return Comparison(
        a,
        b,
        changes(a.asked.tree, b.asked.tree),
        _other_producer(a, b),
        pairs,
        [label for label in first if label not in second],
        [label for label in second if label not in first],
    )


def changes(a: Any, b: Any) -> list[Change]:
    """Returns the values of two trees that differ, with their dotted paths."""
    first, second = dict(leaves(a)), dict(leaves(b))
    return [
        Change(path, first.get(path, ABSENT), second.get(path, ABSENT))
        for path in dict.fromkeys([*first, *second])
        if first.get(path, ABSENT) != second.get(path, ABSENT)
    ]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{number}]")
    else:
        yield path, value


def _other_producer(a: Result, b: Result) -> list[Change]:
    """Returns what differs in that which produced the results: code, programs, machine and
    packages. Where files are does not count, nor which commit has the code if the code is the
    same."""
    first, second = (
        {name: v for name, v in each.manifest.items() if name not in NOT_OF_THE_RESULT}
        for each in (a, b)
    )
    same_code = first.get("code_sha256") == second.get("code_sha256")
    return [
        change
        for change in changes(first, second)
        if not PLACE.fullmatch(change.path) and not (same_code and change.path.startswith("git"))
    ]


def _runs(metrics: Metrics) -> dict[str, Metrics]:
    """Returns the runs, with their point and contender as keys."""
    return {
        ": ".join(part for part in (run.point, run.contender) if part): run.metrics
        for run in runs_of(metrics)
    }


def _pair(label: str, a: Metrics, b: Metrics) -> Pair:
    totals = dict.fromkeys([*a.get("totals", {}), *b.get("totals", {})])
    chief = judged_time.common((a, b)).metric
    numbers = dict.fromkeys([chief, *SHOWN, *(f"totals.{name}" for name in totals)])
    flags = _changed(_with_verdict(a), _with_verdict(b), FLAGS)
    return Pair(label, flags, _changed(a, b, list(numbers)), _times(a, b))


def _with_verdict(metrics: Metrics) -> Metrics:
    return {**metrics, "verdict": verdict_of(metrics)}


def _changed(a: Metrics, b: Metrics, paths: Sequence[str]) -> list[Change]:
    found = (Change(path, lookup(a, path), lookup(b, path)) for path in paths)
    return [change for change in found if change.a != change.b]


def _times(a: Metrics, b: Metrics) -> list[Times]:
    first, second = (metrics.get("jobs", {}) for metrics in (a, b))
    found = []
    for job in dict.fromkeys([*first, *second]):
        both = [jobs.get(job, {}) for jobs in (first, second)]
        chief = judged_time.common(both)
        if not all(chief.sample and lookup(each, chief.sample) for each in both):
            chief = judged_time.ROUND
        one, other = (lookup(each, chief.sample) or () for each in both)
        found.append(Times(job, chief.of, one, other, difference(one, other)))
    return found


def _corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """Returns the pairs with their p-values corrected by Holm's method: of m comparisons, the k-th
    smallest p is multiplied by m - k + 1."""
    found = sorted(
        (each.difference.p, i, j)
        for i, pair in enumerate(pairs)
        for j, each in enumerate(pair.times)
        if each.difference
    )
    corrected: dict[tuple[int, int], float] = {}
    worst = 0.0
    for k, (p, i, j) in enumerate(found):
        worst = max(worst, min(1.0, (len(found) - k) * p))
        corrected[i, j] = worst
    return [
        replace(pair, times=[replace(t, p=corrected.get((i, j))) for j, t in enumerate(pair.times)])
        for i, pair in enumerate(pairs)
    ]

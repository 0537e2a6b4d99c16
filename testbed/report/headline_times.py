"""Tells by which time runs are compared, and what it is for a run with several jobs: that of its
slowest job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.side_by_side import OfSeveral
from agglab.testbed.scenario.workloads import judged_time
from agglab.testbed.scenario.workloads.judged_time import Headline

Metrics = Mapping[str, Any]
OF_SLOWEST = " (of the slowest job)"


def common(runs: Iterable[Metrics]) -> Headline:
    """Returns the headline that all jobs of all runs have; that of rounds if they differ."""
    return judged_time.common(part for run in runs for part in _parts(run))


def time_s(run: Metrics, chief: Headline) -> float | None:
    """Returns the headline time of a run in seconds; None if it has none."""
    times = [value for part in _parts(run) if (value := lookup(part, chief.metric)) is not None]
    return max(times, default=None)


def times_first(run: OfSeveral, runs: Sequence[OfSeveral], chief: Headline) -> float | None:
    """Returns the headline time of a run, divided by that of the first contender of its point; None
    if one of them has no time."""
    if run.times_first is not None:
        return run.times_first
    same_point = (each for each in runs if each.settings == run.settings)
    first = next((each for each in same_point if each.contender == run.first), run)
    above, below = time_s(run.metrics, chief), time_s(first.metrics, chief)
    return above / below if above is not None and below else None


def of_whom(runs: Iterable[Metrics]) -> str:
    """Returns the words that a title needs if runs have several jobs; empty if none has."""
    return OF_SLOWEST if any(len(run.get("jobs", {})) > 1 for run in runs) else ""


def _parts(run: Metrics) -> list[Metrics]:
    """Returns the jobs of a run with several jobs, or else the run, which has its job's metrics."""
    jobs = run.get("jobs", {})
    return list(jobs.values()) if len(jobs) > 1 else [run]

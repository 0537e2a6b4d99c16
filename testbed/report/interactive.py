"""Draws one chart of a sweep, for which the reader chooses the metric and the swept key on the
page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from agglab.testbed.report import by_axis, zoom
from agglab.testbed.report.by_axis import MEDIAN, TIMES, Measure
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.side_by_side import OfSeveral, runs_of

Metrics = Mapping[str, Any]
METRICS_MAX = 100
OF_JOBS = "jobs."
"""The start of the paths of a job's metrics. If there is one job, its metrics are also at the top
level."""
SETTINGS = "Choose what is drawn"


def chart(metrics: Metrics) -> str:
    """Returns HTML of the chart. Each number that differs between runs can be drawn over each swept
    key with numeric values. Returns an empty text if there is no such key or no such number."""
    runs = runs_of(metrics) if "points" in metrics else []
    measures = [_measure(path) for path in _paths(runs)]
    choices = {axis: _charts(runs, axis, measures) for axis in by_axis.axes(runs)}
    if not any(choices.values()):
        return ""
    data = json.dumps({"choices": choices}, allow_nan=False).replace("<", "\\u003c")
    names = next(iter(choices.values()))
    return (
        f"<figure class='zoom chosen'><figcaption>{SETTINGS}</figcaption>"
        f"<p>{_select('Metric', 'metric', names)} {_select('Over', 'axis', choices)}</p>"
        "<div class='legend'></div><div class='plot'></div>"
        f"<div class='hint'>{zoom.HINT}</div>"
        f"<script type='application/json'>{data}</script></figure>"
    )


def _measure(path: str) -> Measure:
    return Measure(path, path, path, path, TIMES if path == MEDIAN else "")


def _charts(
    runs: Sequence[OfSeveral], axis: str, measures: Sequence[Measure]
) -> dict[str, dict[str, Any]]:
    """Returns the data of each metric's chart over this key."""
    found = {}
    for measure in measures:
        if figure := by_axis.figure(runs, axis, measure):
            found[measure.path] = zoom.data(figure.x_label, figure.y_label, figure.lines)
    return found


def _select(label: str, name: str, values: Mapping[str, Any]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f"<label>{label} <select name='{name}'>{options}</select></label>"


def _paths(runs: Sequence[OfSeveral]) -> list[str]:
    """Returns the paths of numbers that differ between runs. The median time of a round comes
    first."""
    paths = dict.fromkeys([MEDIAN, *(path for run in runs for path in _numbers(run.metrics))])
    of_one_job = all(len(run.metrics.get("jobs", {})) == 1 for run in runs)
    kept = (
        path
        for path in paths
        if not (of_one_job and path.startswith(OF_JOBS))
        and len({lookup(run.metrics, path) for run in runs}) > 1
    )
    return list(kept)[:METRICS_MAX]


def _numbers(tree: Metrics, path: str = "") -> Iterator[str]:
    """Yields the paths of all numbers in a tree, except those in lists."""
    for name, value in tree.items():
        here = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from _numbers(value, here)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield here

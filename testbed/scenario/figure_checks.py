"""Finds what is wrong with the figure of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agglab.testbed.base.problems import nearest, quote
from agglab.testbed.scenario.metric_names import metric_of, metrics
from agglab.testbed.schema.figure import Figure
from agglab.testbed.schema.metric import NUMBER
from agglab.testbed.schema.scenario import Axis
from agglab.testbed.schema.series_metrics import SERIES, unit_of
from agglab.testbed.systems.base import System

OVER_TIME = tuple(f"{metric.kind}.{metric.name}" for metric in SERIES)
"""The metrics of series.csv, as `figure.over_time` names them."""


def problems(
    figure: Figure, axes: tuple[Axis, ...], contenders: Sequence[str], system: System
) -> Iterator[tuple[str, str, str]]:
    """Yields each thing that is wrong with the figure of a sweep over `axes`, as (path of the key,
    problem, what is allowed)."""
    if not figure.title:
        yield "figure", "has no title", "title: text"
    paths = [axis.path for axis in axes]
    if not paths:
        yield "figure", "is only drawn for a sweep", "sweep: {key: [value, ...]}"
    elif figure.x and figure.x not in paths:
        yield "figure.x", f"{quote(figure.x)} is not a swept key", ", ".join(paths)
    if figure.over and figure.over not in contenders:
        what = f"unknown contender {quote(figure.over)}{nearest(figure.over, contenders)}"
        yield "figure.over", what, ", ".join(contenders) or "compare"
    for i, name in enumerate(figure.over_time):
        kind, _, counted = name.partition(".")
        if unit_of(kind, counted) is None:
            what = f"unknown metric over time {quote(name)}{nearest(name, OVER_TIME)}"
            yield f"figure.over_time[{i}]", what, "docs/results.md lists them (series.csv)"
    named = [(f"figure.y[{i}]", path) for i, path in enumerate(figure.y)]
    if figure.mark:
        named.append(("figure.mark.metric", figure.mark.metric))
    for where, path in named:
        metric = metric_of(path, system)
        if metric is None:
            near = nearest(path, metrics(system))
            yield where, f"unknown metric {quote(path)}{near}", "docs/results.md lists them"
        elif metric.kind != NUMBER:
            yield where, f"{quote(path)} is not a number", "a number"

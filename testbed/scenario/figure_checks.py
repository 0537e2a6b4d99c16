"""Finds what is wrong with the figure of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agglab.testbed.base.problems import nearest, quote
from agglab.testbed.scenario.metric_names import metric_of, metrics
from agglab.testbed.schema.figure import CONTENDER, Figure
from agglab.testbed.schema.metric import NUMBER
from agglab.testbed.schema.quantities import (
    OF_SERIES,
    UNITS,
    quantity_of_metric,
    quantity_of_value,
    units_of,
)
from agglab.testbed.schema.scenario import Axis
from agglab.testbed.schema.series_metrics import SERIES, unit_of
from agglab.testbed.systems.base import System

OVER_TIME = tuple(f"{metric.kind}.{metric.name}" for metric in SERIES)
"""The metrics of series.csv, as `figure.over_time` names them."""
Found = tuple[str, str, str]
"""The path of a key, what is wrong there, and what is allowed."""


def problems(
    figure: Figure, axes: tuple[Axis, ...], contenders: Sequence[str], system: System
) -> Iterator[Found]:
    """Yields each thing that is wrong with the figure of a sweep over `axes`."""
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
    if paths:
        values = {axis.path: [value.text for value in axis.values] for axis in axes}
        yield from _of_panels(figure, values, contenders)
        yield from _of_labels(figure, values, contenders)
        yield from _of_units(figure, values)


def _of_panels(
    figure: Figure, values: Mapping[str, Sequence[str]], contenders: Sequence[str]
) -> Iterator[Found]:
    """Yields what is wrong with `facets` and `where`. values: those of each swept key."""
    known = {**values, **({CONTENDER: contenders} if contenders else {})}
    if figure.facets and figure.facets not in known:
        what = f"{quote(figure.facets)} is not a swept key{nearest(figure.facets, known)}"
        yield "figure.facets", what, ", ".join(known)
    elif figure.facets and figure.facets == (figure.x or next(iter(values))):
        others = ", ".join(name for name in known if name != figure.facets) or "another key"
        yield "figure.facets", f"{quote(figure.facets)} is on the x axis already", others
    for name, chosen in figure.where.items():
        if name not in known:
            what = f"{quote(name)} is not a swept key{nearest(name, known)}"
            yield f"figure.where.{name}", what, ", ".join(known)
            continue
        for value in chosen:
            if value not in known[name]:
                what = f"{quote(name)} never is {quote(value)}{nearest(value, known[name])}"
                yield f"figure.where.{name}", what, ", ".join(known[name])


def _of_labels(
    figure: Figure, values: Mapping[str, Sequence[str]], contenders: Sequence[str]
) -> Iterator[Found]:
    known = [*contenders, *values, *(text for each in values.values() for text in each)]
    known += [*figure.y, *figure.over_time]
    for name in figure.labels:
        if name not in known:
            what = f"the figure has no {quote(name)}{nearest(name, known)}"
            yield f"figure.labels.{name}", what, ", ".join(dict.fromkeys(known))


def _of_units(figure: Figure, values: Mapping[str, Sequence[str]]) -> Iterator[Found]:
    quantities = {name: quantity_of_value(texts[0]) for name, texts in values.items()}
    quantities |= {path: quantity_of_metric(path) for path in figure.y}
    for name in figure.over_time:
        kind, _, metric = name.partition(".")
        quantities[name] = OF_SERIES.get(unit_of(kind, metric) or "", "")
    for name, unit in figure.units.items():
        if name not in quantities:
            what = f"the figure has no {quote(name)}{nearest(name, quantities)}"
            yield f"figure.units.{name}", what, ", ".join(quantities)
        elif unit not in (allowed := units_of(quantities[name])):
            of = UNITS[unit][0] or "plain numbers"
            is_of = quantities[name] or "a plain number"
            what = f"{quote(unit)} is a unit of {of}, and {quote(name)} is {is_of}"
            yield f"figure.units.{name}", what, ", ".join(allowed)

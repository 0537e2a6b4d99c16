"""Makes the charts of a sweep for which the reader chooses the metric on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agglab.testbed.report import by_axis
from agglab.testbed.report.by_axis import MEDIAN, TIMES, Measure
from agglab.testbed.report.chart import LineChart, Piece, Track
from agglab.testbed.report.colours import Palette
from agglab.testbed.report.specification import Spec, specification
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.side_by_side import OfSeveral, runs_of

Metrics = Mapping[str, Any]
METRICS_MAX = 100
OF_JOBS = "jobs."
"""The start of the paths of a job's metrics. If there is one job, its metrics are also at the top
level."""
LISTS = {"y": "values", "low": "lows", "high": "highs"}
"""The lists from which the chosen metric takes the fields of a row."""


def charts(metrics: Metrics, palette: Palette) -> list[Spec]:
    """Returns a chart for each swept key with numeric values. In each, every number that differs
    between runs can be drawn over this key."""
    runs = runs_of(metrics) if "points" in metrics else []
    measures = [_measure(path) for path in _paths(runs)]
    drawn = []
    for axis in by_axis.axes(runs):
        of_axis = [each for measure in measures if (each := by_axis.chart(runs, axis, measure))]
        if of_axis:
            drawn.append(_chosen(axis, of_axis, palette))
    return drawn


def _chosen(axis: str, of_axis: Sequence[LineChart], palette: Palette) -> Spec:
    """Returns a chart whose rows have lists with the values of all metrics, of which the parameter
    `metric` chooses one. of_axis: the chart of each metric."""
    tracks = {(track.name, track.style): track for each in of_axis for track in each.tracks}
    has_bands = any(track.band for each in of_axis for track in each.tracks)
    lines = [_of_one_point(track, has_bands) for track in tracks.values()]
    title = f"Choose what is drawn over {axis}"
    whole = LineChart("", title, of_axis[0].x_label, "", lines, ticks=of_axis[0].ticks)
    spec = specification(whole, palette)
    spec["data"]["values"] = _rows(of_axis)
    spec["transform"] = [
        {"calculate": f"datum.{of}[metric]", "as": name} for name, of in LISTS.items()
    ]
    names = [each.y_label for each in of_axis]
    numbers = {"input": "select", "options": list(range(len(names))), "labels": names}
    spec["params"] = [{"name": "metric", "value": 0, "bind": {**numbers, "name": "Metric "}}]
    return spec


def _rows(of_axis: Sequence[LineChart]) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str, float], dict[str, Any]] = {}
    for metric, chart in enumerate(of_axis):
        for track in chart.tracks:
            limits = {x: (low, high) for x, low, high in track.band}
            style = {"style": track.style} if track.style else {}
            for x, y in track.pieces[0].points:
                row = {"line": track.name, "x": x, **style}
                row |= {name: [None] * len(of_axis) for name in LISTS.values()}
                lists = rows.setdefault((track.name, track.style, x), row)
                values = (y, *limits.get(x, (None, None)))
                for name, value in zip(LISTS.values(), values, strict=True):
                    lists[name][metric] = value
    return list(rows.values())


def _of_one_point(track: Track, has_band: bool) -> Track:
    """Returns a track that stands for a line in the specification, before it gets its rows."""
    band = [(0.0, 0.0, 0.0)] if has_band else []
    return Track(track.name, (Piece([(0.0, 0.0)]),), band, track.style, "", track.coloured_as)


def _measure(path: str) -> Measure:
    return Measure(path, path, path, path, TIMES if path == MEDIAN else "")


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

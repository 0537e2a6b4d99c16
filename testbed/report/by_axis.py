"""Makes a sweep's charts: the measured values as a line over each swept key. Each value has its
interval, if there are several seeds or rounds to compute it from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.testbed.report import headline_times
from agglab.testbed.report.chart import LineChart, Piece, Track
from agglab.testbed.report.repeated import LineName, Repeated, band_of, lines_over
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.recorded_scenario import number, unit
from agglab.testbed.results.side_by_side import OfSeveral, runs_of
from agglab.testbed.scenario.workloads.judged_time import Headline

Metrics = Mapping[str, Any]
TIMES = "allreduce.time_s.all"
MEDIAN = "allreduce.time_s.median"
LINES_MAX = 24
PLAIN = re.compile(r"[A-Za-z0-9_.\[\]-]+")
"""The form of keys that may become part of a file's name. The result folder may come from an
untrusted source."""


@dataclass(frozen=True)
class Measure:
    """What a chart shows over an axis. path: the metric. sample: the path of the list of values
    whose median is the metric, if it is a median. chief: the headline that the metric is; None if
    it is another metric."""

    name: str
    path: str
    title: str
    unit: str
    sample: str = ""
    chief: Headline | None = None

    def of(self, run: OfSeveral) -> float | None:
        """Returns the measured value of a run, or None if the run has none."""
        if self.chief:
            return headline_times.time_s(run.metrics, self.chief)
        value = lookup(run.metrics, self.path)
        return float(value) if isinstance(value, (int, float)) else None


OF_ALL_KINDS = (
    Measure("ratio", "link_bound_ratio", "Median time over the link bound", "ratio"),
    Measure("again", "totals.retransmitted", "Packets sent again", "packets"),
)


def measures(runs: Sequence[OfSeveral]) -> tuple[Measure, ...]:
    """Returns what is drawn for these runs: the time by which they are judged, and what all kinds
    of workload have."""
    chief = headline_times.common(run.metrics for run in runs)
    of_whom = headline_times.of_whom(run.metrics for run in runs)
    title = f"Median time of a {chief.of}{of_whom}"
    time = Measure("time", chief.metric, title, "seconds", chief.sample, chief)
    return time, *OF_ALL_KINDS


def charts(metrics: Metrics) -> list[LineChart]:
    """Returns a chart of each measure over each axis that has at least two values, all of them
    numbers."""
    runs = runs_of(metrics)
    return [
        each
        for axis in axes(runs)
        for measure in measures(runs)
        if (each := chart(runs, axis, measure))
    ]


def axes(runs: Sequence[OfSeveral]) -> Iterator[str]:
    """Yields the swept keys that have at least two values, all of them numbers."""
    for axis in runs[0].settings if runs else ():
        if not PLAIN.fullmatch(axis):
            continue
        values = {number(run.settings[axis]) for run in runs}
        if None not in values and len(values) > 1:
            yield axis


def chart(runs: Sequence[OfSeveral], axis: str, measure: Measure) -> LineChart | None:
    """Returns the chart; None if fewer than two values of the axis have a measured value, or if
    all measured values are zero."""
    measured = [run for run in runs if measure.of(run) is not None]
    if len({run.settings[axis] for run in measured}) < 2 or not any(map(measure.of, measured)):
        return None
    lines = lines_over(axis, measured)
    band = band_of(lines, measure.of, measure.sample)
    more = f" ({LINES_MAX} of {len(lines)} lines)" if len(lines) > LINES_MAX else ""
    kind = unit(next(iter(runs)).settings[axis])
    tracks = [_track(name, points, measure) for name, points in lines.items()]
    texts = {run.settings[axis]: number(run.settings[axis]) or 0.0 for run in measured}
    return LineChart(
        f"{measure.name}-by-{axis}",
        f"{measure.title} by {axis}{band}{more}",
        f"{axis} ({kind})" if kind else axis,
        measure.unit,
        tracks[:LINES_MAX],
        ticks=sorted((at, text) for text, at in texts.items()),
    )


def _track(name: LineName, repeated: Sequence[Repeated], measure: Measure) -> Track:
    points, band = [], []
    for each in sorted(repeated, key=lambda each: number(each.setting) or 0.0):
        x = number(each.setting) or 0.0
        points.append((x, each.value(measure.of) or 0.0))
        if interval := each.interval(measure.of, measure.sample):
            band.append((x, interval.low, interval.high))
    return Track(name.name, (Piece(points),), band, name.style, coloured_as=name.coloured_as)

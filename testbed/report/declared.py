"""Draws the figures that a scenario's section `figure` asks for, from a sweep's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agglab.testbed.report import over_time
from agglab.testbed.report.by_axis import MEDIAN, TIMES
from agglab.testbed.report.chart import (
    NARROW,
    WIDE,
    Layout,
    Mark,
    Piece,
    Series,
    Track,
    bars,
    lines,
)
from agglab.testbed.report.figures import Figure
from agglab.testbed.report.over_time import LINES_MAX
from agglab.testbed.report.repeated import SEED, Repeated, band_of, lines_over
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.recorded_scenario import RecordedScenario, number
from agglab.testbed.results.side_by_side import OfSeveral, runs_of
from agglab.testbed.schema.series_metrics import unit_of

Point = tuple[float, float]


def figures(metrics: Mapping[str, Any], recorded: RecordedScenario, folder: Path) -> list[Figure]:
    """Returns one figure for each metric of the section's `y`, and one for each of `over_time`.
    Returns none without such a section or a sweep. folder: the sweep's folder, with series.csv of
    every run inside."""
    section = recorded.tree.get("figure")
    runs = [run for run in runs_of(metrics) if run.settings] if "points" in metrics else []
    if not isinstance(section, dict) or not runs:
        return []
    drawings: list[_Declared | _OverTime] = [
        *(_Declared(section, runs, y) for y in _list(section.get("y", [MEDIAN]))),
        *(_OverTime(section, runs, folder, each) for each in _list(section.get("over_time", []))),
    ]
    return [
        Figure(f"figure-{i}.svg", one.drawn(WIDE), one.drawn(NARROW))
        for i, one in enumerate(drawings)
    ]


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


@dataclass(frozen=True)
class _Declared:
    """A figure that the section `figure` declares. section: the section's values as text. y: the
    metric to draw."""

    section: Mapping[str, Any]
    runs: Sequence[OfSeveral]
    y: str

    def drawn(self, layout: Layout) -> str:
        title, label = str(self.section.get("title", self.y)), self.y
        if self._relative:
            label += ", first point = 1"
        if self._over:
            label += f", {self._over} = 1"
        if not any(number(text) is not None for text in self._positions):
            return self._bars(title, label, layout)
        ticks = [(at, text) for text, at in self._positions.items()]
        title += band_of(self._lines, self._value, TIMES if self._has_rounds else "")
        tracks = [self._track(name, points) for name, points in self._lines.items()]
        marks = list(self._marks())
        return lines(title, self._x, label, tracks, (), marks, layout, ticks, self._log)

    @property
    def _x(self) -> str:
        return str(self.section.get("x") or next(iter(self.runs[0].settings)))

    @property
    def _over(self) -> str:
        return str(self.section.get("over", ""))

    def _bars(self, title: str, label: str, layout: Layout) -> str:
        """Draws a group of bars for each swept value, if the values of x are not numbers."""
        series = []
        for name, points in self._lines.items():
            values = {point.setting: point.value(self._value) for point in points}
            series.append(Series(name, [values.get(text) for text in self._positions]))
        return bars(title, label, list(self._positions), series, layout=layout)

    def _value(self, run: OfSeveral) -> float | None:
        """Returns the measured value of a run. If `over` names a contender, the value is divided by
        that contender's value at the same point."""
        value = lookup(run.metrics, self.y)
        if not _is_number(value):
            return None
        if not self._over:
            return float(value)
        others = (r for r in self.runs if (r.contender, r.settings) == (self._over, run.settings))
        other = next((lookup(r.metrics, self.y) for r in others), None)
        return value / other if _is_number(other) and other else None

    @property
    def _log(self) -> bool:
        """Whether the y axis is logarithmic: the section asks for it, and all values are
        positive."""
        values = [self._value(run) for run in self.runs]
        numbers = [value for value in values if value is not None]
        return self.section.get("y_scale") == "log" and min(numbers, default=0) > 0

    @property
    def _relative(self) -> bool:
        return self.section.get("relative") == "true"

    @property
    def _has_rounds(self) -> bool:
        """Whether a run's value is the median of its rounds."""
        return self.y == MEDIAN and not self._over

    @cached_property
    def _lines(self) -> dict[str, list[Repeated]]:
        return lines_over(self._x, self.runs)

    @cached_property
    def _positions(self) -> dict[str, float]:
        """The position of each swept value on the axis: its number, or equal steps."""
        values = list(dict.fromkeys(run.settings[self._x] for run in self.runs))
        numbers = {value: found for value in values if (found := number(value)) is not None}
        if self.section.get("scale") == "steps" or len(numbers) < len(values):
            return {value: float(i) for i, value in enumerate(values)}
        return numbers

    def _track(self, name: str, repeated: Sequence[Repeated]) -> Track:
        """Returns a line through the measured values. Its band is the interval that follows from
        the seeds, or from the rounds if each value is a median of rounds."""
        points: list[Point] = []
        band = []
        for each in repeated:
            at, value = self._positions[each.setting], each.value(self._value)
            if value is None:
                continue
            points.append((at, value))
            if interval := each.interval(self._value, TIMES if self._has_rounds else ""):
                band.append((at, interval.low, interval.high))
        unit = points[0][1] if self._relative and points and points[0][1] else 1.0
        line = [(x, value / unit) for x, value in points]
        return Track(name, (Piece(line),), [(x, a / unit, b / unit) for x, a, b in band])

    def _marks(self) -> Iterator[Mark]:
        """Yields a mark where each line's metric first reaches the value that the section
        states."""
        mark = self.section.get("mark")
        if not isinstance(mark, dict):
            return
        least = number(str(mark.get("reaches", "1"))) or 0.0
        for points in self._lines.values():
            runs = (run for point in points for run in point.runs)
            reached = (r for r in runs if _reaches(lookup(r.metrics, mark["metric"]), least))
            if run := next(reached, None):
                text = str(mark.get("text", mark["metric"]))
                yield Mark(self._positions[run.settings[self._x]], text)


@dataclass(frozen=True)
class _OverTime:
    """A figure of a metric of series.csv over time, for several runs. named: the metric, as
    `kind.metric`."""

    section: Mapping[str, Any]
    runs: Sequence[OfSeveral]
    folder: Path
    named: str

    def drawn(self, layout: Layout) -> str:
        kind, _, metric = self.named.partition(".")
        title = f"{self.section.get('title', '')}: {metric.replace('_', ' ')} over time"
        more = f" ({LINES_MAX} of {len(self._tracks)} lines)"
        title += more if len(self._tracks) > LINES_MAX else ""
        label = f"{self.named} ({unit_of(kind, metric) or ''})"
        return lines(title, "seconds", label, self._tracks[:LINES_MAX], layout=layout)

    @cached_property
    def _tracks(self) -> list[Track]:
        """The lines: one for each job, worker, link or switch of each run. If several runs differ
        only in the seed, only the first of them is drawn."""
        tracks = []
        for label, (run, *_) in self._shown.items():
            kind, _, metric = self.named.partition(".")
            found = over_time.read(self.folder / run.folder).get((kind, metric), {})
            for name, points in found.items():
                text = label if len(found) == 1 else f"{label}, {name}"
                tracks.append(Track(text, (Piece(sorted(points)),)))
        return tracks

    @cached_property
    def _shown(self) -> dict[str, list[OfSeveral]]:
        found: dict[str, list[OfSeveral]] = {}
        for run in self.runs:
            found.setdefault(run.line_over({SEED}), []).append(run)
        return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _reaches(value: Any, least: float) -> bool:
    return _is_number(value) and bool(value >= least)

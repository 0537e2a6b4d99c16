"""Draws the figures for which a scenario's section `figure` asks, from a sweep's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agglab.testbed.metrics import lookup
from agglab.testbed.noise import median_interval
from agglab.testbed.report.asked import Asked, number
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
from agglab.testbed.side_by_side import OfSeveral, runs_of

Point = tuple[float, float]


def figures(metrics: Mapping[str, Any], asked: Asked) -> list[Figure]:
    """Returns one figure for each metric of the section's `y`; none without such a section or a
    sweep."""
    section = asked.tree.get("figure")
    runs = [run for run in runs_of(metrics) if run.settings] if "points" in metrics else []
    if not isinstance(section, dict) or not runs:
        return []
    wanted = section.get("y", [MEDIAN])
    drawn = []
    for i, y in enumerate([wanted] if isinstance(wanted, str) else wanted):
        one = _Declared(section, runs, y)
        drawn.append(Figure(f"figure-{i}.svg", one.drawn(WIDE), one.drawn(NARROW)))
    return drawn


@dataclass(frozen=True)
class _Declared:
    """section: its values as text. y: the metric."""

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
        tracks = [self._track(name, runs) for name, runs in self._lines.items()]
        marks = list(self._marks())
        return lines(title, self._x, label, tracks, (), marks, layout, ticks, self._log)

    @property
    def _x(self) -> str:
        return str(self.section.get("x") or next(iter(self.runs[0].settings)))

    @property
    def _over(self) -> str:
        return str(self.section.get("over", ""))

    def _bars(self, title: str, label: str, layout: Layout) -> str:
        """Draws a group of bars for each value, if x is not a number."""
        series = []
        for name, runs in self._lines.items():
            values = {run.settings[self._x]: self._value(run) for run in runs}
            series.append(Series(name, [values.get(text) for text in self._positions]))
        return bars(title, label, list(self._positions), series, layout=layout)

    def _value(self, run: OfSeveral) -> float | None:
        """Returns the measured value, divided by another contender's at the same point if that is
        asked."""
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
        """Returns whether the scale can be logarithmic, because all values are positive."""
        values = [self._value(run) for run in self.runs]
        numbers = [value for value in values if value is not None]
        return self.section.get("y_scale") == "log" and min(numbers, default=0) > 0

    @property
    def _relative(self) -> bool:
        return self.section.get("relative") == "true"

    @cached_property
    def _lines(self) -> dict[str, list[OfSeveral]]:
        """Returns the runs that differ only in x, by the label of what distinguishes them from
        other lines."""
        found: dict[str, list[OfSeveral]] = {}
        for run in self.runs:
            found.setdefault(run.line_over(self._x), []).append(run)
        return found

    @cached_property
    def _positions(self) -> dict[str, float]:
        """Returns the position of each swept value on the axis: at its number, or at equal
        steps."""
        values = list(dict.fromkeys(run.settings[self._x] for run in self.runs))
        numbers = {value: found for value in values if (found := number(value)) is not None}
        if self.section.get("scale") == "steps" or len(numbers) < len(values):
            return {value: float(i) for i, value in enumerate(values)}
        return numbers

    def _track(self, name: str, runs: Sequence[OfSeveral]) -> Track:
        """Returns a line through the measured values, with the interval of the rounds if they are
        medians."""
        points: list[Point] = []
        band = []
        for run in runs:
            at, value = self._positions[run.settings[self._x]], self._value(run)
            if value is None:
                continue
            points.append((at, value))
            sample = lookup(run.metrics, TIMES) if self.y == MEDIAN and not self._over else ()
            if interval := median_interval(sample or ()):
                band.append((at, interval.low, interval.high))
        unit = points[0][1] if self._relative and points and points[0][1] else 1.0
        line = [(x, value / unit) for x, value in points]
        return Track(name, (Piece(line),), [(x, a / unit, b / unit) for x, a, b in band])

    def _marks(self) -> Iterator[Mark]:
        """Yields where each line's metric first reaches the value in the section."""
        mark = self.section.get("mark")
        if not isinstance(mark, dict):
            return
        least = number(str(mark.get("reaches", "1"))) or 0.0
        for runs in self._lines.values():
            reached = (r for r in runs if _reaches(lookup(r.metrics, mark["metric"]), least))
            if run := next(reached, None):
                text = str(mark.get("text", mark["metric"]))
                yield Mark(self._positions[run.settings[self._x]], text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _reaches(value: Any, least: float) -> bool:
    return _is_number(value) and bool(value >= least)

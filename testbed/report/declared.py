"""Makes the charts that a scenario's section `figure` asks for, from a sweep's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from agglab.testbed.report import over_time
from agglab.testbed.report.by_axis import MEDIAN, TIMES
from agglab.testbed.report.chart import BarChart, Chart, LineChart, Mark, Piece, Series, Track
from agglab.testbed.report.over_time import LINES_MAX
from agglab.testbed.report.repeated import (
    SEED,
    LineName,
    Repeated,
    Wording,
    band_of,
    constant,
    line_name,
    lines_over,
)
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.recorded_scenario import number
from agglab.testbed.results.side_by_side import OfSeveral, runs_of
from agglab.testbed.schema.figure import CONTENDER
from agglab.testbed.schema.quantities import UNITS
from agglab.testbed.schema.series_metrics import unit_of

Point = tuple[float, float]
Section = Mapping[str, Any]
"""A section `figure` as plain values: sections as dicts, lists as lists, scalars as text."""


def charts(metrics: Mapping[str, Any], section: Any, folder: Path) -> list[Chart]:
    """Returns one chart for each metric of the section's `y`, and one for each of `over_time`.
    Returns none without such a section or a sweep. folder: the sweep's folder, with series.csv of
    every run inside."""
    runs = [run for run in runs_of(metrics) if run.settings] if "points" in metrics else []
    if not isinstance(section, dict) or not runs:
        return []
    runs = [run for run in runs if _is_chosen(run, section.get("where", {}))]
    asked: list[_Declared | _OverTime] = [
        *(_Declared(section, runs, y) for y in listed(section.get("y", [MEDIAN]))),
        *(_OverTime(section, runs, folder, each) for each in listed(section.get("over_time", []))),
    ]
    return [replace(each.chart(), name=f"figure-{i}") for i, each in enumerate(asked) if runs]


def listed(value: Any) -> list[str]:
    """Returns the values of a key that takes one value or a list of them."""
    return [value] if isinstance(value, str) else list(value)


def _is_chosen(run: OfSeveral, where: Mapping[str, Any]) -> bool:
    values = {CONTENDER: run.contender, **run.settings}
    return all(values.get(key) in listed(chosen) for key, chosen in where.items())


@dataclass(frozen=True)
class _Shown:
    """What all charts of a section have in common."""

    section: Section
    runs: Sequence[OfSeveral]

    @property
    def wording(self) -> Wording:
        return Wording(self.section.get("labels", {}))

    @property
    def facets(self) -> str:
        return str(self.section.get("facets", ""))

    def factor(self, name: str) -> float:
        """Returns what a value of this metric or key is divided by, to be in the unit that the
        section states."""
        unit = self.section.get("units", {}).get(name)
        return UNITS[unit][1] if unit else 1.0

    def label(self, name: str, unit: str = "") -> str:
        """Returns the label of an axis. unit: that of its values if the section states none."""
        shown = self.section.get("units", {}).get(name, unit)
        return f"{self.wording.of(name)} ({shown})" if shown else self.wording.of(name)


@dataclass(frozen=True)
class _Declared(_Shown):
    """A chart that the section declares. y: the metric to draw."""

    y: str

    def chart(self) -> Chart:
        title, label = str(self.section.get("title", self.y)), self.label(self.y)
        if self._relative:
            label += ", first point = 1"
        if self._over:
            label += f", {self.wording.of(self._over)} = 1"
        if not any(number(text) is not None for text in self._positions):
            return self._bars(title, label)
        title += band_of(self._lines, self._value, TIMES if self._has_rounds else "")
        tracks = [self._track(name, points) for name, points in self._lines.items()]
        ticks = [(at, self.wording.of(text)) for text, at in self._positions.items()]
        in_unit = not self._even and self._x in self.section.get("units", {})
        return LineChart(
            *("", title, self.label(self._x), label, tracks),
            marks=list(self._marks()),
            ticks=() if in_unit else ticks,
            even=self._even,
            log=self._log,
        )

    @property
    def _x(self) -> str:
        return str(self.section.get("x") or next(iter(self.runs[0].settings)))

    @property
    def _over(self) -> str:
        return str(self.section.get("over", ""))

    def _bars(self, title: str, label: str) -> BarChart:
        """Returns a group of bars for each swept value, if the values of x are not numbers."""
        series = []
        for name, points in self._lines.items():
            values = {point.setting: point.value(self._value) for point in points}
            heights = [values.get(text) for text in self._positions]
            words = f"{name.name}, {name.style}" if name.style else name.name
            coloured_as = "" if name.style else name.coloured_as
            series.append(Series(words, heights, (), name.panel, coloured_as))
        categories = [self.wording.of(text) for text in self._positions]
        return BarChart("", title, self.label(self._x), label, categories, series)

    def _value(self, run: OfSeveral) -> float | None:
        """Returns the measured value of a run. If `over` names a contender, the value is divided by
        that contender's value at the same point."""
        value = lookup(run.metrics, self.y)
        if not _is_number(value):
            return None
        if not self._over:
            return float(value) / self.factor(self.y)
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
    def _lines(self) -> dict[LineName, list[Repeated]]:
        return lines_over(self._x, self.runs, self.facets, self.wording)

    @property
    def _even(self) -> bool:
        """Whether the swept values are at equal distances."""
        return self.section.get("scale") == "steps" or None in map(number, self._values)

    @cached_property
    def _values(self) -> list[str]:
        return list(dict.fromkeys(run.settings[self._x] for run in self.runs))

    @cached_property
    def _positions(self) -> dict[str, float]:
        """The position of each swept value on the axis: its number, or equal steps."""
        if self._even:
            return {value: float(i) for i, value in enumerate(self._values)}
        return {v: (number(v) or 0.0) / self.factor(self._x) for v in self._values}

    def _track(self, name: LineName, repeated: Sequence[Repeated]) -> Track:
        """Returns a line through the measured values. Its band is the interval that follows from
        the seeds, or from the rounds if each value is a median of rounds."""
        points: list[Point] = []
        band = []
        scale = 1.0 if self._over else self.factor(self.y)
        for each in repeated:
            at, value = self._positions[each.setting], each.value(self._value)
            if value is None:
                continue
            points.append((at, value))
            rounds = TIMES if self._has_rounds else ""
            if interval := each.interval(self._value, rounds):
                of_rounds = scale if rounds and len(each.runs) == 1 else 1.0
                band.append((at, interval.low / of_rounds, interval.high / of_rounds))
        unit = points[0][1] if self._relative and points and points[0][1] else 1.0
        line = [(x, value / unit) for x, value in points]
        scaled = [(x, a / unit, b / unit) for x, a, b in band]
        named = (name.style, name.panel, name.coloured_as)
        return Track(name.name, (Piece(line),), scaled, *named)

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
class _OverTime(_Shown):
    """A chart of a metric of series.csv over time, for several runs. named: the metric, as
    `kind.metric`."""

    folder: Path
    named: str

    def chart(self) -> LineChart:
        kind, _, metric = self.named.partition(".")
        tracks = self._tracks
        title = f"{self.section.get('title', '')}: {metric.replace('_', ' ')} over time"
        title += f" ({LINES_MAX} of {len(tracks)} lines)" if len(tracks) > LINES_MAX else ""
        label = self.label(self.named, unit_of(kind, metric) or "")
        return LineChart("", title, "seconds", label, tracks[:LINES_MAX])

    @cached_property
    def _tracks(self) -> list[Track]:
        """The lines: one for each job, worker, link or switch of each run. If several runs differ
        only in the seed, only the first of them is drawn."""
        tracks = []
        for name, (run, *_) in self._shown.items():
            kind, _, metric = self.named.partition(".")
            series = over_time.read(self.folder / run.folder).get((kind, metric), {})
            for thing, points in series.items():
                own = [name.style] if name.style else []
                style = ", ".join([*own, *([thing] if len(series) > 1 else [])])
                line = [(at_s, value / self.factor(self.named)) for at_s, value in sorted(points)]
                named = (style, name.panel, name.coloured_as)
                tracks.append(Track(name.name, (Piece(line),), (), *named))
        return tracks

    @cached_property
    def _shown(self) -> dict[LineName, list[OfSeveral]]:
        shown: dict[LineName, list[OfSeveral]] = {}
        ignored = {SEED, *constant(self.runs)}
        for run in self.runs:
            shown.setdefault(line_name(run, ignored, self.facets, self.wording), []).append(run)
        return shown


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _reaches(value: Any, least: float) -> bool:
    return _is_number(value) and bool(value >= least)

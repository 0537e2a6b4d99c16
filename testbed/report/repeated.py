"""Joins the runs of a sweep that differ only in the seed. Their median is one point of a line. The
confidence interval of that median is drawn as a band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from agglab.testbed.metrics import lookup
from agglab.testbed.noise import median_interval
from agglab.testbed.side_by_side import OfSeveral

SEED = "seed"
Value = Callable[[OfSeveral], float | None]


@dataclass(frozen=True)
class Repeated:
    """Runs that have the same settings except the seed, and are therefore one point of a line."""

    setting: str
    runs: tuple[OfSeveral, ...]

    def value(self, of: Value) -> float | None:
        """Returns the median of the runs' values; None if no run has one."""
        values = self._values(of)
        return median(values) if values else None

    def interval(self, of: Value, sample: str = "") -> tuple[float, float] | None:
        """Returns the 95 % interval of the median; None if there is none. With several seeds, it is
        computed from the runs' values. With one run, it is computed from the run's list at the path
        `sample`, if that is given."""
        values: Sequence[float] = self._values(of)
        if len(self.runs) == 1:
            values = lookup(self.runs[0].metrics, sample) or () if sample else ()
        found = median_interval(values)
        return (found.low, found.high) if found else None

    def _values(self, of: Value) -> list[float]:
        return [value for run in self.runs if (value := of(run)) is not None]


def lines_over(axis: str, runs: Sequence[OfSeveral]) -> dict[str, list[Repeated]]:
    """Returns the points of each line over a swept key, by the line's label. Runs that differ only
    in the seed form one point, unless the axis is the seed."""
    ignored = {axis, SEED}
    found: dict[str, dict[str, list[OfSeveral]]] = {}
    for run in runs:
        line = found.setdefault(run.line_over(ignored), {})
        line.setdefault(run.settings[axis], []).append(run)
    return {
        label: [Repeated(setting, tuple(same)) for setting, same in line.items()]
        for label, line in found.items()
    }


def band_of(lines: dict[str, list[Repeated]], rounds: bool) -> str:
    """Returns the words in a figure's title that explain its band; empty if it has no band. rounds:
    whether a single run's value is a median of rounds."""
    seeds = max((len(point.runs) for line in lines.values() for point in line), default=0)
    if seeds > 1:
        return f", with the 95 % interval of {seeds} seeds"
    return ", with the 95 % interval of its rounds" if rounds else ""

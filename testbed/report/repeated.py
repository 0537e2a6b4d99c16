"""Joins the runs of a sweep that differ only in the seed. Their median is one point of a line. The
confidence interval of that median is drawn as a band, or the range of the values if they are too
few for an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.noise import LEAST, Interval, median_interval
from agglab.testbed.results.side_by_side import OfSeveral

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

    def interval(self, of: Value, sample: str = "") -> Interval | None:
        """Returns the interval of the median; None if there is none. With several seeds, it is
        computed from the runs' values. With one run, it is computed from the run's list at the path
        `sample`, if that is given."""
        return median_interval(self.sample(of, sample))

    def sample(self, of: Value, path: str = "") -> Sequence[float]:
        """Returns the values of which the interval is computed."""
        if len(self.runs) > 1:
            return self._values(of)
        return lookup(self.runs[0].metrics, path) or () if path else ()

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


def band_of(lines: Mapping[str, Sequence[Repeated]], of: Value, path: str = "") -> str:
    """Returns the words in a figure's title that explain its band; empty if it has no band. of: the
    value of a run. path: where a run has the list whose median this value is; empty if it is no
    median."""
    points = [point for line in lines.values() for point in line]
    sizes = [size for point in points if (size := len(point.sample(of, path))) > 1]
    if not sizes:
        return ""
    whose = f"{min(sizes)} seeds" if any(len(p.runs) > 1 for p in points) else "its rounds"
    if min(sizes) < LEAST:
        return f", with the range of {whose} (too few for an interval)"
    return f", with the 95 % interval of {whose}"

"""Joins the runs of a sweep that differ only in the seed. Their median is one point of a line. The
confidence interval of that median is drawn as a band, or the range of the values if they are too
few for an interval."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.noise import LEAST, Interval, median_interval
from agglab.testbed.results.side_by_side import OfSeveral
from agglab.testbed.schema.figure import CONTENDER

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


@dataclass(frozen=True)
class Wording:
    """What is written instead of names. labels: the text for a contender, a key or a value."""

    labels: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        return self.labels.get(name, name)

    def setting(self, path: str, value: str) -> str:
        return f"{self.of(path)} {self.of(value)}"


@dataclass(frozen=True)
class LineName:
    """What distinguishes a line from others. The fields are those of a Track."""

    name: str
    style: str = ""
    panel: str = ""
    coloured_as: str = ""


def line_name(
    run: OfSeveral,
    ignored: Collection[str],
    facets: str = "",
    wording: Wording = Wording(),
) -> LineName:
    """Returns the line to which a run belongs: its contender, or else the first swept key that is
    not in `ignored`, decides the color, and all other keys the style. facets: the key whose values
    have panels of their own."""
    own = {CONTENDER: run.contender, **run.settings}
    kept = [path for path, value in own.items() if value and path not in {*ignored, facets}]
    first, *rest = kept or [""]
    words = {path: wording.setting(path, own[path]) for path in own if path != CONTENDER}
    words[CONTENDER] = wording.of(run.contender)
    name = words[first] if first else "all"
    panel = words[facets] if facets else ""
    style = ", ".join(words[path] for path in rest)
    coloured_as = run.contender if first == CONTENDER else name
    return LineName(name, style, panel, coloured_as)


def constant(runs: Sequence[OfSeveral]) -> set[str]:
    """Returns the swept keys that have the same value in all runs."""
    return {
        path
        for path in (runs[0].settings if runs else ())
        if len({run.settings[path] for run in runs}) == 1
    }


def lines_over(
    axis: str,
    runs: Sequence[OfSeveral],
    facets: str = "",
    wording: Wording = Wording(),
) -> dict[LineName, list[Repeated]]:
    """Returns the points of each line over a swept key. Runs that differ only in the seed form one
    point, unless the axis is the seed."""
    ignored = {axis, SEED, *constant(runs)}
    lines: dict[LineName, dict[str, list[OfSeveral]]] = {}
    for run in runs:
        line = lines.setdefault(line_name(run, ignored, facets, wording), {})
        line.setdefault(run.settings[axis], []).append(run)
    return {
        name: [Repeated(setting, tuple(same)) for setting, same in line.items()]
        for name, line in lines.items()
    }


def band_of(lines: Mapping[LineName, Sequence[Repeated]], of: Value, path: str = "") -> str:
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

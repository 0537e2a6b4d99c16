"""The figures that a scenario's section `figure` asks for, of a sweep's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agglab.testbed.metrics import lookup
from agglab.testbed.report.chart import Mark, Piece, Track, lines
from agglab.testbed.side_by_side import OfSeveral, runs_of

Section = Mapping[str, Any]
Lines = Mapping[str, Sequence[OfSeveral]]


def figures(metrics: Mapping[str, Any], section: Section) -> dict[str, str]:
    """File name -> SVG, one for each metric of `y`. section: as in scenario.yaml."""
    runs = [run for run in runs_of(metrics) if run.settings]
    if not runs:
        return {}
    x = section.get("x") or next(iter(runs[0].settings))
    of_lines: dict[str, list[OfSeveral]] = {}
    for run in runs:
        of_lines.setdefault(_line(run, x), []).append(run)
    wanted = section.get("y", ["allreduce.time_s.median"])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    return {f"figure-{i}.svg": _drawn(of_lines, x, y, section) for i, y in enumerate(wanted)}


def _line(run: OfSeveral, x: str) -> str:
    """What the line of a run is called: what it differs in from the runs of other lines."""
    others = [f"{key} {value}" for key, value in run.settings.items() if key != x]
    return ", ".join([*([run.contender] if run.contender else []), *others]) or "all"


def _drawn(of_lines: Lines, x: str, y: str, section: Section) -> str:
    positions = _positions(of_lines, x, section)
    tracks = []
    for name, runs in of_lines.items():
        points = [(positions[run.settings[x]], lookup(run.metrics, y)) for run in runs]
        measured = [(at, float(value)) for at, value in points if _is_number(value)]
        tracks.append(Track(name, (Piece(_shown(measured, section)),)))
    unit = f"{y}, first point = 1" if section.get("relative") else y
    ticks = [(at, text) for text, at in positions.items()]
    marks = list(_marks(of_lines, x, positions, section))
    return lines(str(section.get("title", y)), x, unit, tracks, marks=marks, ticks=ticks)


def _shown(
    points: Sequence[tuple[float, float]], section: Section
) -> Sequence[tuple[float, float]]:
    if not section.get("relative") or not points or not points[0][1]:
        return points
    first = points[0][1]
    return [(x, value / first) for x, value in points]


def _positions(of_lines: Lines, x: str, section: Section) -> dict[str, float]:
    """Where each swept value, as written, is on the axis: at the number that it is, or in steps."""
    values = list(dict.fromkeys(run.settings[x] for runs in of_lines.values() for run in runs))
    numbers = [_number(value) for value in values]
    if section.get("scale") == "steps" or None in numbers:
        return {value: float(i) for i, value in enumerate(values)}
    return {
        value: number for value, number in zip(values, numbers, strict=True) if number is not None
    }


def _number(text: str) -> float | None:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return None


def _marks(
    of_lines: Lines, x: str, positions: Mapping[str, float], section: Section
) -> Iterator[Mark]:
    """Where each line's metric first reaches the value that the section names."""
    mark = section.get("mark", {})
    for runs in of_lines.values() if mark else ():
        for run in runs:
            value = lookup(run.metrics, mark["metric"])
            if _is_number(value) and value >= float(mark.get("reaches", 1)):
                yield Mark(positions[run.settings[x]], str(mark.get("text", mark["metric"])))
                break


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

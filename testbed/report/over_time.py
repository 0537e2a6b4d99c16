"""Makes the charts of series.csv and latency.csv: what workers, links, switches and jobs did over
time, and how long answers took. Only metrics that the files contain are drawn. A malformed line is
ignored, because a run that was killed may have left the last line incomplete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from agglab.testbed.report.chart import LineChart, Piece, Track
from agglab.testbed.results import chunk_latencies, series_table
from agglab.testbed.results.files import read_rows
from agglab.testbed.schema.series_metrics import PROGRAM, unit_of

ORDER = ("job", "worker", "link", "switch")
LINES_MAX = 16
NS_PER_S = 1e9
Point = tuple[float, float]


def charts(folder: Path) -> list[LineChart]:
    """Returns a chart for each metric of each kind that has any value but 0, and then the chart of
    latencies."""
    found = read(folder)
    ordered = sorted(found, key=lambda key: ORDER.index(key[0]))
    drawn = [_chart(kind, metric, found[kind, metric]) for kind, metric in ordered]
    latencies = _latencies(folder)
    return [*(chart for chart in drawn if chart), *([latencies] if latencies else [])]


def read(folder: Path) -> Mapping[tuple[str, str], Mapping[str, list[Point]]]:
    """Returns by kind and metric the points (seconds, value) of each name; empty without
    series.csv."""
    found: defaultdict[tuple[str, str], defaultdict[str, list[Point]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for sample in series_table.recorded(folder):
        if unit_of(sample.kind, sample.metric):
            point = sample.time_ns / NS_PER_S, sample.value
            found[sample.kind, sample.metric][sample.name].append(point)
    return found


def _point(time_ns: str, value: str) -> Point | None:
    """Returns seconds and the value; None if one of them is no finite number."""
    try:
        point = float(time_ns) / NS_PER_S, float(value)
    except ValueError:
        return None
    return point if isfinite(point[0]) and isfinite(point[1]) else None


def _chart(kind: str, metric: str, own: Mapping[str, list[Point]]) -> LineChart | None:
    """Returns a chart; None if all values are zero. If there are too many lines to distinguish,
    those with the largest sums are shown."""
    if not any(value for points in own.values() for _, value in points):
        return None
    kept = sorted(own, key=lambda name: -sum(value for _, value in own[name]))[:LINES_MAX]
    more = f" (the {len(kept)} of {len(own)} with the most)" if len(kept) < len(own) else ""
    is_counter = metric.startswith(PROGRAM)  # a name that must stay as the program has it
    words = metric if is_counter else metric.replace("_", " ")
    return LineChart(
        f"{kind}-{metric}",
        f"{kind.capitalize()}: {words}{more}",
        "seconds",
        unit_of(kind, metric) or "",
        [Track(name, (Piece(sorted(own[name])),)) for name in own if name in kept],
        kind=kind,
    )


def _latencies(folder: Path) -> LineChart | None:
    """Returns a chart of the share of answers that took at most a given time, with a line for each
    of the first agents; None if no answers were measured."""
    counts: dict[str, list[Point]] = {}
    more = ""
    rows = read_rows(folder / chunk_latencies.NAME, chunk_latencies.COLUMNS)
    for job, agent, _, to_ns, count in rows:
        name = f"{job} {agent}"
        if name not in counts and len(counts) == LINES_MAX:
            more = f" (the first {LINES_MAX} agents)"
            break  # the rows of an agent follow one another
        point = _point(to_ns, count)
        if point and point[1] > 0:
            counts.setdefault(name, []).append(point)
    lines = []
    for name, bins in counts.items():
        total, so_far = sum(number for _, number in bins), 0.0
        points = [(0.0, 0.0)]
        for end_s, number in sorted(bins):
            so_far += number
            points.append((end_s, so_far / total))
        lines.append(Track(name, (Piece(points),)))
    if not lines:
        return None
    title = f"Latency of answers: the share that took at most this time{more}"
    return LineChart("latency", title, "seconds", "share of the answers", lines, kind="worker")

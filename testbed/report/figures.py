"""Draws the figures of a run or a sweep from its result folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agglab.testbed.report import by_axis, training, zoom
from agglab.testbed.report.chart import (
    NARROW,
    WIDE,
    Layout,
    Mark,
    Piece,
    Reference,
    Series,
    Track,
    bars,
    lines,
)
from agglab.testbed.report.over_time import Chart
from agglab.testbed.report.topology import NARROW as NARROW_WIDTH
from agglab.testbed.report.topology import WIDE as WIDTH
from agglab.testbed.report.topology import topology, tree
from agglab.testbed.report.tracks import tracks
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.side_by_side import OfSeveral, runs_of
from agglab.testbed.scenario.workloads import judged_time
from agglab.testbed.scenario.workloads.judged_time import ROUND, Headline

Metrics = Mapping[str, Any]
Events = Sequence[Mapping[str, Any]]
LABELS_MAX = 24
BARS_MAX = 24
"""If there are more rounds than this, their times are drawn as a line and not as bars."""
ROUNDS_OF_A_DISTRIBUTION = 10
TOPOLOGY = "topology.svg"
TIME = "median time"


@dataclass(frozen=True)
class Figure:
    """A figure of the report. file: the name of its SVG file in the folder. wide: the content of
    that file. narrow: the same figure for a phone. zoom: HTML of the same figure as a zoomable
    chart; empty if there is none. kind: for a figure over time, the kind of thing that its metrics
    belong to."""

    file: str
    wide: str
    narrow: str
    zoom: str = ""
    kind: str = ""


def run_figures(metrics: Metrics, events: Events) -> list[Figure]:
    """Returns the figures of one run."""
    if "totals" not in metrics:
        return []
    figures = []
    if metrics["links"]:
        root = tree(metrics)
        wide, narrow = (topology(root, width) for width in (WIDTH, NARROW_WIDTH))
        figures.append(Figure(TOPOLOGY, wide, narrow))
    if any(job["rounds"] for job in metrics["jobs"].values()):
        figures.append(_times(metrics))
        if anything_again(metrics):
            figures.append(_drawn("workers.svg", partial(_workers, metrics)))
    figures += _progress(events, metrics)
    figures += _distribution(metrics)
    if metrics["totals"]["injected_drops"] or metrics["totals"]["other_drops"]:
        figures.append(_drawn("drops.svg", partial(_drops, metrics)))
    return [*figures, *_training(metrics["jobs"])]


def figures_over_time(charts: Sequence[Chart]) -> list[Figure]:
    """Returns the figures of series.csv and latency.csv."""
    return [
        replace(_lines(c.file, c.title, c.x_label, c.y_label, c.lines), kind=c.kind) for c in charts
    ]


def figures_of_several(metrics: Metrics) -> list[Figure]:
    """Returns the figures of a sweep or comparison. There are lines over each swept key, and a
    group of bars for each point. If there is only one point, there is a bar for each contender."""
    chief = judged_time.common(run.metrics for run in runs_of(metrics))
    runs = [run for run in runs_of(metrics) if lookup(run.metrics, chief.metric)]
    if not runs:
        return []
    over = [
        _lines(each.file, each.title, each.x_label, each.y_label, each.lines)
        for each in by_axis.figures(metrics)
    ]
    time = _drawn("time.svg", partial(_bars_of_several, runs, chief))
    return [*over, time, *_training({_name(run): run.metrics for run in runs})]


def _name(run: OfSeveral) -> str:
    return " ".join([*run.settings.values(), *([run.contender] if run.contender else [])])


def _training(runs: Mapping[str, Metrics]) -> list[Figure]:
    """Returns the figures of training. runs: the metrics of jobs or contenders, by name. Returns
    none if no job has trained."""
    found = []
    for metric, file, what in (
        (training.LOSS, "loss.svg", "loss"),
        (training.ACCURACY, "accuracy.svg", "accuracy"),
    ):
        if trained := training.having(metric, runs):
            title = f"{what.capitalize()} of the model in the first run"
            curves = training.curves(metric, trained)
            found.append(_lines(file, title, "seconds", what, curves))
    if delayed := training.having(training.DELAYS, runs):
        found.append(_drawn("delays.svg", partial(training.delays, delayed)))
    return found


def _bars_of_several(runs: Sequence[OfSeveral], chief: Headline, layout: Layout) -> str:
    placed = {_group_and_bar(run): run.metrics for run in runs}
    groups, names = (list(dict.fromkeys(key[i] for key in placed)) for i in (0, 1))
    bound = "link bound" if chief == ROUND else ""
    series = []
    for name in names:
        cells = [placed.get((group, name), {}) for group in groups]
        bounds = [lookup(cell, "link_bound_s") for cell in cells] if bound else []
        series.append(Series(name, [lookup(cell, chief.metric) for cell in cells], bounds))
    title = f"Time of a {chief.of} by {', '.join(runs[0].settings) or 'contender'}"
    return bars(title, "seconds", groups, series, bound=bound, layout=layout)


def _drawn(file: str, draw: Callable[[Layout], str]) -> Figure:
    return Figure(file, draw(WIDE), draw(NARROW))


def _lines(
    file: str,
    title: str,
    x_label: str,
    y_label: str,
    tracks: Sequence[Track],
    references: Sequence[Reference] = (),
    marks: Sequence[Mark] = (),
) -> Figure:
    """Returns the figure of a zoomable line chart."""
    wide, narrow = (
        lines(title, x_label, y_label, tracks, references, marks, layout)
        for layout in (WIDE, NARROW)
    )
    html = zoom.figure(title, x_label, y_label, tracks, references, marks, instead=wide)
    return Figure(file, wide, narrow, html)


def _group_and_bar(run: OfSeveral) -> tuple[str, str]:
    values = " ".join(run.settings.values())
    return (values, run.contender or TIME) if values else (run.contender, TIME)


def _times(metrics: Metrics) -> Figure:
    """Returns the figure of the rounds' times, with a bar for each round, or with a line if there
    are many rounds."""
    rounds = max(job["rounds"] for job in metrics["jobs"].values())
    bound_s = metrics.get("link_bound_s")  # only a single job's are at the top level
    references = [] if bound_s is None else [Reference("link bound", bound_s)]
    if rounds <= BARS_MAX:
        return _drawn("time.svg", partial(_time, metrics, rounds, references))
    curves = [
        Track(name, (Piece([(float(i), time_s) for i, time_s in enumerate(times)]),))
        for name, times in _times_of_jobs(metrics).items()
        if times
    ]
    return _lines("time.svg", "Time of each round", "round", "seconds", curves, references)


def _time(metrics: Metrics, rounds: int, references: Sequence[Reference], layout: Layout) -> str:
    labels = [f"round {i}" for i in range(rounds)]
    series = [
        Series(name, _padded(times, rounds)) for name, times in _times_of_jobs(metrics).items()
    ]
    return bars("Time of each round", "seconds", labels, series, references, layout=layout)


def _times_of_jobs(metrics: Metrics) -> dict[str, Sequence[float]]:
    """Returns the times of rounds by job. If there is only one job, its key is `time`."""
    jobs = metrics["jobs"]
    return {
        name if len(jobs) > 1 else "time": job["allreduce"]["time_s"]["all"]
        for name, job in jobs.items()
    }


def _distribution(metrics: Metrics) -> list[Figure]:
    """Returns a figure with the share of rounds that took at most a given time, for each job that
    has enough rounds."""
    curves = []
    for name, times in _times_of_jobs(metrics).items():
        if len(times) < ROUNDS_OF_A_DISTRIBUTION:
            continue
        ordered = sorted(times)
        steps = [(ordered[0], 0.0)]
        for i, time_s in enumerate(ordered):
            steps += [(time_s, i / len(ordered)), (time_s, (i + 1) / len(ordered))]
        curves.append(Track(name, (Piece(steps),)))
    if not curves:
        return []
    title = "Distribution of the rounds' times: the share of rounds that took at most this time"
    return [_lines("distribution.svg", title, "seconds", "share of the rounds", curves)]


AGAIN = {"retransmitted": "sent again", "duplicates": "heard twice", "timeouts": "time-outs"}


def anything_again(metrics: Metrics) -> bool:
    """Returns whether any worker sent or received anything twice."""
    workers = (w for job in metrics["jobs"].values() for w in job["workers"].values())
    return any(worker[name] for worker in workers for name in AGAIN)


def _padded(times: Sequence[float], rounds: int) -> list[float | None]:
    """Returns the times with None for each round that a job did not reach."""
    return [*times, *[None] * (rounds - len(times))]


def _workers(metrics: Metrics, layout: Layout) -> str:
    workers = {
        f"{name} {rank}" if len(metrics["jobs"]) > 1 else f"worker {rank}": worker
        for name, job in metrics["jobs"].items()
        for rank, worker in job["workers"].items()
    }
    kept = _most(workers, {name: sum(w[k] for k in AGAIN) for name, w in workers.items()})
    series = [Series(n, [workers[name][k] for name in kept]) for k, n in AGAIN.items()]
    title = f"Frames beyond the necessary ones{_of(kept, workers, 'workers')}"
    return bars(title, "frames", kept, series, layout=layout)


def _drops(metrics: Metrics, layout: Layout) -> str:
    ways = {name: way for link in metrics["links"].values() for name, way in link.items()}
    sums = {name: way["dropped"] + way["queue_drops"] for name, way in ways.items()}
    labels = _most(ways, sums)
    series = [
        Series("on purpose", [ways[name]["dropped"] for name in labels]),
        Series("by a full queue", [ways[name]["queue_drops"] for name in labels]),
    ]
    title = f"Packets dropped, by link and direction{_of(labels, ways, 'directions')}"
    return bars(title, "packets", labels, series, layout=layout)


def _most(names: Iterable[str], sums: Mapping[str, float]) -> list[str]:
    """Returns the names with the largest sums, as many as fit into a figure, in their original
    order."""
    ordered = list(names)
    kept = set(sorted(ordered, key=lambda name: -sums[name])[:LABELS_MAX])
    return [name for name in ordered if name in kept]


def _of(kept: Sequence[str], names: Collection[str], what: str) -> str:
    """Returns the words for a title that say how many names are shown; empty if all are."""
    return (
        f" (the {len(kept)} of {len(names)} {what} with the most)" if len(kept) < len(names) else ""
    )


def _progress(events: Events, metrics: Metrics) -> list[Figure]:
    """Returns the figure of the chunks done over time, for all rounds together. Faults and restarts
    are marks."""
    several = len(metrics["jobs"]) > 1
    names = dict(enumerate(metrics["jobs"], start=1))
    drawn = [
        Track(f"{names[job]} {rank}" if several else f"worker {rank}", pieces)
        for (job, rank), pieces in sorted(tracks(events, _begin_ns(events)).items())
    ]
    if not drawn:
        return []
    title = "Chunks done"
    if any(piece.dashed for track in drawn for piece in track.pieces):
        title += " (dashed: rounds that were aborted)"
    return [_lines("progress.svg", title, "seconds", "chunks", drawn, marks=_marks(events))]


def _begin_ns(events: Events) -> int:
    started = next((e["at_ns"] for e in events if e["event"] == "started"), None)
    return int(started if started is not None else events[0]["t_ns"]) if events else 0


def _marks(events: Events) -> list[Mark]:
    """Returns marks for the beginnings and ends of faults, and for rounds that were aborted."""
    begin_ns, marks = _begin_ns(events), []
    for event in events:
        at_s = (event["t_ns"] - begin_ns) / 1e9
        if event["event"] == "fault":
            marks.append(Mark(at_s, f"{event['fault']} {event['target']}"))
        elif event["event"] == "fault_end":
            marks.append(Mark(at_s, f"{event['target']} again"))
        elif event["event"] == "round_broken_off":
            marks.append(Mark(at_s, f"{event['of']} aborted"))
    return marks

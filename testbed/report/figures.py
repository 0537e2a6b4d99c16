"""Makes the charts of a run or a sweep from its result folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agglab.testbed.report import by_axis, headline_times, training
from agglab.testbed.report.chart import (
    BarChart,
    Chart,
    LineChart,
    Mark,
    Piece,
    Reference,
    Series,
    Track,
)
from agglab.testbed.report.tracks import tracks
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.side_by_side import OfSeveral, runs_of
from agglab.testbed.scenario.workloads.judged_time import ROUND, Headline

Metrics = Mapping[str, Any]
Events = Sequence[Mapping[str, Any]]
LABELS_MAX = 24
BARS_MAX = 24
"""If there are more rounds than this, their times are drawn as a line and not as bars."""
WORKERS_MAX = 16
"""Of the chunks done over time, at most this many workers are drawn."""
ROUNDS_OF_A_DISTRIBUTION = 10
TIME = "median time"


def run_charts(metrics: Metrics, events: Events) -> list[Chart]:
    """Returns the charts of one run, but those over time."""
    if "totals" not in metrics:
        return []
    charts: list[Chart] = []
    if any(job["rounds"] for job in metrics["jobs"].values()):
        charts.append(_times(metrics))
        if anything_again(metrics):
            charts.append(_workers(metrics))
    charts += _progress(events, metrics)
    charts += _distribution(metrics)
    if metrics["totals"]["injected_drops"] or metrics["totals"]["other_drops"]:
        charts.append(_drops(metrics))
    return [*charts, *_training(metrics["jobs"])]


def charts_of_several(metrics: Metrics) -> list[Chart]:
    """Returns the charts of a sweep or comparison. There are lines over each swept key, and a group
    of bars for each point. If there is only one point, there is a bar for each contender."""
    chief = headline_times.common(run.metrics for run in runs_of(metrics))
    timed = [
        run for run in runs_of(metrics) if headline_times.time_s(run.metrics, chief) is not None
    ]
    if not timed:
        return []
    trained = _training({_name(run): run.metrics for run in timed})
    return [*by_axis.charts(metrics), _bars_of_several(timed, chief), *trained]


def _name(run: OfSeveral) -> str:
    return " ".join([*run.settings.values(), *([run.contender] if run.contender else [])])


def _training(runs: Mapping[str, Metrics]) -> list[Chart]:
    """Returns the charts of training. runs: the metrics of jobs or contenders, by name. Returns
    none if no job has trained."""
    charts: list[Chart] = []
    for metric, name in ((training.LOSS, "loss"), (training.ACCURACY, "accuracy")):
        if trained := training.having(metric, runs):
            title = f"{name.capitalize()} of the model in the first run"
            curves = training.curves(metric, trained)
            charts.append(LineChart(name, title, "seconds", name, curves, from_zero=False))
    if delayed := training.having(training.DELAYS, runs):
        charts.append(training.delays(delayed))
    return charts


def _bars_of_several(runs: Sequence[OfSeveral], chief: Headline) -> BarChart:
    placed = {_group_and_bar(run): run.metrics for run in runs}
    groups, names = (list(dict.fromkeys(key[i] for key in placed)) for i in (0, 1))
    bound = "link bound" if chief == ROUND else ""
    series = []
    for name in names:
        cells = [placed.get((group, name), {}) for group in groups]
        bounds = [lookup(cell, "link_bound_s") for cell in cells] if bound else []
        times = [headline_times.time_s(cell, chief) for cell in cells]
        series.append(Series(name, times, bounds if any(bounds) else ()))
    keys = ", ".join(runs[0].settings)
    of_whom = headline_times.of_whom(run.metrics for run in runs)
    title = f"Time of a {chief.of}{of_whom} by {keys or 'contender'}"
    has_bounds = any(each.bounds for each in series)
    bound = bound if has_bounds else ""
    return BarChart("time", title, keys, "seconds", groups, series, (), bound, not keys)


def _group_and_bar(run: OfSeveral) -> tuple[str, str]:
    values = " ".join(run.settings.values())
    return (values, run.contender or TIME) if values else (run.contender, TIME)


def _times(metrics: Metrics) -> Chart:
    """Returns the chart of the rounds' times, with a bar for each round, or with a line if there
    are many rounds."""
    rounds = max(job["rounds"] for job in metrics["jobs"].values())
    bounds = {} if len(metrics["jobs"]) > 1 else {"link bound": metrics["link_bound_s"]}
    references = [Reference(name, value) for name, value in bounds.items() if value]
    title, times = "Time of each round", _times_of_jobs(metrics)
    if rounds <= BARS_MAX:
        series = [Series(name, _padded(own, rounds)) for name, own in times.items()]
        numbers = [str(i) for i in range(rounds)]
        return BarChart("time", title, "round", "seconds", numbers, series, references)
    curves = [
        Track(name, (Piece([(float(i), time_s) for i, time_s in enumerate(own)]),))
        for name, own in times.items()
        if own
    ]
    return LineChart("time", title, "round", "seconds", curves, references)


def _times_of_jobs(metrics: Metrics) -> dict[str, Sequence[float]]:
    """Returns the times of rounds by job. If there is only one job, its key is `time`."""
    jobs = metrics["jobs"]
    return {
        name if len(jobs) > 1 else "time": job["allreduce"]["time_s"]["all"]
        for name, job in jobs.items()
    }


def _distribution(metrics: Metrics) -> list[Chart]:
    """Returns a chart with the share of rounds that took at most a given time, for each job that
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
    return [LineChart("distribution", title, "seconds", "share of the rounds", curves)]


AGAIN = {"retransmitted": "sent again", "duplicates": "heard twice", "timeouts": "time-outs"}


def anything_again(metrics: Metrics) -> bool:
    """Returns whether any worker sent or received anything twice."""
    workers = (w for job in metrics["jobs"].values() for w in job["workers"].values())
    return any(worker[name] for worker in workers for name in AGAIN)


def _padded(times: Sequence[float], rounds: int) -> list[float | None]:
    """Returns the times with None for each round that a job did not reach."""
    return [*times, *[None] * (rounds - len(times))]


def _workers(metrics: Metrics) -> BarChart:
    workers = {
        f"{name} {rank}" if len(metrics["jobs"]) > 1 else f"worker {rank}": worker
        for name, job in metrics["jobs"].items()
        for rank, worker in job["workers"].items()
    }
    kept = _most(workers, {name: sum(w[k] for k in AGAIN) for name, w in workers.items()})
    series = [Series(n, [workers[name][k] for name in kept]) for k, n in AGAIN.items()]
    title = f"Frames beyond the necessary ones{_of(kept, workers, 'workers')}"
    return BarChart("workers", title, "", "frames", kept, series)


def _drops(metrics: Metrics) -> BarChart:
    ways = {name: way for link in metrics["links"].values() for name, way in link.items()}
    sums = {name: way["dropped"] + way["queue_drops"] for name, way in ways.items()}
    labels = _most(ways, sums)
    series = [
        Series("on purpose", [ways[name]["dropped"] for name in labels]),
        Series("by a full queue", [ways[name]["queue_drops"] for name in labels]),
    ]
    title = f"Packets dropped, by link and direction{_of(labels, ways, 'directions')}"
    return BarChart("drops", title, "", "packets", labels, series)


def _most(names: Iterable[str], sums: Mapping[str, float]) -> list[str]:
    """Returns the names with the largest sums, as many as fit into a chart, in their original
    order."""
    ordered = list(names)
    kept = set(sorted(ordered, key=lambda name: -sums[name])[:LABELS_MAX])
    return [name for name in ordered if name in kept]


def _of(kept: Sequence[str], names: Collection[str], kind: str) -> str:
    """Returns the words for a title that say how many names are shown; empty if all are."""
    return (
        f" (the {len(kept)} of {len(names)} {kind} with the most)" if len(kept) < len(names) else ""
    )


def _progress(events: Events, metrics: Metrics) -> list[Chart]:
    """Returns the chart of the chunks done over time, for all rounds together. Faults and restarts
    are marks. Of many workers, those that were last are shown."""
    several = len(metrics["jobs"]) > 1
    names = dict(enumerate(metrics["jobs"], start=1))
    lines = [
        Track(f"{names[job]} {rank}" if several else f"worker {rank}", pieces)
        for (job, rank), pieces in sorted(tracks(events, _begin_ns(events)).items())
    ]
    if not lines:
        return []
    last = sorted(lines, key=_end_s, reverse=True)[:WORKERS_MAX]
    title = "Chunks done"
    if len(lines) > len(last):
        title += f" (the {len(last)} of {len(lines)} workers that were last)"
    if any(piece.dashed for track in lines for piece in track.pieces):
        title += " (dashed: rounds that were aborted)"
    shown = [line for line in lines if line in last]
    return [LineChart("progress", title, "seconds", "chunks", shown, marks=_marks(events))]


def _end_s(track: Track) -> float:
    return track.pieces[-1].points[-1][0]


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

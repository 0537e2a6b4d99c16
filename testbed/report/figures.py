"""The figures of a run or a sweep, from what its folder holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agglab.testbed.metrics import lookup
from agglab.testbed.report.chart import Mark, Reference, Series, Track, bars, lines
from agglab.testbed.report.tracks import tracks
from agglab.testbed.report.training import training_figures
from agglab.testbed.side_by_side import OfSeveral, runs_of

Metrics = Mapping[str, Any]
Events = Sequence[Mapping[str, Any]]
LABELS_MAX = 24
MEDIAN, TIME = "allreduce.time_s.median", "median time"


def run_figures(metrics: Metrics, events: Events) -> dict[str, str]:
    """File name -> SVG."""
    if "totals" not in metrics:
        return {}
    figures = {}
    if any(job["rounds"] for job in metrics["jobs"].values()):
        figures = {"time.svg": _time(metrics)}
        if anything_again(metrics):
            figures["workers.svg"] = _workers(metrics)
    if progress := _progress(events, metrics):
        figures["progress.svg"] = progress
    if metrics["totals"]["injected_drops"] or metrics["totals"]["other_drops"]:
        figures["drops.svg"] = _drops(metrics)
    return {**figures, **training_figures(metrics["jobs"])}


def figures_of_several(metrics: Metrics) -> dict[str, str]:
    """File name -> SVG, of a sweep or a comparison: a group of bars a point, or a bar a contender
    where there is one point alone."""
    runs = [run for run in runs_of(metrics) if lookup(run.metrics, MEDIAN)]
    if not runs:
        return {}
    placed = {_group_and_bar(run): run.metrics for run in runs}
    groups, names = (list(dict.fromkeys(key[i] for key in placed)) for i in (0, 1))
    series = [
        Series(
            name,
            [lookup(placed.get((group, name), {}), MEDIAN) for group in groups],
            [lookup(placed.get((group, name), {}), "link_bound_s") for group in groups],
        )
        for name in names
    ]
    title = f"Time of a round by {', '.join(runs[0].settings) or 'contender'}"
    time = bars(title, "seconds", groups, series, bound="link bound")
    trained = {" ".join(_group_and_bar(run)): run.metrics for run in runs}
    if len(groups) == len(runs):  # contenders of one point, or a sweep of one system
        trained = {_group_and_bar(run)[0]: run.metrics for run in runs}
    return {"time.svg": time, **training_figures(trained)}


def _group_and_bar(run: OfSeveral) -> tuple[str, str]:
    values = " ".join(run.settings.values())
    return (values, run.contender or TIME) if values else (run.contender, TIME)


def _time(metrics: Metrics) -> str:
    jobs = metrics["jobs"]
    rounds = max(job["rounds"] for job in jobs.values())
    labels = [f"round {i}" for i in range(rounds)]
    series = [
        Series(
            name if len(jobs) > 1 else "time", _padded(job["allreduce"]["time_s"]["all"], rounds)
        )
        for name, job in jobs.items()
    ]
    bounds = {} if len(jobs) > 1 else {"link bound": metrics["link_bound_s"]}
    references = [Reference(name, value) for name, value in bounds.items()]
    return bars("Time of each round", "seconds", labels, series, references)


AGAIN = {"retransmitted": "sent again", "duplicates": "heard twice", "timeouts": "time-outs"}


def anything_again(metrics: Metrics) -> bool:
    """Whether any worker sent or heard anything twice."""
    workers = (w for job in metrics["jobs"].values() for w in job["workers"].values())
    return any(worker[name] for worker in workers for name in AGAIN)


def _padded(times: Sequence[float], rounds: int) -> list[float | None]:
    """None for the rounds a job did not come to."""
    return [*times, *[None] * (rounds - len(times))]


def _workers(metrics: Metrics) -> str:
    workers = {
        f"{name} {rank}" if len(metrics["jobs"]) > 1 else f"worker {rank}": worker
        for name, job in metrics["jobs"].items()
        for rank, worker in job["workers"].items()
    }
    kept = _most(workers, {name: sum(w[k] for k in AGAIN) for name, w in workers.items()})
    series = [Series(n, [workers[name][k] for name in kept]) for k, n in AGAIN.items()]
    title = f"Frames beyond the necessary{_of(kept, workers, 'workers')}"
    return bars(title, "frames", kept, series)


def _drops(metrics: Metrics) -> str:
    ways = {name: way for link in metrics["links"].values() for name, way in link.items()}
    sums = {name: way["dropped"] + way["queue_drops"] for name, way in ways.items()}
    labels = _most(ways, sums)
    series = [
        Series("on purpose", [ways[name]["dropped"] for name in labels]),
        Series("by a full queue", [ways[name]["queue_drops"] for name in labels]),
    ]
    title = f"Packets dropped, by link and direction{_of(labels, ways, 'directions')}"
    return bars(title, "packets", labels, series)


def _most(names: Iterable[str], sums: Mapping[str, float]) -> list[str]:
    """Those that fit a figure, in their own order: the largest."""
    ordered = list(names)
    kept = set(sorted(ordered, key=lambda name: -sums[name])[:LABELS_MAX])
    return [name for name in ordered if name in kept]


def _of(kept: Sequence[str], names: Collection[str], what: str) -> str:
    """What a title adds where not all are shown."""
    return f" (the {len(kept)} of {len(names)} {what} with most)" if len(kept) < len(names) else ""


def _progress(events: Events, metrics: Metrics) -> str:
    """Chunks done over time, all rounds together; faults and restarts as marks."""
    several = len(metrics["jobs"]) > 1
    names = dict(enumerate(metrics["jobs"], start=1))
    drawn = [
        Track(f"{names[job]} {rank}" if several else f"worker {rank}", pieces)
        for (job, rank), pieces in sorted(tracks(events, _begin_ns(events)).items())
    ]
    if not drawn:
        return ""
    title = "Chunks done"
    if any(piece.dashed for track in drawn for piece in track.pieces):
        title += " (dashed: in rounds that were broken off)"
    return lines(title, "seconds", "chunks", drawn, marks=_marks(events))


def _begin_ns(events: Events) -> int:
    started = next((e["at_ns"] for e in events if e["event"] == "started"), None)
    return int(started if started is not None else events[0]["t_ns"]) if events else 0


def _marks(events: Events) -> list[Mark]:
    """Faults as they begin and end, and rounds that were broken off."""
    begin_ns, marks = _begin_ns(events), []
    for event in events:
        at_s = (event["t_ns"] - begin_ns) / 1e9
        if event["event"] == "fault":
            marks.append(Mark(at_s, f"{event['fault']} {event['target']}"))
        elif event["event"] == "fault_end":
            marks.append(Mark(at_s, f"{event['target']} again"))
        elif event["event"] == "round_broken_off":
            marks.append(Mark(at_s, f"{event['of']} broken off"))
    return marks

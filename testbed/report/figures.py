"""The figures of a run or a sweep, from what its folder holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.report.chart import Reference, Series, bars, lines

Metrics = Mapping[str, Any]
Events = Sequence[Mapping[str, Any]]
LABELS_MAX = 24


def run_figures(metrics: Metrics, events: Events) -> dict[str, str]:
    """File name -> SVG."""
    if "allreduce" not in metrics:
        return {}
    figures = {"time.svg": _time(metrics), "workers.svg": _workers(metrics)}
    if progress := _progress(events):
        figures["progress.svg"] = progress
    if metrics["totals"]["injected_drops"] or metrics["totals"]["other_drops"]:
        figures["drops.svg"] = _drops(metrics)
    return figures


def sweep_figures(metrics: Metrics) -> dict[str, str]:
    """File name -> SVG."""
    points = [point for point in metrics["points"] if "allreduce" in point["metrics"]]
    if not points:
        return {}
    labels = [" ".join(point["settings"].values()) for point in points]
    path = ", ".join(points[0]["settings"])
    median = [point["metrics"]["allreduce"]["time_s"]["median"] for point in points]
    bound = [point["metrics"]["link_bound_s"] for point in points]
    series = [Series("median time", median), Series("link bound", bound)]
    return {"time.svg": bars(f"Time of a round by {path}", "seconds", labels, series)}


def _time(metrics: Metrics) -> str:
    times = metrics["allreduce"]["time_s"]["all"]
    labels = [f"round {i + 1}" for i in range(len(times))]
    bound = [Reference("link bound", metrics["link_bound_s"])]
    return bars("Time of each round", "seconds", labels, [Series("time", times)], bound)


def _workers(metrics: Metrics) -> str:
    workers = metrics["workers"]
    labels = [f"worker {rank}" for rank in workers]
    names = {"retransmitted": "sent again", "duplicates": "heard twice", "timeouts": "time-outs"}
    series = [Series(n, [w[k] for w in workers.values()]) for k, n in names.items()]
    return bars("Frames beyond the necessary", "frames", labels, series)


def _drops(metrics: Metrics) -> str:
    ways = {name: way for link in metrics["links"].values() for name, way in link.items()}
    kept = sorted(ways, key=lambda name: -ways[name]["dropped"] - ways[name]["queue_drops"])
    labels = sorted(kept[:LABELS_MAX])
    series = [
        Series("on purpose", [ways[name]["dropped"] for name in labels]),
        Series("by a full queue", [ways[name]["queue_drops"] for name in labels]),
    ]
    return bars("Packets dropped, by link and direction", "packets", labels, series)


def _progress(events: Events) -> str:
    """Chunks done over time; every round begins at 0."""
    tracks: dict[int, list[tuple[float, float]]] = {}
    begin = next((e["t_ns"] for e in events if e["event"] == "progress"), None)
    for event in events:
        if event["event"] == "round" and begin is not None:
            begin = min(begin, event["start_ns"])
    for event in events:
        if event["event"] == "progress":
            at = (event.get("agent_ns", event["t_ns"]) - begin) / 1e9
            tracks.setdefault(event["rank"], []).append((max(0.0, at), event["chunks"]))
    series = [
        Series(f"worker {rank}", [y for _, y in track], [x for x, _ in track])
        for rank, track in sorted(tracks.items())
        if len(track) > 1
    ]
    return lines("Chunks done", "seconds", "chunks", series) if series else ""

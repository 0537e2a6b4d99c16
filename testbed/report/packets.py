"""Draws the packets that a sweep's runs sent in each 10 ms, from their series.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agglab.testbed.report import over_time
from agglab.testbed.report.asked import Asked
from agglab.testbed.report.chart import Piece, Track
from agglab.testbed.report.figures import Figure, zoomable
from agglab.testbed.side_by_side import OfSeveral, runs_of

FILE = "figure-packets.svg"
SPAN_S = 0.01
BITS = 8


def wanted(section: Mapping[str, Any]) -> bool:
    """Returns whether a scenario's section `figure` asks for this figure."""
    return section.get("packets_over_time") == "true"


def figures(folder: Path, metrics: Mapping[str, Any], asked: Asked) -> list[Figure]:
    """Returns the figure if the scenario asks for it and its runs recorded anything."""
    section = asked.tree.get("figure")
    if not isinstance(section, dict) or not wanted(section) or "points" not in metrics:
        return []
    tracks = [track for run in runs_of(metrics) for track in _tracks(folder, run)]
    if not tracks:
        return []
    title = str(section.get("title", "Packets sent in 10 ms"))
    return [zoomable(FILE, title, "seconds", "packets in 10 ms", tracks)]


def _tracks(folder: Path, run: OfSeveral) -> Iterator[Track]:
    """Yields a line for each job of a run."""
    label = ", ".join(text for text in (run.point, run.contender) if text)
    jobs = run.metrics["jobs"]
    rates = over_time.recorded(folder / run.folder).get(("job", "sent_rate"), {})
    for name, points in rates.items():
        size = _frame_bytes(jobs.get(name, {}))
        if size:
            line = [(at, rate / BITS / size * SPAN_S) for at, rate in points]
            yield Track(f"{label}, {name}" if len(jobs) > 1 else label, (Piece(line),))


def _frame_bytes(job: Mapping[str, Any]) -> float:
    """Returns the mean size of the frames that a job's agents sent; 0 if they sent none."""
    groups = (job.get(role, {}) for role in ("workers", "servers"))
    agents = [agent for group in groups for agent in group.values()]
    sent = sum(agent["sent"] for agent in agents)
    return sum(agent["bytes_sent"] for agent in agents) / sent if sent else 0.0

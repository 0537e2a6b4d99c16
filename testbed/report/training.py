"""What the figures of asynchronous training show: the model's loss over time, and how old updates
are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agglab.testbed.metrics import lookup
from agglab.testbed.report.chart import Layout, Piece, Series, Track, bars

Metrics = Mapping[str, Any]


def trained(runs: Mapping[str, Metrics]) -> dict[str, Metrics]:
    """Of jobs or contenders by name, those that have trained a model."""
    return {name: run for name, run in runs.items() if lookup(run, "training.curve")}


def curves(runs: Mapping[str, Metrics]) -> list[Track]:
    """A step at each model that was judged: its loss counts until the next."""
    tracks = []
    for name, run in runs.items():
        (at_s, loss), *later = lookup(run, "training.curve")
        points = [(at_s, loss)]
        for at_s, loss in later:
            points += [(at_s, points[-1][1]), (at_s, loss)]
        tracks.append(Track(name, [Piece(points)]))
    return tracks


def delays(runs: Mapping[str, Metrics], layout: Layout) -> str:
    """SVG of the shares of updates that were 0, 1, 2, ... versions old: shares, as contenders do
    not commit equally many."""
    counts = {name: lookup(run, "training.delay.counts") for name, run in runs.items()}
    largest = max(map(len, counts.values()))
    series = []
    for name, found in counts.items():
        shares: list[float | None] = [count / sum(found) for count in found]
        series.append(Series(name, shares + [None] * (largest - len(found))))
    ages = [str(age) for age in range(largest)]
    title = "Updates by how many versions old they were"
    return bars(title, "share of updates", ages, series, layout=layout)

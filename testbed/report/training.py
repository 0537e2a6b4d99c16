"""Makes the charts of training: a model's loss and accuracy over time, and the ages of updates in
asynchronous training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agglab.testbed.report.chart import BarChart, Piece, Series, Track
from agglab.testbed.results.metric_values import lookup

Metrics = Mapping[str, Any]


LOSS, ACCURACY = "training.curve", "training.accuracy_curve"
DELAYS = "training.delay.counts"


def having(metric: str, runs: Mapping[str, Metrics]) -> dict[str, Metrics]:
    """Returns the jobs or contenders whose list of this metric is not empty, by name."""
    return {name: run for name, run in runs.items() if lookup(run, metric)}


def curves(metric: str, runs: Mapping[str, Metrics]) -> list[Track]:
    """Returns step curves, in which the value of each evaluated model holds until the next
    evaluation."""
    tracks = []
    for name, run in runs.items():
        (at_s, value), *later = lookup(run, metric)
        points = [(at_s, value)]
        for at_s, value in later:
            points += [(at_s, points[-1][1]), (at_s, value)]
        tracks.append(Track(name, [Piece(points)]))
    return tracks


def delays(runs: Mapping[str, Metrics]) -> BarChart:
    """Returns the shares of updates that were 0, 1, 2, ... versions old. They are shares because
    contenders do not commit equally many updates."""
    counts = {name: lookup(run, DELAYS) for name, run in runs.items()}
    largest = max(map(len, counts.values()))
    series = []
    for name, found in counts.items():
        shares: list[float | None] = [count / sum(found) for count in found]
        series.append(Series(name, shares + [None] * (largest - len(found))))
    ages = [str(age) for age in range(largest)]
    title = "Updates by their age in versions"
    return BarChart("delays", title, "age in versions", "share of updates", ages, series)

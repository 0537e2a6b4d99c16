"""The figures of asynchronous training: the model's loss over time, and how old updates are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agglab.testbed.metrics import lookup
from agglab.testbed.report.chart import Piece, Series, Track, bars, lines

Metrics = Mapping[str, Any]


def training_figures(runs: Mapping[str, Metrics]) -> dict[str, str]:
    """File name -> SVG. runs: metrics of jobs or of contenders by name, one colour each; nothing is
    drawn if none has trained."""
    curves = {name: lookup(run, "training.curve") for name, run in runs.items()}
    trained = {name: curve for name, curve in curves.items() if curve}
    if not trained:
        return {}
    counts = {name: lookup(runs[name], "training.delay.counts") for name in trained}
    return {"loss.svg": _loss(trained), "delays.svg": _delays(counts)}


def _loss(curves: Mapping[str, list[list[float]]]) -> str:
    """A step at each model that was judged: a model is what it is until the next."""
    tracks = []
    for name, curve in curves.items():
        points = [(curve[0][0], curve[0][1])]
        for at_s, loss in curve[1:]:
            points += [(at_s, points[-1][1]), (at_s, loss)]
        tracks.append(Track(name, [Piece(points)]))
    return lines("Loss of the model, first run", "seconds", "hinge loss", tracks)


def _delays(counts: Mapping[str, list[int]]) -> str:
    """Shares of a run's updates, as contenders do not commit equally many."""
    largest = max(map(len, counts.values()))
    series = []
    for name, found in counts.items():
        shares: list[float | None] = [count / sum(found) for count in found]
        series.append(Series(name, shares + [None] * (largest - len(found))))
    ages = [str(age) for age in range(largest)]
    return bars("Updates by how many versions old they were", "share of updates", ages, series)

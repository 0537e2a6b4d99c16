"""Zoomable charts: their data in an HTML page, and the scripts that draw them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from agglab.testbed.report.chart import Mark, Piece, Reference, Track
from agglab.testbed.report.dygraphs import Library

POINTS_MAX = 2000
"""A line with more points than this is thinned out, because no screen has more columns."""
OURS = Path(__file__).with_name("zoom.js")
HINT = "Drag to zoom, double-click to see all."
STYLE = """
figure.zoom .plot { width: 100%; height: 300px; }
figure.zoom figcaption { font-weight: bold; } figure.zoom .hint { opacity: 0.75; font-size: 13px; }
figure.chosen label { display: inline-block; margin-right: 1em; }
figure.chosen select { font: inherit; max-width: 90vw; }
figure.zoom .legend { min-height: 1.5em; font-size: 13px; }
.dygraph-axis-label, .dygraph-xlabel, .dygraph-ylabel { color: inherit; font-size: 12px; }
"""


def figure(
    title: str,
    x_label: str,
    y_label: str,
    tracks: Sequence[Track],
    references: Sequence[Reference] = (),
    marks: Sequence[Mark] = (),
    instead: str = "",
) -> str:
    """Returns HTML of one chart. instead: the SVG for browsers that run no scripts."""
    chart = data(x_label, y_label, tracks, references, marks)
    text = json.dumps(chart, allow_nan=False).replace("<", "\\u003c")
    without = f"<noscript>{instead}</noscript>" if instead else ""
    return (
        f"<figure class='zoom'><figcaption>{escape(title)}</figcaption>"
        f"<div class='legend'></div><div class='plot'></div>"
        f"<div class='hint'>{HINT}</div>"
        f"<script type='application/json'>{text}</script>{without}</figure>"
    )


def data(
    x_label: str,
    y_label: str,
    tracks: Sequence[Track],
    references: Sequence[Reference] = (),
    marks: Sequence[Mark] = (),
) -> dict[str, Any]:
    """Returns the data of a chart in the form that zoom.js reads."""
    return {
        "x": x_label,
        "y": y_label,
        "bands": any(track.band for track in tracks),
        "series": series(tracks),
        "marks": [{"x": mark.x, "text": mark.text} for mark in marks],
        "references": [{"name": each.name, "value": each.value} for each in references],
    }


def scripts(library: Library) -> str:
    """Returns the HTML that a page with such charts needs once, at its end."""
    ours = OURS.read_text(encoding="utf-8")
    return (
        f"<style>{library.style}{STYLE}</style>\n"
        f"<script>{library.script}</script>\n<script>{ours}</script>"
    )


def series(tracks: Sequence[Track]) -> list[dict[str, Any]]:
    """Returns a line for each track, and another for its aborted pieces."""
    found = []
    for i, track in enumerate(tracks):
        for dashed in (False, True):
            pieces = [piece for piece in track.pieces if piece.dashed == dashed]
            if not pieces:
                continue
            name = f"{track.name}, aborted" if dashed else track.name
            line = {"name": name, "colour": i, "dashed": dashed, "points": _points(track, pieces)}
            found.append(line)
    return found


def _points(track: Track, pieces: Sequence[Piece]) -> list[list[float | None]]:
    """Returns [x, y] of all points, with a gap between two pieces. If the track has a band, returns
    [x, y, low, high]."""
    if track.band:
        limits = {x: (low, high) for x, low, high in track.band}
        joined = (point for piece in pieces for point in piece.points)
        return [[x, y, *limits.get(x, (y, y))] for x, y in joined]
    found: list[list[float | None]] = []
    end = None
    for piece in pieces:
        line = thinned(piece.points, max(4, POINTS_MAX // len(pieces)))
        if end is not None and line[0][0] > end:
            found.append([(end + line[0][0]) / 2, None])
        found += [[x, y] for x, y in line]
        end = line[-1][0]
    return found


def thinned(line: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """Returns at most about `most` points: the first, last, lowest and highest of each section, so
    that no peak is lost."""
    if len(line) <= most:
        return list(line)
    size = -(-4 * len(line) // most)
    kept: list[tuple[float, float]] = []
    for start in range(0, len(line), size):
        stretch = range(start, min(start + size, len(line)))
        extremes = {
            stretch[0],
            stretch[-1],
            min(stretch, key=lambda i: line[i][1]),
            max(stretch, key=lambda i: line[i][1]),
        }
        kept += [line[i] for i in sorted(extremes)]
    return kept

"""Writes charts as Vega-Lite specifications. They are plain data: a page draws them, and so do
other programs that know Vega-Lite. Words from outside are only data and titles in them, never parts
of an expression."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from agglab.testbed.report.chart import BarChart, Chart, LineChart, Track
from agglab.testbed.report.colours import BOUND, DASHES, REFERENCE, Palette
from p4native.common.printable import printable

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT = 560, 260
"""The size in pixels, unless a page or a figure has another one."""
LETTERS = 11
"""The height of letters, in pixels."""
LETTER = 0.57
"""About the width of a letter, as a share of its height."""
POINTS_MAX = 1000
"""A line with more points than this is thinned out, because no screen has more columns."""
FEW_POINTS = 30
"""If no line has more points than this, they are drawn."""
HOVER_MAX = 1200
"""If a chart has more points than this, its lines are named but their points are not."""
MARKS_MAX = 24
LONG_LABELS = 40
"""If the names of categories have more letters than this together, bars are horizontal."""
NUMBER = (
    "datum.value != 0 && abs(datum.value) < 1e-3 ? format(datum.value, '.4~g') : "
    "abs(datum.value) >= 1e4 ? format(datum.value, '~s') : datum.label"
)
"""How axes write numbers: 12000 is 12k, and 0.0000002 is 2e-7."""
HINT_FORMAT = ",.6~r"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
ZOOM = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
NEAREST = {
    "name": "hover",
    "select": {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"},
}
AT_HOVER = {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0}
CONFIG: Spec = {
    "background": "white",
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {"titleFontWeight": "normal"},
    "header": {"labelLimit": 0},
    "legend": {
        "orient": "bottom",
        "labelLimit": 0,
        "symbolLimit": 0,
        "symbolOpacity": 1,
        "layout": {"bottom": {"anchor": "start", "direction": "vertical", "margin": 6}},
    },
    "title": {"anchor": "start", "limit": 0},
    "style": {"halo": {"stroke": "white", "strokeWidth": 4}},
}


def specification(chart: Chart, palette: Palette) -> Spec:
    """Returns the specification of a chart."""
    return _lines(chart, palette) if isinstance(chart, LineChart) else _bars(chart, palette)


def text_of(spec: Spec) -> str:
    """Returns a specification as JSON."""
    return json.dumps(spec, allow_nan=False, separators=(",", ":"))


def _lines(chart: LineChart, palette: Palette) -> Spec:
    names = list(dict.fromkeys(track.name for track in chart.tracks))
    keys = {track.name: track.coloured_as or track.name for track in chart.tracks}
    of_keys = palette.of(list(keys.values()))
    colours = {name: of_keys[keys[name]] for name in names}
    rows = [row for track in chart.tracks for row in _rows(track, chart)]
    styles = list(dict.fromkeys(row["style"] for row in rows if "style" in row))
    of_data = [
        _line(chart, styles),
        *([_band(chart)] if any("low" in row for row in rows) else []),
        *_points(chart, rows, names),
    ]
    x = _x_of_lines(chart)
    for number, layer in enumerate(of_data):  # with marks, each layer has an x axis of its own
        layer["encoding"]["x"] = {**x, "axis": None} if number and chart.marks else x
    layers = [*of_data, *_references(chart, "y"), *_marks(chart)]
    spec: Spec = {"layer": layers, "encoding": {"color": _colour(chart, colours)}}
    if chart.marks:
        spec["resolve"] = {"axis": {"x": "independent"}}
    return _whole(chart, spec, rows, [*names, *styles], _notes(chart))


def _rows(track: Track, chart: LineChart) -> Iterator[dict[str, Any]]:
    """Yields a row for each point of a line. Rows of one piece have the same value of `piece`."""
    limits = {x: (low, high) for x, low, high in track.band}
    words = dict(chart.ticks) if chart.even else {}
    style = {"style": track.style} if track.style else {}
    panel = {"panel": track.panel} if track.panel else {}
    most = max(4, POINTS_MAX // max(1, len(track.pieces)))
    for number, piece in enumerate(track.pieces):
        of_piece = {"piece": number} if len(track.pieces) > 1 else {}
        dashed = {"style": "aborted"} if piece.dashed else style
        for x, y in thinned(piece.points, most):
            low_high = (
                dict(zip(("low", "high"), map(_short, limits[x]), strict=True))
                if x in limits
                else {}
            )
            at = {"x": words.get(x, _short(x)), "y": _short(y)}
            yield {**at, "line": track.name, **low_high, **dashed, **of_piece, **panel}


def _short(value: float) -> float:
    """Returns a number with nine digits, which are more than a chart can show."""
    return float(f"{value:.9g}")


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


def _x_of_lines(chart: LineChart) -> Spec:
    axis: Spec = {"labelOverlap": "greedy", "labelSeparation": 6, "labelAngle": 0, "labelBound": 8}
    encoding = {"field": "x", "title": chart.x_label}
    if chart.even:
        words = [text for _, text in chart.ticks]
        return {**encoding, "type": "ordinal", "axis": axis, "scale": {"domain": words}}
    axis |= {"labelExpr": NUMBER, "grid": False}
    if chart.ticks:
        positions = [_short(at) for at, _ in chart.ticks]
        labels = [text for _, text in chart.ticks]
        axis |= {"values": positions, "labelExpr": _one_of(labels, positions)}
    return {**encoding, "type": "quantitative", "axis": axis, "scale": {"nice": False}}


def _one_of(words: Sequence[str], positions: Sequence[float]) -> str:
    """Returns an expression for the word of a tick. The words are numbers as a scenario writes
    them, and are written as JSON, so that they cannot be anything but text."""
    return f"{json.dumps(words)}[indexof({json.dumps(positions)}, datum.value)]"


def _y_of_lines(chart: LineChart, field: str = "y") -> Spec:
    scale: Spec = {"type": "log"} if chart.log else {"zero": chart.from_zero}
    return {
        "field": field,
        "type": "quantitative",
        "title": chart.y_label,
        "scale": scale,
        "axis": {"labelExpr": NUMBER, "labelOverlap": "greedy", "tickCount": 5},
    }


def _colour(chart: Chart, colours: Mapping[str, str]) -> Spec:
    """Returns the encoding of colors. Bounds and references have one color, and stand in the same
    legend as the names."""
    others = {_named(reference.name, reference.value): REFERENCE for reference in chart.references}
    if isinstance(chart, BarChart) and chart.bound:
        others[chart.bound] = BOUND
    whole = {**colours, **others}
    by_category = isinstance(chart, BarChart) and chart.by_category
    scale = {"domain": list(whole), "range": list(whole.values())}
    legend = {"title": None, **({"values": list(others)} if by_category else {})}
    is_needed = bool(others) if by_category else len(whole) > 1
    field = "x" if by_category else "line"
    return {
        "field": field,
        "type": "nominal",
        "scale": scale,
        "legend": legend if is_needed else None,
    }


def _named(name: str, value: float) -> str:
    return f"{name} {value:.4g}"


def _hints(chart: Chart, *more: Spec) -> list[Spec]:
    """Returns what a tooltip shows."""
    is_number = isinstance(chart, LineChart) and not chart.even
    x: Spec = {"field": "x", "title": chart.x_label or "of"}
    x |= {"type": "quantitative", "format": HINT_FORMAT} if is_number else {"type": "nominal"}
    y = {"field": "y", "type": "quantitative", "title": chart.y_label or "value"}
    line = {"field": "line", "type": "nominal", "title": "line"}
    return [line, x, {**y, "format": HINT_FORMAT}, *more]


def _line(chart: LineChart, styles: Sequence[str]) -> Spec:
    encoding: Spec = {
        "y": _y_of_lines(chart),
        "detail": {"field": "piece", "type": "nominal"},
        "tooltip": {"field": "line", "type": "nominal"},
    }
    if styles:
        plain = [""] if "aborted" in styles else []
        domain = [*plain, *styles]
        dashes = [list(DASHES[i % len(DASHES)]) for i in range(len(domain))]
        scale = {"domain": domain, "range": dashes}
        legend = {"title": None, "values": list(styles), "symbolType": "stroke"}
        encoding["strokeDash"] = {
            "field": "style",
            "type": "nominal",
            "scale": scale,
            "legend": legend,
        }
    zoom = {} if chart.even else {"params": [ZOOM]}
    return {
        "mark": {"type": "line", "strokeWidth": 1.8, "clip": True},
        "encoding": encoding,
        **zoom,
    }


def _band(chart: LineChart) -> Spec:
    encoding = {"y": _y_of_lines(chart, "low"), "y2": {"field": "high"}}
    if any(track.style for track in chart.tracks):
        encoding["detail"] = {"field": "style"}
    return {"mark": {"type": "area", "opacity": 0.2, "clip": True}, "encoding": encoding}


def _points(chart: LineChart, rows: Sequence[Spec], names: Sequence[str]) -> list[Spec]:
    """Returns the layer of the points: drawn if they are few, otherwise only under the pointer. If
    there are very many, there is no such layer."""
    longest = max((len(piece.points) for t in chart.tracks for piece in t.pieces), default=0)
    if longest > FEW_POINTS and len(rows) > HOVER_MAX:
        return []
    style = [{"field": "style", "type": "nominal"}] if any("style" in row for row in rows) else []
    encoding = {"y": _y_of_lines(chart), "tooltip": _hints(chart, *style)}
    layer: Spec = {"mark": {"type": "point", "filled": True, "size": 36, "opacity": 1}}
    if longest > FEW_POINTS:
        encoding["opacity"] = AT_HOVER
        layer["params"] = [NEAREST]
    elif len(names) > 1 and not chart.references:  # so that one legend has colors and shapes
        scale = {"domain": list(names), "range": _shapes(len(names))}
        legend = {"title": None}
        encoding["shape"] = {"field": "line", "type": "nominal", "scale": scale, "legend": legend}
    return [{**layer, "encoding": encoding}]


def _shapes(count: int) -> list[str]:
    return [SHAPES[i % len(SHAPES)] for i in range(count)]


def _references(chart: Chart, axis: str) -> Iterator[Spec]:
    for reference in chart.references:
        name = _named(reference.name, reference.value)
        yield {
            "data": {"values": [{"at": _short(reference.value), "line": name}]},
            "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.5, "clip": True},
            "encoding": {
                axis: {"field": "at", "type": "quantitative"},
                "tooltip": {"field": "line", "type": "nominal"},
            },
        }


def _times_of_marks(chart: LineChart) -> dict[float, list[str]]:
    """Returns the texts of the marks at each x, in the order of x."""
    texts: dict[float, list[str]] = {}
    for mark in sorted(chart.marks, key=lambda mark: mark.x):
        texts.setdefault(_short(max(0.0, mark.x)), []).append(mark.text)
    return dict(list(texts.items())[:MARKS_MAX])


def _marks(chart: LineChart) -> list[Spec]:
    """Returns the layer of the marks: numbers above the plot, where they cover no line. The notes
    below the title say what they mean."""
    times = _times_of_marks(chart)
    if not times:
        return []
    words = dict(chart.ticks) if chart.even else {}
    at = [words.get(x, x) for x in times]
    numbers = f"indexof({json.dumps(at)}, datum.value) + 1"
    axis: Spec = {"orient": "top", "values": at, "labelExpr": numbers, "labelColor": REFERENCE}
    axis |= {"labelOverlap": "greedy", "domain": False, "ticks": False, "grid": False}
    axis |= {"title": None, "labelAngle": 0, "labelFlush": False}
    rows = [{"x": x, "line": "; ".join(texts)} for x, texts in zip(at, times.values(), strict=True)]
    layer = {
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeDash": [2, 3], "color": REFERENCE, "clip": True},
        "encoding": {
            "x": {**_x_of_lines(chart), "axis": axis},
            "color": {"value": REFERENCE},
            "tooltip": {"field": "line", "type": "nominal"},
        },
    }
    return [layer]


def _notes(chart: LineChart) -> list[str]:
    """Returns the lines below the title: what the numbers above the plot mean."""
    words = dict(chart.ticks) if chart.even else {}
    unit = " s" if chart.x_label == "seconds" else ""
    return [
        f"{number} (at {words.get(x, f'{x:.4g}{unit}')}): {'; '.join(texts)}"
        for number, (x, texts) in enumerate(_times_of_marks(chart).items(), start=1)
    ]


def _bars(chart: BarChart, palette: Palette) -> Spec:
    names = list(dict.fromkeys(series.name for series in chart.series))
    coloured = list(chart.categories) if chart.by_category else names
    keys = {series.name: series.coloured_as or series.name for series in chart.series}
    of_keys = palette.of([keys.get(name, name) for name in coloured])
    colours = {name: of_keys[keys.get(name, name)] for name in coloured}
    is_wide = sum(map(len, chart.categories)) > LONG_LABELS
    across, along = ("y", "x") if is_wide else ("x", "y")
    of_data = [_bar(chart, along), *_bounds(chart, along)]
    for layer in of_data:
        layer["encoding"][across] = _categories(chart, is_wide)
        if len(names) > 1:
            layer["encoding"][f"{across}Offset"] = {"field": "line", "scale": {"domain": names}}
    layers = [*of_data, *_references(chart, along)]
    spec: Spec = {"layer": layers, "encoding": {"color": _colour(chart, colours)}}
    if is_wide:
        spec["height"] = max(18, 9 * len(names)) * len(chart.categories)
    return _whole(chart, spec, list(_bar_rows(chart)), names, [])


def _bar_rows(chart: BarChart) -> Iterator[dict[str, Any]]:
    for series in chart.series:
        panel = {"panel": series.panel} if series.panel else {}
        bounds = series.bounds or [None] * len(chart.categories)
        for category, y, bound in zip(chart.categories, series.y, bounds, strict=True):
            if y is not None:
                limit = {} if bound is None else {"bound": _short(bound)}
                name = {"x": category, "line": series.name}
                yield {**name, "y": _short(y), **limit, **panel}


def _categories(chart: BarChart, is_wide: bool) -> Spec:
    overlap = False if is_wide else "greedy"
    axis = {"labelAngle": 0, "labelOverlap": overlap, "labelLimit": 240, "grid": False}
    return {
        "field": "x",
        "type": "nominal",
        "title": chart.x_label or None,
        "axis": axis,
        "scale": {"domain": list(chart.categories)},
    }


def _bar(chart: BarChart, along: str) -> Spec:
    value: Spec = {"field": "y", "type": "quantitative", "title": chart.y_label}
    value["axis"] = {"labelExpr": NUMBER, "labelOverlap": "greedy", "tickCount": 5}
    bound = {"field": "bound", "type": "quantitative", "title": chart.bound, "format": HINT_FORMAT}
    hints = _hints(chart, *([bound] if chart.bound else []))
    return {"mark": "bar", "encoding": {along: value, "tooltip": hints}}


def _bounds(chart: BarChart, along: str) -> list[Spec]:
    if not chart.bound:
        return []
    encoding = {
        along: {"field": "bound", "type": "quantitative"},
        "color": {"datum": chart.bound},
        "tooltip": {"field": "bound", "type": "quantitative", "title": chart.bound},
    }
    mark = {"type": "tick", "thickness": 5, "stroke": "white", "strokeWidth": 1, "opacity": 1}
    return [{"mark": mark, "encoding": encoding}]


def _whole(
    chart: Chart, spec: Spec, rows: Sequence[Spec], names: Sequence[str], notes: Sequence[str]
) -> Spec:
    """Returns the whole specification. spec: its layers. names: those of its legends."""
    panels = list(dict.fromkeys(row["panel"] for row in rows if "panel" in row))
    size: Spec = {"width": WIDTH, "height": HEIGHT}
    if panels:
        columns = min(3, len(panels))
        size = {"width": WIDTH // columns, "height": HEIGHT * 2 // 3}
        facet = {"field": "panel", "type": "nominal", "title": None, "sort": panels}
        spec = {"facet": facet, "columns": columns, "spec": {**size, **spec}}
        size = {}
    whole = {
        "$schema": SCHEMA,
        "description": _description(chart, names),
        "data": {"values": list(rows)},
        **size,
        **spec,
        "config": CONFIG,
        "usermeta": {
            "title": chart.title,
            "notes": list(notes),
            "longest": max(map(len, names), default=0),
            "beside": _letters_beside(chart, spec),
            "panels": len(panels),
        },
    }
    return printable_spec(with_letters(whole, WIDTH, LETTERS))


def _letters_beside(chart: Chart, spec: Spec) -> int:
    """Returns the letters of the longest name on the y axis, beside which the legend has no room;
    0 if the y axis has numbers."""
    if isinstance(chart, LineChart) or "height" not in spec:
        return 0
    return max(map(len, chart.categories), default=0)


def with_letters(spec: Spec, width: float, letters: float, family: str = "") -> Spec:
    """Returns a specification with letters of this size, and with the title and the legend broken
    where the width requires it. width, letters: in pixels. family: the font; the usual one if it is
    empty."""
    about, config = spec["usermeta"], spec["config"]
    of_title, of_note = (max(8, int(width / (letters * share))) for share in (0.68, 0.53))
    room = width - about["beside"] * letters * LETTER
    columns = int(room // (about["longest"] * letters * LETTER + 3.3 * letters))
    sizes = {"labelFontSize": letters, "titleFontSize": letters * 1.1}
    title = {"fontSize": letters * 1.25, "subtitleFontSize": letters}
    return {
        **spec,
        "title": {
            "text": wrap(about["title"], of_title) or "",
            "subtitle": [line for note in about["notes"] for line in wrap(note, of_note)],
        },
        "config": {
            **config,
            **({"font": family} if family else {}),
            "axis": {**config["axis"], **sizes},
            "header": {**config["header"], **sizes},
            "legend": {**config["legend"], **sizes, "columns": max(1, columns)},
            "title": {**config["title"], **title},
        },
    }


def printable_spec(value: Any) -> Any:
    """Returns a part of a specification without characters that an SVG file cannot hold."""
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)
    if isinstance(value, dict):
        return {key: printable_spec(each) for key, each in value.items()}
    return [printable_spec(each) for each in value] if isinstance(value, (list, tuple)) else value


def _description(chart: Chart, names: Sequence[str]) -> str:
    """Returns the text that a screen reader says instead of the picture."""
    kind = "Line chart" if isinstance(chart, LineChart) else "Bar chart"
    axes = f"{chart.y_label} by {chart.x_label}" if chart.x_label else chart.y_label
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"{kind}: {chart.title}. {axes}; {listed}."

"""Draws bar and line charts with axes, ticks, a legend and reference lines. The input is values,
and the output is SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from textwrap import wrap

from agglab.testbed.report.svg import Canvas

GREY = "#888888"
INK = "#222222"
REFERENCE = "#D55E00"
# Okabe and Ito's palette: told apart also by colour-blind readers.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
)
LEGEND_MAX = 8
LETTER = 6.5  # of the legend and of ticks, about, in pixels
MARKS_MAX = 24
MARK = 3  # the height of a bar's own mark, in pixels


@dataclass(frozen=True)
class Layout:
    """The positions of a chart's parts, in pixels from the top left. top: the upper edge of the
    plot. legend, reference: the vertical positions of the series' names and of the first reference
    line's name. letters: the most letters in a line of the title."""

    width: int
    height: int
    left: int
    top: int
    legend: int
    reference: int
    letters: int
    right: int = 20
    bottom: int = 52

    @property
    def end(self) -> int:
        """The right end of the plot."""
        return self.width - self.right


WIDE = Layout(680, 320, left=70, top=56, legend=41, reference=41, letters=90)
NARROW = Layout(350, 340, left=58, top=92, legend=80, reference=62, letters=44, right=12)
"""The layout for phones, on which the letters of a wide chart are too small to read."""


@dataclass(frozen=True)
class Series:
    """Named values of a bar chart: one for each category, or None where there is no value. bounds:
    a bound for each value, drawn as a mark."""

    name: str
    y: Sequence[float | None]
    bounds: Sequence[float | None] = ()


@dataclass(frozen=True)
class Piece:
    """A connected part of a line: (x, y) points. dashed: whether it shows something that was
    aborted."""

    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Track:
    """A named line, with gaps between its pieces. band: (x, low, high) of each point, the interval
    in which the estimated value probably lies."""

    name: str
    pieces: Sequence[Piece]
    band: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True)
class Reference:
    """A horizontal line at a value, such as a bound."""

    name: str
    value: float


@dataclass(frozen=True)
class Mark:
    """A labeled vertical line at a value of the x axis."""

    x: float
    text: str


@dataclass(frozen=True)
class Axis:
    """A scale over a range of pixels. It is linear from 0 to `top`. If `low`, a power of ten, is
    given, it is logarithmic from `low` to `top`."""

    top: float
    start: float
    end: float
    low: float = 0.0

    def at(self, value: float) -> float:
        share = (
            log10(value / self.low) / log10(self.top / self.low) if self.low else value / self.top
        )
        return self.start + (self.end - self.start) * share

    def ticks(self) -> list[float]:
        if self.low:
            decades = round(log10(self.top / self.low))
            return [self.low * 10.0**i for i in range(0, decades + 1, ceil(decades / 8))]
        step = tick_step(self.top)
        return [i * step for i in range(floor(self.top / step * (1 + 1e-9)) + 1)]


def tick_step(top: float, ticks: int = 5) -> float:
    """Returns 1, 2 or 5 times a power of ten, so that about `ticks` steps reach `top`
    (positive)."""
    raw = top / ticks
    power = 10.0 ** floor(log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))


def bars(
    title: str,
    label: str,
    categories: Sequence[str],
    series: Sequence[Series],
    references: Sequence[Reference] = (),
    bound: str = "",
    layout: Layout = WIDE,
) -> str:
    """Returns SVG of groups of bars, one group for each category. bound: the label of the marks at
    the bars."""
    values = [v for s in series for v in (*s.y, *s.bounds) if v is not None]
    canvas, y = _frame(title, label, values, references, layout)
    group = (layout.end - layout.left) / max(1, len(categories))
    thick = group * 0.7 / max(1, len(series))
    every = ceil(max((len(c) for c in categories), default=0) * LETTER / group) or 1
    for i, category in enumerate(categories):
        left = layout.left + group * (i + 0.15)
        for j, one in enumerate(series):
            value = one.y[i]
            if value is None:
                continue
            top = y.at(value)
            hint = f"{category}, {one.name}: {number(value)}"
            colour = COLOURS[j % len(COLOURS)]
            canvas.rectangle(left + j * thick, top, thick, y.start - top, colour, hint)
            if one.bounds and (limit := one.bounds[i]) is not None:
                hint = f"{category}, {one.name}, {bound}: {number(limit)}"
                at = y.at(limit) - MARK / 2
                canvas.rectangle(left + j * thick, at, thick, MARK, INK, hint)
        if i % every == 0:
            canvas.text(left + group * 0.35, y.start + 18, category, "middle", 11)
    if bound:
        _mark_name(canvas, bound, layout)
    return _finished(canvas, y, [s.name for s in series], references, layout)


def lines(
    title: str,
    x_label: str,
    y_label: str,
    tracks: Sequence[Track],
    references: Sequence[Reference] = (),
    marks: Sequence[Mark] = (),
    layout: Layout = WIDE,
    ticks: Sequence[tuple[float, str]] = (),
    log: bool = False,
) -> str:
    """Returns SVG of lines over a common x axis from 0. Each track has one color. ticks: positions
    and labels on the x axis, if they are not numbers. log: whether the y axis is logarithmic, which
    requires positive values."""
    points = [point for track in tracks for piece in track.pieces for point in piece.points]
    highs = [high for track in tracks for _, _, high in track.band]
    values = [*(v for _, v in points), *highs]
    canvas, y = _frame(title, y_label, values, references, layout, log)
    xs = [*(v for v, _ in points), *(mark.x for mark in marks)]
    x = Axis(_top(xs), layout.left, layout.end)
    for i, mark in enumerate(marks[:MARKS_MAX]):
        at = x.at(max(0.0, mark.x))
        canvas.line(at, layout.top, at, y.start, REFERENCE, "2 3")
        anchor = "end" if at > (layout.left + layout.end) / 2 else "start"
        offset = -4 if anchor == "end" else 4
        canvas.text(at + offset, layout.top + 12 + 13 * (i % 8), mark.text, anchor, 10)
    for tick, text in ticks or [(tick, number(tick)) for tick in x.ticks()]:
        canvas.line(x.at(tick), y.start, x.at(tick), y.start + 4, GREY)
        canvas.text(x.at(tick), y.start + 18, text, "middle", 11)
    canvas.text((layout.left + layout.end) / 2, layout.height - 12, x_label, "middle")
    for i, track in enumerate(tracks):
        colour = COLOURS[i % len(COLOURS)]
        if track.band:
            above = [(x.at(a), y.at(high)) for a, _, high in track.band]
            below = [(x.at(a), y.at(low)) for a, low, _ in reversed(track.band)]
            canvas.polygon([*above, *below], colour, opacity=0.2)
        for piece in track.pieces:
            at_pixels = [(x.at(a), y.at(b)) for a, b in piece.points]
            dash = "4 3" if piece.dashed else ""
            canvas.polyline(at_pixels, colour, dash)
    return _finished(canvas, y, [t.name for t in tracks], references, layout)


def number(value: float) -> str:
    """Returns a short form of a number: 12000 is 12k, 0.3351 is 0.335."""
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{suffix}"
    return f"{value:.3g}"


def _top(values: Sequence[float]) -> float:
    """Returns the smallest possible end of an axis that begins at 0; 1 if there is no positive
    value."""
    largest = max(values, default=0.0)
    return largest if largest > 1e-300 else 1.0


def _frame(
    title: str,
    label: str,
    values: Sequence[float],
    references: Sequence[Reference],
    layout: Layout,
    log: bool = False,
) -> tuple[Canvas, Axis]:
    """Draws the title and the y axis with ticks. Returns the canvas and the scale."""
    canvas = Canvas(layout.width, layout.height, title)
    for i, line in enumerate(wrap(title, layout.letters)[:2]):
        canvas.text(layout.left if i == 0 and layout is WIDE else 8, 20 + 17 * i, line, size=14)
    top = _top([*values, *(r.value for r in references)])
    step = tick_step(top)
    bottom = layout.height - layout.bottom
    y = Axis(ceil(top / step) * step, bottom, layout.top)
    if log:
        low = 10.0 ** floor(log10(min(values, default=1.0)))
        y = Axis(max(10.0 ** ceil(log10(top)), 10 * low), bottom, layout.top, low)
    for tick in y.ticks():
        canvas.line(layout.left, y.at(tick), layout.end, y.at(tick), "#dddddd")
        canvas.text(layout.left - 6, y.at(tick) + 4, number(tick), "end", 11)
    canvas.text(16, (layout.top + layout.height - layout.bottom) / 2, label, "middle", turn=-90)
    return canvas, y


def _finished(
    canvas: Canvas,
    y: Axis,
    names: Sequence[str],
    references: Sequence[Reference],
    layout: Layout,
) -> str:
    for i, reference in enumerate(references):
        at, named = y.at(reference.value), layout.reference - 14 * i
        canvas.line(layout.left, at, layout.end, at, REFERENCE, "6 4")
        text = f"{reference.name} {number(reference.value)}"
        canvas.line(layout.end - 160, named - 4, layout.end - 132, named - 4, REFERENCE, "6 4")
        canvas.text(layout.end - 126, named, text, size=11)
    if len(names) > 1:
        _legend(canvas, names, layout)
    canvas.line(layout.left, y.start, layout.end, y.start, GREY)
    return canvas.render()


def _mark_name(canvas: Canvas, name: str, layout: Layout) -> None:
    """Draws the label that explains the marks at bars, between the legend and the bars, however
    long the legend is."""
    at = layout.top - 5 if layout is WIDE else layout.reference
    canvas.rectangle(layout.end - 160, at - 5, 28, MARK, INK)
    canvas.text(layout.end - 126, at, name, size=11)


def _legend(canvas: Canvas, names: Sequence[str], layout: Layout) -> None:
    x = float(layout.left)
    for i, name in enumerate(names):
        left = layout.end - x - 24 - LETTER * len(name)
        more = f"and {len(names) - i} more"
        if i == LEGEND_MAX or (i < len(names) - 1 and left < LETTER * len(more)):
            canvas.text(x, layout.legend, more, size=11)
            return
        canvas.rectangle(x, layout.legend - 9, 10, 10, COLOURS[i % len(COLOURS)])
        canvas.text(x + 14, layout.legend, name, size=11)
        x += 24 + LETTER * len(name)

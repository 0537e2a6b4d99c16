"""Bar and line charts with axes, ticks, a legend and reference lines; values in, SVG text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from agglab.testbed.report.svg import Canvas

WIDTH, HEIGHT = 680, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 56, 52
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
class Series:
    """Named values of a bar chart, one for each category; None where there is none. bounds: one of
    each value, drawn as a mark."""

    name: str
    y: Sequence[float | None]
    bounds: Sequence[float | None] = ()


@dataclass(frozen=True)
class Piece:
    """A connected part of a line: (x, y) points. dashed: what it shows came to nothing."""

    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Track:
    """A named line with gaps: nothing is drawn between its pieces."""

    name: str
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class Reference:
    """A horizontal line at a value, such as a bound."""

    name: str
    value: float


@dataclass(frozen=True)
class Mark:
    """A moment on the x axis: a vertical line with a few words."""

    x: float
    text: str


@dataclass(frozen=True)
class Axis:
    """A linear scale from 0 to `top` over a span of pixels."""

    top: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value / self.top)

    def ticks(self) -> list[float]:
        step = tick_step(self.top)
        return [i * step for i in range(floor(self.top / step * (1 + 1e-9)) + 1)]


def tick_step(top: float, ticks: int = 5) -> float:
    """1, 2 or 5 times a power of ten, so that about `ticks` steps reach `top` (positive)."""
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
) -> str:
    """Groups of bars, one group a category. bound: what the marks at the bars are called."""
    values = [v for s in series for v in (*s.y, *s.bounds) if v is not None]
    canvas, y = _frame(title, label, values, references)
    group = (WIDTH - LEFT - RIGHT) / max(1, len(categories))
    thick = group * 0.7 / max(1, len(series))
    every = ceil(max((len(c) for c in categories), default=0) * LETTER / group) or 1
    for i, category in enumerate(categories):
        left = LEFT + group * (i + 0.15)
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
        _mark_name(canvas, bound)
    return _finished(canvas, y, [s.name for s in series], references)


def lines(
    title: str,
    x_label: str,
    y_label: str,
    tracks: Sequence[Track],
    references: Sequence[Reference] = (),
    marks: Sequence[Mark] = (),
    ticks: Sequence[tuple[float, str]] = (),
) -> str:
    """One colour a track, over a common x axis from 0. ticks: where and what, if not numbers."""
    points = [point for track in tracks for piece in track.pieces for point in piece.points]
    canvas, y = _frame(title, y_label, [v for _, v in points], references)
    xs = [*(v for v, _ in points), *(mark.x for mark in marks)]
    x = Axis(_top(xs), LEFT, WIDTH - RIGHT)
    for i, mark in enumerate(marks[:MARKS_MAX]):
        at = x.at(max(0.0, mark.x))
        canvas.line(at, TOP, at, y.start, REFERENCE, "2 3")
        anchor = "end" if at > (LEFT + WIDTH - RIGHT) / 2 else "start"
        offset = -4 if anchor == "end" else 4
        canvas.text(at + offset, TOP + 12 + 13 * (i % 8), mark.text, anchor, 10)
    for tick, text in ticks or [(tick, number(tick)) for tick in x.ticks()]:
        canvas.line(x.at(tick), y.start, x.at(tick), y.start + 4, GREY)
        canvas.text(x.at(tick), y.start + 18, text, "middle", 11)
    canvas.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label, "middle")
    for i, track in enumerate(tracks):
        for piece in track.pieces:
            at_pixels = [(x.at(a), y.at(b)) for a, b in piece.points]
            dash = "4 3" if piece.dashed else ""
            canvas.polyline(at_pixels, COLOURS[i % len(COLOURS)], dash)
    return _finished(canvas, y, [t.name for t in tracks], references)


def number(value: float) -> str:
    """Short: 12000 is 12k, 0.3351 is 0.335."""
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{suffix}"
    return f"{value:.3g}"


def _top(values: Sequence[float]) -> float:
    """Where an axis from 0 ends at least; 1 if nothing is above 0 that a scale could show."""
    largest = max(values, default=0.0)
    return largest if largest > 1e-300 else 1.0


def _frame(
    title: str, label: str, values: Sequence[float], references: Sequence[Reference]
) -> tuple[Canvas, Axis]:
    """Title, y axis with ticks, and the scale."""
    canvas = Canvas(WIDTH, HEIGHT, title)
    canvas.text(LEFT, 20, title, size=14)
    top = _top([*values, *(r.value for r in references)])
    step = tick_step(top)
    y = Axis(ceil(top / step) * step, HEIGHT - BOTTOM, TOP)
    for tick in y.ticks():
        canvas.line(LEFT, y.at(tick), WIDTH - RIGHT, y.at(tick), "#dddddd")
        canvas.text(LEFT - 6, y.at(tick) + 4, number(tick), "end", 11)
    canvas.text(16, (TOP + HEIGHT - BOTTOM) / 2, label, "middle", turn=-90)
    return canvas, y


def _finished(
    canvas: Canvas, y: Axis, names: Sequence[str], references: Sequence[Reference]
) -> str:
    for i, reference in enumerate(references):
        at = y.at(reference.value)
        canvas.line(LEFT, at, WIDTH - RIGHT, at, REFERENCE, "6 4")
        text = f"{reference.name} {number(reference.value)}"
        canvas.line(
            WIDTH - RIGHT - 160, 37 - 14 * i, WIDTH - RIGHT - 132, 37 - 14 * i, REFERENCE, "6 4"
        )
        canvas.text(WIDTH - RIGHT - 126, 41 - 14 * i, text, size=11)
    if len(names) > 1:
        _legend(canvas, names)
    canvas.line(LEFT, y.start, WIDTH - RIGHT, y.start, GREY)
    return canvas.render()


def _mark_name(canvas: Canvas, name: str) -> None:
    """Between the legend of the series, however long that is, and the bars."""
    canvas.rectangle(WIDTH - RIGHT - 160, TOP - 10, 28, MARK, INK)
    canvas.text(WIDTH - RIGHT - 126, TOP - 5, name, size=11)


def _legend(canvas: Canvas, names: Sequence[str]) -> None:
    x = float(LEFT)
    for i, name in enumerate(names):
        left = WIDTH - RIGHT - x - 24 - LETTER * len(name)
        more = f"and {len(names) - i} more"
        if i == LEGEND_MAX or (i < len(names) - 1 and left < LETTER * len(more)):
            canvas.text(x, 41, more, size=11)
            return
        canvas.rectangle(x, 32, 10, 10, COLOURS[i])
        canvas.text(x + 14, 41, name, size=11)
        x += 24 + LETTER * len(name)

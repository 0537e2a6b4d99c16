"""What a chart shows, as values: lines or groups of bars, with what marks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """A connected part of a line: (x, y) points. dashed: whether it shows something that was
    aborted."""

    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Track:
    """A named line, with gaps between its pieces.

    band: (x, low, high) of each point, the interval in which the estimated value probably lies.
    style: what distinguishes lines of the same name, which have the same color and other dashes.
    panel: the panel of a chart with several panels. coloured_as: the name that decides the color,
    if it is not `name`.
    """

    name: str
    pieces: Sequence[Piece]
    band: Sequence[tuple[float, float, float]] = ()
    style: str = ""
    panel: str = ""
    coloured_as: str = ""


@dataclass(frozen=True)
class Reference:
    """A horizontal line at a value, such as a bound."""

    name: str
    value: float


@dataclass(frozen=True)
class Mark:
    """A vertical line at a value of the x axis, and its text."""

    x: float
    text: str


@dataclass(frozen=True)
class LineChart:
    """Lines over a common x axis.

    name: the stem of its file's name. ticks: positions and labels on the x axis, if they are not
    numbers. even: whether the positions of `ticks` stand for words or steps, not for numbers. log:
    whether the y axis is logarithmic, which requires positive values. from_zero: whether a linear y
    axis begins at 0. kind: for a chart over time, the kind of thing that its metric belongs to,
    such as `link`.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    tracks: Sequence[Track]
    references: Sequence[Reference] = ()
    marks: Sequence[Mark] = ()
    ticks: Sequence[tuple[float, str]] = ()
    even: bool = False
    log: bool = False
    from_zero: bool = True
    kind: str = ""


@dataclass(frozen=True)
class Series:
    """Named values of a bar chart: one for each category, or None where there is no value.

    bounds: a bound for each value, drawn as a mark. panel, coloured_as: as those of a Track.
    """

    name: str
    y: Sequence[float | None]
    bounds: Sequence[float | None] = ()
    panel: str = ""
    coloured_as: str = ""


@dataclass(frozen=True)
class BarChart:
    """Groups of bars, one group for each category.

    name: the stem of its file's name. x_label: what the categories are; empty if their names say
    so. bound: the name of the bounds. by_category: whether each category has a color, which
    requires that there is one series.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    categories: Sequence[str]
    series: Sequence[Series]
    references: Sequence[Reference] = ()
    bound: str = ""
    by_category: bool = False


Chart = LineChart | BarChart

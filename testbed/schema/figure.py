"""Declares the section `figure:`, which says what a sweep should show, like a figure from the
literature, and the source of that figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.schema.key import key, keys_list, keys_map
from agglab.testbed.schema.kinds import Choice, Flag, Number, Quantity, Text
from agglab.testbed.schema.quantities import UNITS

PATH = r"[^\x00\n]*"
CONTENDER = "contender"
"""What `facets` and `where` call the contenders of `compare`."""
FORMATS = ("svg", "pdf", "png")
LENGTH_UNITS = {"px": 1.0, "pt": 1.0, "mm": 72 / 25.4, "cm": 720 / 25.4, "in": 72.0}
"""The units of a figure's size, in points: a pixel of the page is a point of a PDF file."""
LENGTH = Quantity("a length", LENGTH_UNITS, 72, 2880)


@dataclass(frozen=True)
class MarkSection:
    """A position on the x axis at which a vertical line is drawn."""

    metric: str = key(
        "metric",
        Text("a metric that is a number", PATH, 200),
        "",
        "draw a line at the first x at which this metric reaches `reaches`, such as `window_share`",
    )
    reaches: float = key("reaches", Number(0, 1e18), 1.0, "the value that `metric` reaches there")
    text: str = key("text", Text(), "", "the label of the line")


@dataclass(frozen=True)
class SizeSection:
    """The size of a figure in files, with its legend and titles, in points."""

    width: float | None = key("width", LENGTH, None, "the width of files, such as `85mm`")
    height: float | None = key("height", LENGTH, None, "the height of files, such as `60mm`")


@dataclass(frozen=True)
class FontSection:
    """The letters of a figure in files. size: in points."""

    family: str = key(
        "family",
        Text("a name of letters, digits, spaces and '-'", r"[A-Za-z0-9][A-Za-z0-9 -]*", 64),
        "Helvetica",
        "the font of files, such as `Latin Modern Roman`; `--fonts` names a folder of fonts",
    )
    size: float = key("size", Number(4, 40), 11.0, "the size of letters in files, in points")


@dataclass(frozen=True)
class Figure:
    """The figures that are drawn for a sweep. y: the metrics, each of which has its own figure.
    long: settings of the long version, in the form that `--set` takes."""

    title: str = key(
        "title", Text(), "", "the title of a sweep's figure; without one, no figure is drawn"
    )
    source: str = key(
        "source", Text(), "", "the published figure that this one repeats: paper, section, number"
    )
    published: str = key(
        "published", Text(), "", "the numbers that the source gives, and where it gives them"
    )
    relation: str = key(
        "relation",
        Text(),
        "",
        "the relation that the figure shows, in one sentence; `expect` states it in numbers",
    )
    x: str = key(
        "x",
        Text("a key of `sweep`", PATH, 200),
        "",
        "the swept key on the x axis; the first one if absent",
    )
    y: tuple[str, ...] = keys_list(
        "y",
        Text("a metric that is a number", PATH, 200),
        "the metrics, one figure for each",
        ("allreduce.time_s.median",),
    )
    over_time: tuple[str, ...] = keys_list(
        "over_time",
        Text("kind.metric, such as job.sent_rate", PATH, 200),
        "metrics of `series.csv` that are drawn over time, with a line for each run of the sweep",
    )
    relative: bool = key(
        "relative", Flag(), False, "draw multiples of each line's value at its first point"
    )
    over: str = key(
        "over",
        Text("a contender", PATH, 200),
        "",
        "draw multiples of this contender's value at the same point",
    )
    scale: str = key(
        "scale",
        Choice(("linear", "steps")),
        "linear",
        "scale of the x axis; `steps`: the swept values at equal distances, for powers of two "
        "for example",
    )
    y_scale: str = key("y_scale", Choice(("linear", "log")), "linear", "scale of the y axis")
    mark: MarkSection | None = field(default=None, metadata={"section": MarkSection})
    facets: str = key(
        "facets",
        Text("a key of `sweep`, or `contender`", PATH, 200),
        "",
        "draw a panel for each value of this swept key, or for each contender",
    )
    where: Mapping[str, tuple[str, ...]] = keys_map(
        "where",
        Text("values that the key takes", PATH, 200),
        "draw only the runs with these values of swept keys, such as `{links.loss: [0%, 1%]}`; "
        "`contender` stands for the names of contenders",
        many=True,
    )
    labels: Mapping[str, str] = keys_map(
        "labels",
        Text("text", PATH, 200),
        "what to write instead of the names of contenders, swept keys, their values and metrics, "
        "such as `{ring: Ring}`",
    )
    units: Mapping[str, str] = keys_map(
        "units",
        Choice(tuple(UNITS)),
        "the units in which metrics and swept keys are shown, such as "
        "`{allreduce.time_s.median: ms}`",
    )
    size: SizeSection | None = field(default=None, metadata={"section": SizeSection})
    font: FontSection | None = field(default=None, metadata={"section": FontSection})
    format: tuple[str, ...] = keys_list(
        "format",
        Choice(FORMATS),
        "also write the figure as files of these formats, which needs vl-convert-python",
    )
    long: tuple[str, ...] = keys_list(
        "long",
        Text("key=value, as for --set", PATH, 1000),
        "settings that `--long` and `LONG=1` use, for runs that may take a night",
    )

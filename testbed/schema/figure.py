"""Declares the section `figure:`, which says what a sweep should show, like a figure from the
literature, and the source of that figure."""

from __future__ import annotations

from dataclasses import dataclass, field

from agglab.testbed.schema.key import key, keys_list
from agglab.testbed.schema.kinds import Choice, Flag, Number, Text

PATH = r"[^\x00\n]*"


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
    long: tuple[str, ...] = keys_list(
        "long",
        Text("key=value, as for --set", PATH, 1000),
        "settings that `--long` and `LONG=1` use, for runs that may take a night",
    )

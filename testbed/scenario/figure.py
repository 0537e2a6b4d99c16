"""`figure:`: what a sweep should show, like a figure from the literature, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agglab.testbed.scenario.errors import nearest, quote
from agglab.testbed.scenario.key import key, keys_list
from agglab.testbed.scenario.kinds import Choice, Flag, Number, Text
from agglab.testbed.scenario.metric_names import metrics, pattern_of, type_of
from agglab.testbed.systems.base import System

if TYPE_CHECKING:
    from agglab.testbed.scenario.schema import Axis

PATH = r"[^\x00\n]*"


@dataclass(frozen=True)
class MarkSection:
    """A value of the x axis that a rule marks."""

    metric: str = key(
        "metric",
        Text("a metric that is a number", PATH, 200),
        "",
        "draw a line at the first x at which this metric reaches `reaches`, such as `window_share`",
    )
    reaches: float = key("reaches", Number(0, 1e18), 1.0, "how much")
    text: str = key("text", Text(), "", "the label of the line")


@dataclass(frozen=True)
class Figure:
    """What is drawn for a sweep. y: a figure for each metric; long: settings as `--set` takes
    them."""

    title: str = key(
        "title", Text(), "", "the title of a sweep's figure; without one, no figure is drawn"
    )
    source: str = key(
        "source", Text(), "", "the published figure that this one repeats: paper, section, number"
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
        "settings that `agglab figures --long` uses, for runs that may take a night",
    )


def problems(
    figure: Figure, axes: tuple[Axis, ...], contenders: Sequence[str], system: System
) -> Iterator[tuple[str, str, str]]:
    """Yields what is wrong with the figure of a sweep over `axes`: key path, problem, what is
    allowed."""
    if not figure.title:
        yield "figure", "has no title", "title: text"
    paths = [axis.path for axis in axes]
    if not paths:
        yield "figure", "is only drawn for a sweep", "sweep: {key: [value, ...]}"
    elif figure.x and figure.x not in paths:
        yield "figure.x", f"{quote(figure.x)} is not a swept key", ", ".join(paths)
    if figure.over and figure.over not in contenders:
        what = f"unknown contender {quote(figure.over)}{nearest(figure.over, contenders)}"
        yield "figure.over", what, ", ".join(contenders) or "compare"
    named = [(f"figure.y[{i}]", path) for i, path in enumerate(figure.y)]
    if figure.mark:
        named.append(("figure.mark.metric", figure.mark.metric))
    for where, path in named:
        pattern = pattern_of(path, system)
        if pattern is None:
            near = nearest(path, metrics(system))
            yield where, f"unknown metric {quote(path)}{near}", "docs/results.md lists them"
        elif type_of(pattern) != "number":
            yield where, f"{quote(path)} is not a number", "a number"

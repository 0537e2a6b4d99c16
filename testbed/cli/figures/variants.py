"""Makes the scenario of a figure for one clock (real or virtual), in a short or a long version.
Contenders that the clock or this machine cannot run are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed.base.paths import FIGURE_FOLDER
from agglab.testbed.base.problems import Problem, Where, nearest, quote
from agglab.testbed.scenario import Point, ScenarioError, load
from agglab.testbed.scenario.metric_names import GROWTH, RATIO
from agglab.testbed.schema.document import Mapping, Node, Scalar, changed, with_value, written

COMPARED_MIN = 2
"""The smallest number of contenders that can be compared."""


@dataclass(frozen=True)
class Variant:
    """A figure on one clock. name: the figure's name. file: where it is declared. text: its
    scenario for this clock. settings: the settings that `--long` adds."""

    name: str
    clock: str
    file: Path
    text: str
    settings: tuple[str, ...]


def names() -> list[str]:
    """Returns the names of the figures that come with Agglab."""
    return sorted(path.stem for path in FIGURE_FOLDER.glob("*.yaml"))


def find(name: str) -> Path:
    """Returns the file of a figure, given by its name in figures/ or by path. Raises
    ScenarioError."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or "/" in name:
        return path
    if name not in names():
        what = f"unknown figure{nearest(name, names())}"
        raise ScenarioError([Problem(Where(quote(name)), "", what, ", ".join(names()))])
    return FIGURE_FOLDER / f"{name}.yaml"


def variant(path: Path, clock: str, long: bool) -> Variant:
    """Returns the figure's scenario for a clock. Contenders that cannot run are left out, together
    with what the figure expects of them, if at least two others remain. Raises ScenarioError if the
    file is not a figure."""
    suite = load(path)
    if suite.figure is None:
        what = "is not a figure"
        raise ScenarioError(
            [Problem(Where(str(path)), "figure", what, "a scenario with both `sweep` and `figure`")]
        )
    root = with_value(suite.document, "backend", Scalar(clock, False, suite.document.where))
    unable = {point.contender for point in suite.points if not _can_run(point, clock)}
    if len(set(suite.contenders) - unable) >= COMPARED_MIN:
        root = _without(root, unable)
    settings = suite.figure.long if long else ()
    return Variant(suite.name, clock, path, written(root), settings)


def _can_run(point: Point, clock: str) -> bool:
    """Returns whether a contender's system runs on this clock, and this machine has what it
    needs."""
    system = point.resolved.system
    return clock in system.abilities.clocks and not any(system.lacks(point.resolved))


def _without(root: Node, contenders: Collection[str]) -> Node:
    """Returns the scenario without these contenders and without the expectations about them."""

    def kept(metric: str) -> bool:
        compared = metric.startswith((GROWTH, RATIO))
        return not (compared and set(metric.split(".")).intersection(contenders))

    for path in (["compare"], ["figure", "labels"]):
        root = changed(root, path, lambda node: _filtered(node, lambda n: n not in contenders))
    return changed(root, ["expect"], lambda node: _filtered(node, kept))


def _filtered(node: Node, keeps: Callable[[str], bool]) -> Node:
    assert isinstance(node, Mapping), "the scenario was loaded from a file"
    return Mapping(tuple(entry for entry in node.entries if keeps(entry[0].text)), node.where)

"""A figure's scenario for one clock, short or long."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed.paths import FIGURE_FOLDER
from agglab.testbed.scenario import ScenarioError, Suite, load
from agglab.testbed.scenario.document import Mapping, Node, Scalar, changed, with_value, written
from agglab.testbed.scenario.errors import Problem, Where, nearest, quote
from agglab.testbed.scenario.metric_names import GROWTH, RATIO

REAL, VIRTUAL = "mininet", "virtual"
CLOCKS = (REAL, VIRTUAL)


@dataclass(frozen=True)
class Variant:
    """name: the figure's; text: its scenario for the clock; settings: what `long` adds to it."""

    name: str
    clock: str
    text: str
    settings: tuple[str, ...]


def names() -> list[str]:
    """The figures that come with the laboratory."""
    return sorted(path.stem for path in FIGURE_FOLDER.glob("*.yaml"))


def find(name: str) -> Path:
    """Its file, by the name of one in figures/ or by path. Raises ScenarioError."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or "/" in name:
        return path
    if name not in names():
        what = f"no such figure{nearest(name, names())}"
        raise ScenarioError([Problem(Where(quote(name)), "", what, ", ".join(names()))])
    return FIGURE_FOLDER / f"{name}.yaml"


def variant(path: Path, clock: str, long: bool) -> Variant:
    """The figure's scenario for a clock; in virtual time without the contenders that need real
    links, and what is expected of them. Raises ScenarioError where the file is no figure."""
    suite = load(path)
    if suite.figure is None:
        what = "is no figure"
        raise ScenarioError([Problem(Where(str(path)), "figure", what, "a sweep with `figure`")])
    root = with_value(suite.document, "backend", Scalar(clock, False, suite.document.where))
    if clock == VIRTUAL:
        root = _without(root, _on_real_links_only(suite))
    return Variant(suite.name, clock, written(root), suite.figure.long if long else ())


def _on_real_links_only(suite: Suite) -> set[str]:
    """The contenders whose systems do not run in virtual time."""
    return {
        point.contender
        for point in suite.points
        if point.contender and VIRTUAL not in point.resolved.system.abilities.clocks
    }


def _without(root: Node, contenders: Collection[str]) -> Node:
    """The scenario without these contenders and what is expected of them."""

    def kept(metric: str) -> bool:
        compared = metric.startswith((GROWTH, RATIO))
        return not (compared and set(metric.split(".")).intersection(contenders))

    root = changed(root, ["compare"], lambda node: _filtered(node, lambda n: n not in contenders))
    return changed(root, ["expect"], lambda node: _filtered(node, kept))


def _filtered(node: Node, keeps: Callable[[str], bool]) -> Node:
    assert isinstance(node, Mapping), "a scenario that was loaded"
    return Mapping(tuple(entry for entry in node.entries if keeps(entry[0].text)), node.where)

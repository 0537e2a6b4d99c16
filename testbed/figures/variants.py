"""Makes the scenario of a figure for one clock (real or virtual), in a short or a long version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed.arguments import VIRTUAL
from agglab.testbed.paths import FIGURE_FOLDER
from agglab.testbed.problems import Problem, Where, nearest, quote
from agglab.testbed.scenario import ScenarioError, Suite, load
from agglab.testbed.scenario.document import Mapping, Node, Scalar, changed, with_value, written
from agglab.testbed.scenario.metric_names import GROWTH, RATIO


@dataclass(frozen=True)
class Variant:
    """A figure on one clock. name: the figure's name. text: its scenario for this clock. settings:
    the settings that `--long` adds."""

    name: str
    clock: str
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
    """Returns the figure's scenario for a clock. In virtual time, contenders that need real links
    are left out, together with what the figure expects of them. Raises ScenarioError if the file is
    not a figure."""
    suite = load(path)
    if suite.figure is None:
        what = "is not a figure"
        raise ScenarioError(
            [Problem(Where(str(path)), "figure", what, "a scenario with both `sweep` and `figure`")]
        )
    root = with_value(suite.document, "backend", Scalar(clock, False, suite.document.where))
    if clock == VIRTUAL:
        root = _without(root, _on_real_links_only(suite))
    return Variant(suite.name, clock, written(root), suite.figure.long if long else ())


def _on_real_links_only(suite: Suite) -> set[str]:
    """Returns the contenders whose systems do not run in virtual time."""
    return {
        point.contender
        for point in suite.points
        if point.contender and VIRTUAL not in point.resolved.system.abilities.clocks
    }


def _without(root: Node, contenders: Collection[str]) -> Node:
    """Returns the scenario without these contenders and without the expectations about them."""

    def kept(metric: str) -> bool:
        compared = metric.startswith((GROWTH, RATIO))
        return not (compared and set(metric.split(".")).intersection(contenders))

    root = changed(root, ["compare"], lambda node: _filtered(node, lambda n: n not in contenders))
    return changed(root, ["expect"], lambda node: _filtered(node, kept))


def _filtered(node: Node, keeps: Callable[[str], bool]) -> Node:
    assert isinstance(node, Mapping), "the scenario was loaded from a file"
    return Mapping(tuple(entry for entry in node.entries if keeps(entry[0].text)), node.where)

"""Reads what a result folder's scenario.yaml asked for. The folder may come from an untrusted
source. Therefore the text is read with a limited size, as all scenarios are, and no file that it
names is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from agglab.testbed.base.problems import ScenarioError, Where
from agglab.testbed.schema.document import Items, Mapping, Node, Scalar, parse
from agglab.testbed.schema.expectations import FINDINGS, MAY, Expectation
from agglab.testbed.schema.kinds import InvalidText, Kind, Share, decimal, duration, rate, size
from agglab.testbed.schema.quantities import quantity_of_value

FLAGS = {"true": True, "false": False}
LIMITS = ("min", "max")


@dataclass(frozen=True)
class RecordedScenario:
    """The scenario of a result folder. text: the content of scenario.yaml. If it cannot be read,
    there are no values."""

    text: str

    @cached_property
    def tree(self) -> dict[str, Any]:
        """The content: sections as dicts, lists as lists, scalars as text."""
        try:
            tree = _plain(parse(self.text, "scenario.yaml"))
        except ScenarioError:
            return {}
        return tree if isinstance(tree, dict) else {}

    def value(self, path: str, default: str = "") -> str:
        """Returns the scalar at a dotted path, as it was written."""
        found: Any = self.tree
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, str) and found else default

    @cached_property
    def expectations(self) -> tuple[Expectation, ...]:
        """The expectations in the section `expect` that are well-formed."""
        section = self.tree.get("expect")
        pairs = section.items() if isinstance(section, dict) else ()
        return tuple(e for name, value in pairs for e in _expectations(name, value))


@cache
def number(text: str) -> float | None:
    """Returns the number of a scalar, which is plain or a quantity in bits per second, seconds,
    bytes or shares; None if it is none of these."""
    plain = decimal(text)
    if plain is not None:
        return plain
    kinds: tuple[Kind, ...] = (rate(), duration(), size(), Share())
    for kind in kinds:
        try:
            return float(kind.read(_scalar(text)))
        except InvalidText:
            continue
    return None


def unit(text: str) -> str:
    """Returns the unit of the number that `number` returns for this text; empty for plain
    numbers."""
    return quantity_of_value(text)


def _scalar(text: str) -> Scalar:
    return Scalar(text, False, Where("scenario.yaml"))


def _plain(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items):
        return [_plain(item) for item in node.items]
    assert isinstance(node, Mapping)
    return {name.text: _plain(value) for name, value in node.entries}


def _expectations(metric: str, value: Any) -> Iterator[Expectation]:
    optional = metric == FINDINGS and isinstance(value, dict) and list(value) == [MAY]
    words = value[MAY] if optional else value
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        yield Expectation(metric, listed=tuple(words), optional=optional)
    elif isinstance(value, str) and value:
        yield Expectation(metric, equals=_equals(value))
    elif isinstance(value, dict) and metric == "failure":
        for name, part in value.items():
            limit = number(part) if name == "within" and isinstance(part, str) else None
            if limit is not None:
                yield Expectation("failure.after_s", maximum=limit)
            elif isinstance(part, str):
                yield Expectation(f"failure.{name}", equals=part)
    elif isinstance(value, dict):
        yield from _limited(metric, value)


def _limited(metric: str, value: dict[str, Any]) -> Iterator[Expectation]:
    if isinstance(value.get("equals"), str):
        yield Expectation(metric, equals=_equals(value["equals"]))
        return
    low, high = (decimal(str(value[name])) if name in value else None for name in LIMITS)
    if low is not None or high is not None:
        yield Expectation(metric, minimum=low, maximum=high)


def _equals(text: str) -> bool | float | str:
    found = FLAGS.get(text)
    if found is not None:
        return found
    plain = decimal(text)
    return text if plain is None else plain

"""Reads the section `expect:`, which states what a run must measure to pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agglab.testbed.base.problems import Problem, Where, nearest, quote
from agglab.testbed.scenario.metric_names import (
    GROWTH,
    NO_COMPARISON,
    RATIO,
    ComparisonContext,
    metric_of,
    metrics,
)
from agglab.testbed.schema.document import Items, Mapping, Node, Scalar
from agglab.testbed.schema.expectations import (
    AT,
    FINDINGS,
    MATCHERS,
    MAY,
    OF_FAILURE,
    Expectation,
    Value,
)
from agglab.testbed.schema.kinds import InvalidText, decimal, duration, integer
from agglab.testbed.schema.metric import FLAG, LIST, NUMBER, TEXT
from agglab.testbed.systems.base import System


@dataclass(frozen=True)
class Subject:
    """The metrics that expectations may name: the metrics of a system's run, their growth in a
    sweep, and their ratios in a comparison."""

    system: System
    swept: bool = False
    comparison: ComparisonContext = NO_COMPARISON


def read_expect(
    node: Node,
    problems: list[Problem],
    places: dict[str, Where],
    subject: Subject,
) -> tuple[Expectation, ...]:
    """Returns the expectations of an `expect:` section. Problems are appended to `problems`, and
    the position of each metric to `places`."""
    if not isinstance(node, Mapping):
        problems.append(
            Problem(node.where, "expect", "is not a mapping", "metric: value or metric: {min, max}")
        )
        return ()
    found: dict[str, Expectation] = {}
    for name, value in node.entries:
        path = f"expect.{name.text}"
        places[path] = value.where
        if name.text in found:
            problems.append(Problem(name.where, path, "is given twice"))
        if name.text == "failure":
            problem = _read_failure(value, found, places)
        else:
            problem = _unknown(name.text, subject) or _read_one(name.text, value, found, subject)
        if problem:
            what, allowed = problem
            problems.append(Problem(value.where, path, what, allowed))
    return tuple(found.values())


def _read_failure(
    node: Node, found: dict[str, Expectation], places: dict[str, Where]
) -> tuple[str, str] | None:
    """Reads `failure: {worker: h3, job: a, within: 12s}`, which says how the run is expected to
    fail. Returns what is wrong and what is allowed, or None."""
    allowed = "worker: host, job: name, within: time"
    if not isinstance(node, Mapping) or not node.entries:
        return "is not a mapping", allowed
    given: set[str] = set()
    for name, value in node.entries:
        if name.text not in OF_FAILURE:
            return f"unknown key {quote(name.text)}{nearest(name.text, OF_FAILURE)}", allowed
        if not isinstance(value, Scalar) or not value.text:
            return f"{quote(name.text)} needs exactly one value", allowed
        if name.text in given:
            return f"{quote(name.text)} is given twice", allowed
        given.add(name.text)
        places[f"expect.failure.{name.text}"] = value.where
        if name.text == "within":
            try:
                seconds = duration().read(value)
            except InvalidText as error:
                return str(error), duration().allowed
            found["failure.after_s"] = Expectation("failure.after_s", maximum=seconds)
        else:
            metric = f"failure.{name.text}"
            found[metric] = Expectation(metric, equals=value.text)
    return None


def _unknown(metric: str, subject: Subject) -> tuple[str, str] | None:
    """Returns why no run of this subject could meet an expectation of this metric, and what is
    allowed; None if a run could meet it."""
    system, comparison = subject.system, subject.comparison
    if metric.startswith(RATIO) and not comparison.contenders:
        return f"{quote(metric)} needs `compare`", "a metric of a single run"
    if metric.startswith(GROWTH) and not subject.swept:
        return f"{quote(metric)} needs a sweep", "a metric of a single run"
    names, path = comparison.about(metric)
    if wrong := _wrong_names(names, comparison.contenders):
        return wrong
    if names and comparison.own not in names:
        return None  # the runs that it is about know
    declared = metric_of(path, system)
    if declared is None:
        near = nearest(path, metrics(system))
        return f"unknown metric {quote(path)}{near}", "docs/results.md lists them"
    if metric.startswith((RATIO, GROWTH)) and declared.kind != NUMBER:
        compared = "be divided" if metric.startswith(RATIO) else "grow"
        return f"{quote(path)} is not a number, so it cannot {compared}", "a number"
    return None


def _wrong_names(names: Sequence[str], contenders: Sequence[str]) -> tuple[str, str] | None:
    """Returns what is wrong with the contenders in a metric's path."""
    for name in names:
        if name not in contenders:
            return f"unknown contender {quote(name)}{nearest(name, contenders)}", ", ".join(
                contenders
            )
    if len(set(names)) < len(names):
        return f"compares {quote(names[0])} with itself", "two contenders"
    return None


def _read_one(
    metric: str, node: Node, found: dict[str, Expectation], subject: Subject
) -> tuple[str, str] | None:
    of_runs = metric.startswith((RATIO, GROWTH))
    declared = metric_of(subject.comparison.about(metric)[1], subject.system)
    kind = NUMBER if of_runs or declared is None else declared.kind
    measured = declared is not None and declared.measured
    if isinstance(node, Scalar) and measured and decimal(node.text) is not None:
        what = f"is measured, so it can hardly be exactly {node.text}"
        return what, f"{{max: {node.text}}}, {{min: {node.text}}} or {{equals: {node.text}}}"
    allowed = {
        FLAG: "true or false",
        TEXT: "a word",
        NUMBER: "a number or {min: number, max: number}",
    }
    if metric == FINDINGS or (kind == TEXT and isinstance(node, Items)):
        return _read_list(metric, node, found)
    if kind == LIST:
        return "is a list of numbers, for which no expectation can be stated", "single values"
    try:
        found[metric] = _expectation(metric, node, kind)
    except ValueError as error:
        return str(error), allowed[kind]
    return None


def _read_list(metric: str, node: Node, found: dict[str, Expectation]) -> tuple[str, str] | None:
    optional = metric == FINDINGS and isinstance(node, Mapping)
    if isinstance(node, Mapping) and optional:
        if [name.text for name, _ in node.entries] != [MAY]:
            return "is not a list of words", f"[word, ...] or {{{MAY}: [word, ...]}}"
        node = node.entries[0][1]
    words = (
        [item.text for item in node.items if isinstance(item, Scalar)]
        if isinstance(node, Items)
        else []
    )
    if not isinstance(node, Items) or not words or len(words) != len(node.items):
        return "is not a list of words", "[word, ...]"
    if len(set(words)) < len(words):
        return "has the same word twice", "each once"
    found[metric] = Expectation(metric, listed=tuple(words), optional=optional)
    return None


def _expectation(metric: str, node: Node, kind: str) -> Expectation:
    if isinstance(node, Scalar):
        return Expectation(metric, equals=_value(node, kind))
    if isinstance(node, Items) or not node.entries:
        raise ValueError("is not a value")
    limits: dict[str, Node] = {}
    at: tuple[str, ...] = ()
    for name, value in node.entries:
        if name.text == AT and metric.startswith(RATIO):
            at = _words(value)
            continue
        if name.text not in MATCHERS:
            raise ValueError(f"unknown key {quote(name.text)}{nearest(name.text, MATCHERS)}")
        if name.text in limits:
            raise ValueError(f"{quote(name.text)} is given twice")
        limits[name.text] = value
    if not limits:
        raise ValueError("is not a value")
    return replace(_limited(metric, limits, kind), at=at)


def _words(node: Node) -> tuple[str, ...]:
    """Returns the values that the key `at` of an expectation lists."""
    items = node.items if isinstance(node, Items) else (node,)
    if not items or not all(isinstance(item, Scalar) for item in items):
        raise ValueError(f"'{AT}' is not a list of values of swept keys")
    return tuple(item.text for item in items if isinstance(item, Scalar))


def _limited(metric: str, limits: dict[str, Node], kind: str) -> Expectation:
    if "equals" in limits:
        if len(limits) > 1:
            raise ValueError("'equals' cannot be combined with other keys")
        return Expectation(metric, equals=_value(limits["equals"], kind))
    if kind != "number":
        raise ValueError("has no order, so 'min' and 'max' cannot be used")
    low, high = (_number(limits[m]) if m in limits else None for m in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise ValueError(f"min {low:g} is greater than max {high:g}")
    return Expectation(metric, minimum=low, maximum=high)


def _value(node: Node, kind: str) -> Value:
    if not isinstance(node, Scalar):
        raise ValueError("is not a value")
    if kind == "text":
        return node.text
    if kind == "number":
        return _number(node)
    if node.quoted or node.text not in ("true", "false"):
        raise ValueError(f"{quote(node.text)} is not true or false")
    return node.text == "true"


def _number(node: Node) -> int | float:
    if not isinstance(node, Scalar) or node.quoted:
        raise ValueError("is not a number")
    whole = integer(node.text)
    if whole is not None:
        return whole
    number = decimal(node.text)
    if number is None:
        raise ValueError(f"{quote(node.text)} is not a number")
    return number

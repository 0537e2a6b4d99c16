"""Defines the expectations of the section `expect:`, which state what a run must measure to
pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = "bool | int | float | str"
MATCHERS = ("equals", "min", "max")
FINDINGS = "findings"
"""The key of the expected kinds of findings. The run must show all listed kinds and no other. With
`may`, it can show any of them, but no other."""
MAY = "may"
AT = "at"
OF_FAILURE = ("worker", "job", "within")


@dataclass(frozen=True)
class Expectation:
    """An expectation of one metric, given by its dotted path. The metric must equal a value, lie
    within [minimum, maximum], or be one of those listed.

    Findings must be exactly those listed or, if `optional`, no others. at: for a ratio in a sweep,
    values of swept keys. The expectation holds for points that have one of these values, or for all
    points if `at` is empty.
    """

    metric: str
    equals: Value | None = None
    minimum: float | None = None
    maximum: float | None = None
    listed: tuple[str, ...] = ()
    optional: bool = False
    at: tuple[str, ...] = ()

    def concerns(self, settings: Iterable[str]) -> bool:
        """Returns whether the expectation applies to a point with these values of the swept
        keys."""
        return not self.at or not set(self.at).isdisjoint(settings)

    def holds(self, value: Any) -> bool:
        if self.listed:
            return value in self.listed
        if self.equals is not None:
            return _same(value, self.equals)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )

    def __str__(self) -> str:
        if self.listed:
            verb = "are at most" if self.optional else "is"
            return f"{self.metric} {verb} {' or '.join(self.listed)}"
        if self.equals is not None:
            shown = str(self.equals).lower() if isinstance(self.equals, bool) else self.equals
            return f"{self.metric} = {shown}"
        limits = [(">=", self.minimum), ("<=", self.maximum)]
        where = f" at {' or '.join(self.at)}" if self.at else ""
        bounds = " and ".join(f"{s} {v:g}" for s, v in limits if v is not None)
        return f"{self.metric} {bounds}{where}"

    def to_yaml(self) -> Any:
        if self.listed:
            return {MAY: list(self.listed)} if self.optional else list(self.listed)
        if self.equals is not None:
            return self.equals
        limits = {"min": self.minimum, "max": self.maximum, AT: list(self.at) or None}
        return {name: value for name, value in limits.items() if value is not None}


def _same(value: Any, wanted: Value) -> bool:
    """Returns whether two values are equal; 1 equals 1.0, but true does not equal 1."""
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted

"""The classes of a benchmark's results: Row and Goal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A goal for a row: for its ratio, or for its value if `of_value` is true. The number must be
    at least `limit`, or at most `limit` if `most` is true."""

    limit: float
    most: bool = False
    of_value: bool = False


@dataclass(frozen=True)
class Row:
    """One measured value, and its ratio to a value that was measured for comparison. baseline: a
    description of what was measured for comparison."""

    part: str
    what: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float = 1.0
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        """Whether the row reaches its goal, or None if it has no goal."""
        if self.goal is None:
            return None
        reached = self.value if self.goal.of_value else self.ratio
        return reached <= self.goal.limit if self.goal.most else reached >= self.goal.limit

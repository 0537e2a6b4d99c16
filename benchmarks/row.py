"""What every benchmark gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """What a row's ratio (or value, if it says so) shall be: at least or at most a limit."""

    limit: float
    most: bool = False
    of_value: bool = False


@dataclass(frozen=True)
class Row:
    """One figure and what it is compared with: `ratio` is `value` over the value of `baseline`."""

    part: str
    what: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float = 1.0
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        reached = self.value if self.goal.of_value else self.ratio
        return reached <= self.goal.limit if self.goal.most else reached >= self.goal.limit

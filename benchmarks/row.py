"""What every benchmark gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure and what it is compared with: `ratio` is `value` over the value of `baseline`."""

    part: str
    what: str
    value: float
    unit: str
    baseline: str
    ratio: float

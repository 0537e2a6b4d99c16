"""What a table entry matches in one key field; values are unsigned, of the field's width."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exact:
    """Equal to `value`."""

    value: int


@dataclass(frozen=True)
class Lpm:
    """The top `prefix_len` bits equal those of `value`."""

    value: int
    prefix_len: int


@dataclass(frozen=True)
class Ternary:
    """`field & mask == value & mask`; mask 0 matches anything."""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """`low <= field <= high`."""

    low: int
    high: int


Match = Exact | Lpm | Ternary | Range

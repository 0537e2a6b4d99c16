"""The classes of matches for a key field, and of targets that entries have in a table with an
action profile. Values are unsigned and as wide as the field."""

from __future__ import annotations

from dataclasses import dataclass

from p4native.switch.errors import PipelineError


@dataclass(frozen=True)
class Exact:
    """A match of fields equal to `value`."""

    value: int


@dataclass(frozen=True)
class Lpm:
    """A match of fields whose highest `prefix_len` bits equal those of `value`."""

    value: int
    prefix_len: int


@dataclass(frozen=True)
class Ternary:
    """A match by `field & mask == value & mask`. With mask 0 it matches anything."""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """A match by `low <= field <= high`."""

    low: int
    high: int


@dataclass(frozen=True)
class Member:
    """A member of an action profile."""

    number: int


@dataclass(frozen=True)
class Group:
    """A group of members of an action profile with a selector."""

    number: int


Match = Exact | Lpm | Ternary | Range

GROUP_BIT = 1 << 31
"""The bit that marks a group's number; PL_GROUP of pipeline.h."""


def target_number(target: Member | Group) -> int:
    """Returns the number that stands for a member or group in calls of pipeline.h."""
    if not 0 <= target.number < GROUP_BIT:
        raise PipelineError(f"{target} does not exist")
    return target.number | (GROUP_BIT if isinstance(target, Group) else 0)

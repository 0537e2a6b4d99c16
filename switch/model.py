"""The program that BMv2 JSON describes, as values: what the reader makes and the translator uses."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Param:
    """A parameter that the control plane gives to an action."""

    name: str
    bits: int


@dataclass
class Action:
    """An action; `index` is its position in the JSON (names may repeat, indexes do not)."""

    name: str
    index: int
    id: int
    params: tuple[Param, ...] = ()


@dataclass(frozen=True)
class Key:
    """One field of a table's key; `kind` is exact, lpm, ternary, range or valid."""

    name: str
    kind: str
    bits: int


@dataclass
class Table:
    """A match-action table; `index` is what pipeline.h calls `table`."""

    name: str
    index: int
    id: int
    match_type: str
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    max_size: int
    const_entries: bool
    const_default: bool
    direct_counters: bool
    support_timeout: bool


@dataclass(frozen=True)
class Register:
    """An array of `size` registers of `bits` bits."""

    name: str
    index: int
    id: int
    size: int
    bits: int


@dataclass(frozen=True)
class Counter:
    """An array of `size` packet-and-byte counters, or the direct counter of `table`."""

    name: str
    index: int
    id: int
    size: int
    table: str | None = field(default=None)

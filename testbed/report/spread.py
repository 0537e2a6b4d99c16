"""Writes the counters of many workers, switches or directions as one row per counter: how they are
spread, and where the extremes are. A row for each of a thousand workers would be read by nobody."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from statistics import median_low
from typing import Any

from agglab.testbed.report.tables import ROWS_OPEN, heading, table

Metrics = Mapping[str, Any]


def counters(thing: str, rows: Mapping[str, Metrics]) -> str:
    """Returns counters as HTML. rows: the counters of each thing, by its name. thing: what has the
    counters (`worker`)."""
    return table(thing, rows) if len(rows) <= ROWS_OPEN else _spread(thing, rows)


def _spread(thing: str, rows: Mapping[str, Metrics]) -> str:
    """Returns a table with a row for each counter that is not zero everywhere."""
    columns = list(next(iter(rows.values())))
    spread = {heading(column): _of(column, thing, rows) for column in columns}
    zero = [column for column, of in spread.items() if of and not any(_extremes(of))]
    shown = {column: of for column, of in spread.items() if of and column not in zero}
    text = (
        "The table has the least, the median and the most of each counter, and where they are; "
        f"metrics.json has the counters of all {len(rows):,}."
    )
    if zero:
        text += f" Zero everywhere: {', '.join(zero)}."
    return f"<p>{escape(text)}</p>" + (table("counter", shown) if shown else "")


def _extremes(of: Metrics) -> tuple[float, float]:
    return of["least"], of["most"]


def _of(column: str, thing: str, rows: Mapping[str, Metrics]) -> dict[str, Any]:
    """Returns how a counter is spread; nothing if it has no numbers."""
    found = {name: row.get(column) for name, row in rows.items()}
    numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
    if not numbers:
        return {}
    least, most = min(numbers.values()), max(numbers.values())
    return {
        "least": least,
        f"{thing} with the least": _with(least, numbers),
        "median": median_low(numbers.values()),
        "most": most,
        f"{thing} with the most": _with(most, numbers),
        "sum": sum(numbers.values()),
    }


def _with(value: float, numbers: Mapping[str, float]) -> str:
    """Returns what has this value, or how many do."""
    names = [name for name, number in numbers.items() if number == value]
    return names[0] if len(names) == 1 else f"{len(names):,} of them"

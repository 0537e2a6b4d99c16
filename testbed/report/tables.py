"""Writes a report's tables as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any

from agglab.testbed.judge.fidelity import OF_THE_MACHINE
from agglab.testbed.results.metric_values import show

Metrics = Mapping[str, Any]
MANY_COLUMNS = 12
ROWS_OPEN = 64
"""A table with more rows than this is closed until the reader opens it. Of more things than this,
the page shows how their counters are spread (spread.py)."""


def table(first: str, rows: Mapping[str, Metrics], escaped: bool = False) -> str:
    """Returns a table as HTML. rows: the values of each row by column. The columns are those of the
    first row."""
    columns = list(next(iter(rows.values()), {}))
    words = {c for c in columns if any(_is_text(row.get(c)) for row in rows.values())}
    marks = {c: " class='text'" if c in words else "" for c in [first, *columns]}
    headings = {c: heading(c) for c in [first, *columns]}
    head = "".join(f"<th{marks[c]}>{escape(headings[c])}</th>" for c in [first, *columns])
    lines = [f"<tr class='head'>{head}</tr>"]
    for name, values in rows.items():
        cells = "".join(cell(headings[c], values.get(c)) for c in columns)
        lines.append(f"<tr><td>{name if escaped else escape(name)}</td>{cells}</tr>")
    many = " many" if len(columns) > MANY_COLUMNS else ""
    text = f"<div class='wide{many}'><table>{''.join(lines)}</table></div>"
    if len(rows) <= ROWS_OPEN:
        return text
    return f"<details><summary>{len(rows)} rows</summary>{text}</details>"


def cell(heading: str, value: Any) -> str:
    """Returns a table cell. On a narrow page it also shows the heading."""
    kinds = ["text"] if _is_text(value) else []
    if _is_bad(heading, value):
        kinds.append("bad")
    marked = f" class='{' '.join(kinds)}'" if kinds else ""
    return f"<td{marked} data-of='{_attribute(heading)}'>{escape(shown(value))}</td>"


@cache
def _attribute(heading: str) -> str:
    return escape(heading, quote=True)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and " " in value


def _is_bad(heading: str, value: Any) -> bool:
    """Returns whether a value says that a run failed, or that it did not measure the network."""
    if heading == "verdict":
        return value in ("failed", "undecided")
    if heading == "fidelity":
        return value in OF_THE_MACHINE
    if heading in ("exact", "sums exact", "integer sums exact"):
        return value is False
    return heading.startswith("wrong ") and bool(value)


def heading(column: str) -> str:
    """Returns the heading of a column: `cpu_s` becomes "cpu (s)"."""
    name = column.removesuffix("_s").replace("_", " ")
    return f"{name} (s)" if column.endswith("_s") else name


def shown(value: Any) -> str:
    """Returns a value as text for reading: digits in groups, and a dash for no value."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return show(value)
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1e5 else show(value)

"""Reads and shows single values of metrics.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lookup(metrics: Mapping[str, Any], path: str) -> Any:
    """Returns the value at a dotted path; None if there is none."""
    value: Any = metrics
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def show(value: Any) -> str:
    """Returns a metric's value as text for people."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

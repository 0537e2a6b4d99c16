"""Waiting for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.01


def until(condition: Callable[[], object], what: str) -> None:
    """Returns as soon as the condition holds. The wait has no limit of its own, which a busy
    machine could exceed: the limit of each test (pyproject.toml) ends it. what: the condition in
    words, for the traceback."""
    while not condition():
        time.sleep(POLL_S)

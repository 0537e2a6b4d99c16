"""The verdict about a run: whether it passed, failed, or could not be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agglab.testbed.base import exit_codes

PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"
CODES = {
    PASSED: exit_codes.PASSED,
    FAILED: exit_codes.FAILED,
    UNDECIDED: exit_codes.UNDECIDED,
}
"""The exit code for each verdict."""


def verdict_of(metrics: Mapping[str, Any]) -> str:
    """Returns the verdict that metrics.json states. If a run broke off, its metrics state none, and
    it has failed."""
    return str(metrics.get("verdict") or (PASSED if metrics.get("ok") else FAILED))


def together(verdicts: Iterable[str]) -> str:
    """Returns the verdict about several runs: FAILED if one failed, UNDECIDED if one could not be
    judged, and PASSED otherwise."""
    distinct = set(verdicts)
    return next((verdict for verdict in (FAILED, UNDECIDED) if verdict in distinct), PASSED)

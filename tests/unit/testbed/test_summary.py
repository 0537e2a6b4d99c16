"""The line that says what helps where the machine, not the network, was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.summary import run_summary, sweep_summary


def metrics(ok: bool, exact: bool, verdict: str) -> dict[str, Any]:
    time_s = {"median": 0.2, "min": 0.2, "max": 0.2}
    job = {
        "error": {"max_abs": None, "bound": None},
        "rounds": 1,
        "restarts": 0,
        "allreduce": {"time_s": time_s},
        "link_bound_s": 0.1,
        "link_bound_ratio": 2.0,
    }
    counted = ("retransmitted", "injected_drops", "lost_down", "other_drops", "malformed", "forged")
    totals = dict.fromkeys(counted, 0)
    return {
        **job,
        "ok": ok,
        "exact": exact,
        "wrong_sums": 0 if exact else 3,
        "wrong_results": 0,
        "reason": None if ok else "expected link_bound_ratio <= 1.15, got 2",
        "totals": totals,
        "jobs": {"job": job},
        "failure": None,
        "findings": [{"kind": "slow", "text": "a round took 2 s", "numbers": {}}],
        "fidelity": {"verdict": verdict, "reasons": ["s1 used 95% of one processor"]},
    }


@pytest.mark.parametrize(
    ("case", "remedy"),
    [
        (metrics(False, True, "cpu-bound"), "larger packets"),
        (metrics(False, True, "starved"), "quieter machine"),
        (metrics(False, True, "network-bound"), None),
        (metrics(False, False, "cpu-bound"), None),
        (metrics(True, True, "cpu-bound"), None),
    ],
)
def test_a_missed_expectation_on_a_machine_too_small_has_a_remedy(
    case: dict[str, Any], remedy: str | None
) -> None:
    for text in (run_summary("x", case, Path("r")), sweep_summary("x", sweep(case), Path("r"))):
        lines = [line for line in text.splitlines() if line.startswith("  remedy")]
        assert len(lines) == (remedy is not None)
        assert remedy is None or remedy in lines[0]


def test_findings_are_shown() -> None:
    text = run_summary("x", metrics(True, True, "waiting"), Path("r"))
    assert "  finding   slow: a round took 2 s" in text.splitlines()


def sweep(failing: dict[str, Any]) -> dict[str, Any]:
    good = metrics(True, failing["exact"], "network-bound")
    points = [{"settings": {"a": i}, "metrics": each} for i, each in enumerate((good, failing))]
    return {**failing, "points": points, "growth": {}}

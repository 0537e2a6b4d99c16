"""What a failure says about the faults of its run."""

from __future__ import annotations

import pytest

from agglab.testbed.control.history import FaultHistory, FaultState
from agglab.testbed.control.scheduler import RunClock
from agglab.testbed.faults import AgentCrash, AtTime, Fault

LIST = "crash h0 1 s after the start, crash h1 1 s after the start, crash h2 1 s after the start"
FOUR = f"{LIST}, crash h3 1 s after the start"
FIVE = f"{FOUR}, crash h4 1 s after the start"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, ""),
        (4, f" (faults: {FOUR})"),
        (6, f" (faults: {FIVE}, crash h5 1 s after the start)"),
        (7, f" (faults: {FIVE}, and 2 more)"),
        (256, f" (faults: {FIVE}, and 251 more)"),
    ],
)
def test_a_line_about_a_failure_does_not_list_hundreds_of_faults(count: int, text: str) -> None:
    clock = RunClock(lambda: 0)
    clock.start_ns = 500
    crashes = [
        Fault(n, "crash", AgentCrash(1, f"h{n}", "worker"), AtTime(1.0)) for n in range(count)
    ]
    states = [FaultState(crash, began_ns=1_000_000_500) for crash in crashes]
    not_begun = FaultState(Fault(999, "crash", AgentCrash(1, "h999", "worker"), AtTime(9.0)))
    assert FaultHistory([*states, not_begun], clock).so_far() == text

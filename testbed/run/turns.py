"""Decides which runs can take turns with others, and takes all turns of a run that runs alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from agglab.testbed.schema.faults import Attack, AtTime, Fault, SwitchRestart
from agglab.testbed.schema.jobs import Job

T = TypeVar("T")


def exhaust(turns: Generator[None, None, T]) -> T:
    """Runs the generator to its end and returns its result."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result


def may_rest(jobs: Sequence[Job], faults: Sequence[Fault]) -> bool:
    """Returns whether a run can be paused between two rounds for any time. This requires that
    nothing in it happens at a fixed time: the run has one job without an end time, and all faults
    begin within rounds and do not end."""
    return (
        len(jobs) == 1
        and jobs[0].end_s is None
        and not any(isinstance(fault.trigger, AtTime) or _ends(fault) for fault in faults)
    )


def _ends(fault: Fault) -> bool:
    return fault.duration_s is not None or isinstance(fault.action, SwitchRestart | Attack)

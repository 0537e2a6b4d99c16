"""Runs that take turns: which can, and a run that has all its turns to itself."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from agglab.testbed.faults import Attack, AtTime, Fault, SwitchRestart
from agglab.testbed.scenario.jobs import Job

T = TypeVar("T")


def exhaust(turns: Generator[None, None, T]) -> T:
    """Take all turns at once; what they come to."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result


def may_rest(jobs: Sequence[Job], faults: Sequence[Fault]) -> bool:
    """Whether a run can be left alone between two rounds, for as long as others take: nothing in it
    happens at a time of its own. It has one job, and its faults begin within rounds and last."""
    return (
        len(jobs) == 1
        and jobs[0].end_s is None
        and not any(isinstance(fault.trigger, AtTime) or _ends(fault) for fault in faults)
    )


def _ends(fault: Fault) -> bool:
    return fault.duration_s is not None or isinstance(fault.action, SwitchRestart | Attack)

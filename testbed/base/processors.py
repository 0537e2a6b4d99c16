"""Decides how many processors the computation of the right sums uses. No result depends on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from agglab.testbed.base.problems import Problem, ScenarioError, Where
from agglab.topologies import Topology

VARIABLE = "AGGLAB_PROCESSORS"
DIGITS_MAX = 4
"""The length of the longest number of processors, so that a long text is not taken for a number."""
HOSTS_MIN = 256
"""The number of hosts from which several processors pay."""

Given = TypeVar("Given")
Returned = TypeVar("Returned")


def allowed() -> int:
    """Returns how many processors a run may use: the value of the environment variable, or all that
    this process may use. Raises ScenarioError if the value is not a number."""
    text = os.environ.get(VARIABLE)
    if not text:
        return len(os.sched_getaffinity(0))
    number = int(text) if text.isdecimal() and len(text) <= DIGITS_MAX else 0
    if not number:
        what = f"{text[:20]!r} is not a whole number from 1 to {10**DIGITS_MAX - 1:,}"
        raise ScenarioError([Problem(Where("environment"), VARIABLE, what)])
    return number


def for_network(topology: Topology) -> int:
    """Returns how many processors a run of this network uses."""
    return allowed() if len(topology.hosts) >= HOSTS_MIN else 1


def leave_one() -> None:
    """Lets runs of this process use one processor only, because other processes run beside it."""
    os.environ[VARIABLE] = "1"


def in_threads(
    count: int, call: Callable[[Given], Returned], values: Iterable[Given]
) -> list[Returned]:
    """Returns what the function returns for each of the values, in their order. count: how many
    threads call it. After an exception in one of them, or in the thread that waits here, no
    further call begins, and the exception is raised when those under way have ended."""
    if count == 1:
        return [call(value) for value in values]
    with ThreadPoolExecutor(count) as threads:
        try:
            calls = [threads.submit(call, value) for value in values]
            wait(calls, return_when=FIRST_EXCEPTION)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
        return [one.result() for one in calls]

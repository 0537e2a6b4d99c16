"""Decides how many processors a run in virtual time uses. Its results do not depend on it."""

from __future__ import annotations

import os

from agglab.testbed.scenario.errors import Problem, ScenarioError, Where
from agglab.topologies import Topology

VARIABLE = "AGGLAB_PROCESSORS"
HOSTS_MIN = 256
"""The number of hosts from which several processors pay."""


def allowed() -> int:
    """Returns how many processors a run may use: the value of the environment variable, or all that
    this process may use. Raises ScenarioError if the value is not a number."""
    text = os.environ.get(VARIABLE)
    if not text:
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or not int(text):
        what = f"{text!r} is not a whole number greater than 0"
        raise ScenarioError([Problem(Where("environment"), VARIABLE, what)])
    return int(text)


def for_network(topology: Topology) -> int:
    """Returns how many processors a run of this network uses."""
    return allowed() if len(topology.hosts) >= HOSTS_MIN else 1


def leave_one() -> None:
    """Lets runs of this process use one processor only, because other processes run beside it."""
    os.environ[VARIABLE] = "1"

"""What a system chooses for a job, and the agents that it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class JobChoices:
    """The values that a system chooses for keys of a job, named as in Job. A value is 0 if the
    system has no such number."""

    window: int = 0
    first_slot: int = 0
    slots: int = 0


@dataclass(frozen=True)
class Choices:
    """The values that a system chooses for keys of a scenario. A value is 0 if the system has no
    such number. window: the value of `workload.window`. jobs: the choices for each job, in the
    scenario's order."""

    jobs: Sequence[JobChoices]
    lanes: int = 0
    window: int = 0


@dataclass(frozen=True)
class Agent:
    """One program on a host.

    role: one of hosts.part.ROLES. rank: a worker's rank in the job; for other agents, a unique
    number above all ranks of workers. configuration: the configuration that hosts.agent reads,
    except `control` and `sums_dir`. session: settings of a new session that are only for this
    agent, such as its current peers. listens: whether a worker also answers other agents between
    rounds. The counts of these answers are requested when the job is over, as for servers. spare:
    whether the job continues if this agent has died.
    """

    role: str
    host: str
    rank: int
    configuration: Mapping[str, Any]
    session: Mapping[str, Any] = field(default_factory=dict)
    listens: bool = False
    spare: bool = False

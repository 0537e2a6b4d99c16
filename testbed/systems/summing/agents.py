"""The agents of a job of a system that sums in slots: one worker on each of the job's hosts."""

from __future__ import annotations

from typing import Any

from agglab.hosts import wire
from agglab.hosts.part import WORKER
from agglab.testbed.systems.base import ActiveJob, Agent, ResolvedScenario
from agglab.testbed.systems.common import agent_configuration


def agents(resolved: ResolvedScenario, job: ActiveJob, endpoints: str) -> list[Agent]:
    """Returns the agents (see System.agents). endpoints: the module of the workers' endpoints."""
    return [
        Agent(WORKER, job.job.hosts[rank], rank, configuration(resolved, job, endpoints, rank))
        for rank in job.members
    ]


def configuration(
    resolved: ResolvedScenario, job: ActiveJob, endpoints: str, rank: int
) -> dict[str, Any]:
    """Returns the keys of hosts.agent for one worker at the job's beginning."""
    declared, port = job.job, wire.WORKER_PORT_BASE + job.job.number
    host = declared.hosts[rank]
    return {
        **agent_configuration(resolved, declared, endpoints, host, port, rank),
        "settings": {
            "lanes": resolved.lanes,
            "slots": declared.slots,
            "window": declared.window,
            "first_tag": 1,
            "aggregator": [wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT],
        },
    }

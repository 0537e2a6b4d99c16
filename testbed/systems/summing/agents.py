"""Who runs where: a worker at each host of the job."""

from __future__ import annotations

from typing import Any

from agglab.hosts import wire
from agglab.hosts.part import WORKER
from agglab.testbed.systems.base import ActiveJob, Agent, Setting
from agglab.testbed.systems.common import agent_configuration
from agglab.testbed.systems.summing.partition import ranges


def agents(setting: Setting, job: ActiveJob, endpoints: str) -> list[Agent]:
    """See System.agents. endpoints: the module of the workers' endpoints."""
    return [
        Agent(WORKER, job.job.hosts[rank], rank, configuration(setting, job, endpoints, rank))
        for rank in job.members
    ]


def configuration(setting: Setting, job: ActiveJob, endpoints: str, rank: int) -> dict[str, Any]:
    """hosts.agent's keys for one worker, as the job begins."""
    tenant, port = job.job, wire.WORKER_PORT_BASE + job.job.number
    host = tenant.hosts[rank]
    return {
        **agent_configuration(setting, tenant, endpoints, host, port, rank),
        "settings": {
            "lanes": setting.scenario.switch.lanes,
            "slots": ranges(setting.scenario)[job.index][1],
            "window": tenant.workload.window,
            "first_tag": 1,
            "aggregator": [wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT],
        },
    }

"""Who runs where in SwitchML: a worker at each host of the job."""

from __future__ import annotations

from typing import Any

from agglab.hosts import wire
from agglab.hosts.part import WORKER
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import ActiveJob, Agent

ENDPOINTS = "agglab.hosts.systems.switchml"


def agents(resolved: ResolvedScenario, job: ActiveJob) -> list[Agent]:
    """See System.agents."""
    return [
        Agent(WORKER, job.job.hosts[rank], rank, configuration(resolved, job, rank))
        for rank in job.members
    ]


def configuration(resolved: ResolvedScenario, job: ActiveJob, rank: int) -> dict[str, Any]:
    """hosts.agent's keys for one worker, as the job begins."""
    tenant = job.job
    workload, host = tenant.workload, resolved.graph.host(tenant.hosts[rank])
    link = next(iter(resolved.graph.ports(host.name).values()))
    return {
        "name": host.name,
        "system": ENDPOINTS,
        "role": WORKER,
        "job": tenant.number,
        "rank": rank,
        "workers": len(tenant.hosts),
        "settings": {
            "lanes": resolved.lanes,
            "slots": tenant.slots,
            "window": tenant.window,
            "first_tag": 1,
            "aggregator": [wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT],
        },
        "bind": [host.ip, wire.WORKER_PORT_BASE + tenant.number],
        "link_rate_bps": link.a_to_b.rate_bps,
        "elements": workload.elements,
        "dtype": workload.dtype,
        "seed": resolved.seed,
        "give_up_s": workload.give_up_s,
        "worker": workload.worker,
    }

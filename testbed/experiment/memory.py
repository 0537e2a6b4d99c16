"""How much memory a run needs."""

from __future__ import annotations

from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import tensor_bytes

AGENT_COPIES = 5


def memory_needed_bytes(resolved: ResolvedScenario) -> int:
    """Returns about how many bytes the system and the agents' arrays (input, output, sums, the next
    input) need."""
    system, scenario = resolved.system, resolved.scenario
    tensors = sum(len(job.hosts) * tensor_bytes(system, scenario, job) for job in resolved.jobs)
    return AGENT_COPIES * tensors + system.memory_bytes(resolved)

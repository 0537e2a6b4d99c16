"""How long a round's packets take through empty queues, which matters for rounds of few packets."""

from __future__ import annotations

from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ResolvedScenario
from agglab.testbed.systems.forwarding import path_s


def trips_s(resolved: ResolvedScenario, job: Job) -> float:
    """Returns the time of all round trips of a round that follow one another, in seconds. Each is
    as long as that between the job's first agent and the one farthest from it."""
    first, *others = dict.fromkeys((*job.servers, *job.hosts))
    system = resolved.system
    frame_bytes = system.chunk_bits(resolved) // 8
    one_way_s = (path_s(resolved.graph, first, other, frame_bytes) for other in others)
    return system.round_trips(job) * 2 * max(one_way_s, default=0.0)

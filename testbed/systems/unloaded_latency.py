"""How long a round's packets take through empty queues, which matters for rounds of few packets."""

from __future__ import annotations

from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ResolvedScenario, Stepwise
from agglab.testbed.systems.forwarding import path_s

ROUND_TRIPS = 2
"""The number of round trips that follow one another in a round of a system that is not Stepwise."""


def trips_s(resolved: ResolvedScenario, job: Job) -> float:
    """Returns the time of all round trips of a round that follow one another, in seconds. Each is
    as long as that between the job's first agent and the one farthest from it."""
    first, *others = dict.fromkeys((*job.servers, *job.hosts))
    frame_bytes = resolved.system.chunk_bits(resolved) // 8
    one_way_s = (path_s(resolved.graph, first, other, frame_bytes) for other in others)
    system = resolved.system
    trips = system.round_trips(job) if isinstance(system, Stepwise) else ROUND_TRIPS
    return trips * 2 * max(one_way_s, default=0.0)

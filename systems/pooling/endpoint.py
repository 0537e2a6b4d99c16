"""The agents of systems in which all jobs share the slots of switches. A server of each job sums
what switches cannot sum (README.md).

Settings: lanes, window, session, slots (the number that a switch has), first_slot, scale_log2,
priority, congestion_control, peers (only the aggregator, because all packets go through switches).
"""

from __future__ import annotations

from agglab.hosts import shared
from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SERVER, Part
from agglab.systems.pooling import wire
from agglab.systems.pooling.job import PoolingJob
from agglab.systems.pooling.server import PoolingServer
from agglab.systems.pooling.state import LIBRARY
from agglab.systems.pooling.worker import PoolingWorker

build = LIBRARY.build


def endpoint(part: Part) -> Endpoint:
    """Returns the endpoint of one worker or server, a state machine without a socket."""
    has = part.settings
    job = PoolingJob(
        job=part.job,
        workers=part.workers,
        lanes=has["lanes"],
        window=has["window"],
        session=has["session"],
        slots=has["slots"],
        first_slot=has["first_slot"],
        scale_log2=has["scale_log2"],
        priority=has["priority"],
        congestion_control=has["congestion_control"],
    )
    (aggregator,) = part.peers
    if part.role == SERVER:
        return PoolingServer(job, part.dtype, aggregator)
    timing = shared.timing_of(part, job.lanes, job.window)
    return PoolingWorker(job, part.rank, timing, aggregator, _repair_ns(part))


def _repair_ns(part: Part) -> int:
    """Returns the time that one packet of each worker takes on a link, 0 if links have no rate. All
    workers send a chunk again that was lost, so the answers to other chunks wait this long."""
    if not part.link_rate_bps:
        return 0
    bits = 8 * part.workers * wire.frame_bytes(part.settings["lanes"])
    return round(bits / part.link_rate_bps * shared.NS_PER_S)

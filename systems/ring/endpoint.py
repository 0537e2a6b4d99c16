"""The system of ring all-reduce (README.md).

Settings: lanes, window, session, peers ([address, port] of all members, by rank).
"""

from __future__ import annotations

from agglab.hosts import shared
from agglab.hosts.part import Part
from agglab.systems.ring.state import LIBRARY
from agglab.systems.ring.worker import RingJob, RingWorker

build = LIBRARY.build


def endpoint(part: Part) -> RingWorker:
    """Returns the endpoint of one worker, a state machine without a socket."""
    has = part.settings
    return RingWorker(
        RingJob(
            part.job,
            part.rank,
            part.workers,
            has["lanes"],
            has["window"],
            has["session"],
            part.peers,
            shared.timing_of(part, has["lanes"], has["window"]),
        )
    )

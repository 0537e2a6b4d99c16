"""The system OmniReduce (README.md).

Settings: lanes, slots, window, first_tag, aggregator ([address, port]), longest_bytes (the length
of the longest UDP payload).
"""

from __future__ import annotations

from agglab.hosts import shared
from agglab.hosts.part import Part
from agglab.hosts.slots import Job
from agglab.systems.omnireduce.state import LIBRARY
from agglab.systems.omnireduce.worker import OmniReducer

QUANTISES = True
"""Whether floats are summed as integers."""

build = LIBRARY.build


def endpoint(part: Part) -> OmniReducer:
    """Returns the endpoint of one worker, a state machine without a socket."""
    has = part.settings
    names = ("lanes", "slots", "window", "first_tag")
    job = Job(part.job, part.workers, *(has[name] for name in names))
    host, port = has["aggregator"]
    timing = shared.timing_of(part, job.lanes, job.window)
    return OmniReducer(job, timing, (host, port), has["longest_bytes"])

"""The system of parameter servers (README.md).

Settings: lanes, window, session, servers (their number), peers ([address, port] of each), and for a
server also its index. The peers of a worker are all servers; the peers of a server are all workers.
"""

from __future__ import annotations

from agglab.hosts import shared
from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SERVER, Part
from agglab.systems.ps.agents import PsServer, PsWorker, ServerJob, WorkerJob
from agglab.systems.ps.state import LIBRARY

build = LIBRARY.build


def endpoint(part: Part) -> Endpoint:
    """Returns the endpoint of one worker or server, a state machine without a socket."""
    has = part.settings
    agreed = (part.workers, has["servers"], has["lanes"], has["window"], has["session"], part.peers)
    if part.role == SERVER:
        return PsServer(ServerJob(part.job, has["index"], *agreed))
    timing = shared.timing_of(part, has["lanes"], has["window"])
    return PsWorker(WorkerJob(part.job, part.rank, *agreed, timing))

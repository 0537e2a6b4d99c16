"""The system NetRPC (README.md).

Settings: service, lanes, window, first_tag, peers ([address, port] of each). The peers of a worker
are the aggregator and, if the service has maps, the server. The peers of a server are all workers.
A server also has the setting cells.
"""

from __future__ import annotations

from agglab.hosts import shared
from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SERVER, Part
from agglab.hosts.wire import VALUE_BYTES
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.server import NetRpcServer
from agglab.systems.netrpc.service import load
from agglab.systems.netrpc.state import LIBRARY
from agglab.systems.netrpc.worker import Job, NetRpcWorker

QUANTISES = True
"""Whether floats are summed as integers."""

build = LIBRARY.build


def endpoint(part: Part) -> Endpoint:
    """Returns the endpoint of one worker or server, a state machine without a socket."""
    has, service = part.settings, load(part.settings["service"])
    if part.role == SERVER:
        return NetRpcServer(
            part.job, service, has["cells"], has["first_tag"], part.peers, has["lanes"]
        )
    job = Job(part.job, part.workers, has["lanes"], has["window"], has["first_tag"], service)
    body_bytes = wire.longest_datagram_bytes(job.lanes) - wire.HEADER_BYTES
    values = -(-body_bytes // VALUE_BYTES)
    timing = shared.timing_of(part, values, job.window, in_step=False)
    return NetRpcWorker(job, timing, part.peers)

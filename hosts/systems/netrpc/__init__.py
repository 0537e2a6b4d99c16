"""NetRPC: docs/systems/netrpc.md. Settings: service, lanes, window, first_tag, peers ([address,
port] of the aggregator, then of the server, where the service has maps; of a server all workers),
and of a server cells."""

from __future__ import annotations

from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SERVER, Part
from agglab.hosts.systems import shared
from agglab.hosts.systems.netrpc.endpoint import Job, NetRpcWorker
from agglab.hosts.systems.netrpc.server import NetRpcServer
from agglab.hosts.systems.netrpc.service import load

QUANTISES = True
"""Floats are summed as integers."""


def endpoint(part: Part) -> Endpoint:
    """The state machine of one worker or server."""
    has, service = part.settings, load(part.settings["service"])
    if part.role == SERVER:
        return NetRpcServer(
            part.job, service, has["cells"], has["first_tag"], part.peers, has["lanes"]
        )
    job = Job(part.job, part.workers, has["lanes"], has["window"], has["first_tag"], service)
    return NetRpcWorker(job, shared.timing_of(part, job.lanes, job.window), part.peers)

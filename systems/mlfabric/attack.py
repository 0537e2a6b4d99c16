"""The packets with which an outsider attacks agents of MLfabric."""

from __future__ import annotations

from random import Random

import numpy as np

from agglab.hosts.part import SCHEDULER, SERVER, WORKER
from agglab.systems.mlfabric import wire
from agglab.testbed.systems.base import ActiveJob, Agent


def forged(lanes: int, job: ActiveJob, chance: Random, agent: Agent) -> bytes:
    """Returns a packet of a kind for which the agent may be waiting."""
    kinds = {
        WORKER: [wire.Kind.GRANT, wire.Kind.COMMIT, wire.Kind.STATE, wire.Kind.OVER],
        SERVER: [wire.Kind.SUMMED, wire.Kind.PUSH, wire.Kind.GRANT, wire.Kind.PROMOTE],
        SCHEDULER: [wire.Kind.REQUEST, wire.Kind.COMMIT, wire.Kind.PROMOTED],
    }[agent.role]
    kind = chance.choice(kinds)
    header = np.zeros(1, wire.HEADER)
    header["version"], header["kind"], header["job"] = wire.VERSION, kind, job.job.number
    header["session"], header["round"] = agent.configuration["settings"]["session"], 1
    header["number"] = chance.randrange(64)
    return bytes(header.tobytes() + chance.randbytes(wire.body_bytes(kind, lanes, 1)))

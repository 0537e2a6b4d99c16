"""The packets with which an outsider attacks agents of MLfabric."""

from __future__ import annotations

from random import Random

import numpy as np

from agglab.hosts import wire as base_wire
from agglab.hosts.part import SCHEDULER, SERVER, WORKER
from agglab.hosts.systems.mlfabric import wire
from agglab.testbed.systems.base import ActiveJob, Agent


def forged(lanes: int, job: ActiveJob, chance: Random, agent: Agent) -> bytes:
    """Returns a packet of a kind for which the agent may be waiting."""
    kinds = {
        WORKER: [wire.Kind.GRANT, wire.Kind.COMMIT, wire.Kind.STATE, wire.Kind.OVER],
        SERVER: [wire.Kind.SUMMED, wire.Kind.PUSH, wire.Kind.GRANT, wire.Kind.PROMOTE],
        SCHEDULER: [wire.Kind.REQUEST, wire.Kind.COMMIT, wire.Kind.PROMOTED],
    }[agent.role]
    kind = chance.choice(kinds)
    values = base_wire.VALUE_BYTES * lanes
    body_bytes = {
        wire.Kind.STATE: wire.PART.itemsize + values,
        wire.Kind.PUSH: wire.PUSH.itemsize + values,
        wire.Kind.SUMMED: wire.PUSH.itemsize + values,
        wire.Kind.GRANT: wire.GRANT.itemsize + wire.ENTRY.itemsize,
    }
    header = np.zeros(1, wire.HEADER)
    header["version"], header["kind"], header["job"] = wire.VERSION, kind, job.job.number
    header["session"], header["round"] = agent.configuration["settings"]["session"], 1
    header["number"] = chance.randrange(64)
    size = body_bytes.get(kind, wire.BODY_BYTES.get(kind, 0))
    return bytes(header.tobytes() + chance.randbytes(size))

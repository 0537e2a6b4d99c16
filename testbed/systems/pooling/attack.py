"""The payloads that an outsider forges for systems whose jobs share all slots: contributions and
results in the format of docs/pooling.md."""

from __future__ import annotations

import struct

from agglab.hosts.systems.pooling import wire
from agglab.hosts.systems.pooling.job import PoolingJob
from agglab.hosts.wire import VALUE_BYTES
from agglab.testbed.systems.summing.attack import Aim

POOLED = struct.Struct("!IIIIBBH")
SESSIONS = 3


def forge(aim: Aim, job: PoolingJob, result: int, overhead: int) -> bytes:
    """Returns a payload (see summing.attack.Forge). It has no values if there is no room for them.
    job: the victim's job."""
    chance, is_float = aim.chance, aim.victim.dtype == "float32"
    values = wire.Kind.SCALED if is_float else wire.Kind.INT32
    kind = values if aim.aims() else chance.choice(list(wire.Kind))
    if kind != wire.Kind.MISMATCH and not aim.fits(wire.datagram_bytes(aim.lanes), overhead):
        kind = wire.Kind.MISMATCH
    header = bytearray(aim.header(kind | result))
    header[6] = 0  # exponent
    digest = job.digest(aim.victim.elements, is_float) if aim.aims() else chance.getrandbits(32)
    pooled = POOLED.pack(
        chance.randrange(1, SESSIONS),
        digest,
        chance.getrandbits(8),
        chance.getrandbits(job.workers),
        chance.getrandbits(4) if aim.aims() else chance.getrandbits(8),
        chance.getrandbits(8),
        0,
    )
    body_bytes = 0 if kind == wire.Kind.MISMATCH else VALUE_BYTES * aim.lanes
    return bytes(header) + pooled + chance.randbytes(body_bytes)

"""The payloads that an outsider forges for systems whose jobs share all slots: contributions and
results in the format of README.md."""

from __future__ import annotations

import struct

from agglab.hosts.wire import VALUE_BYTES
from agglab.systems.pooling import wire
from agglab.systems.pooling.job import PoolingJob
from agglab.testbed.systems.summing.attack import AttackContext

POOLED = struct.Struct("!IIIIBBH")
SESSIONS = 3


def forge(context: AttackContext, job: PoolingJob, result: int, overhead: int) -> bytes:
    """Returns a payload (see summing.attack.Forge). It has no values if there is no room for them.
    job: the victim's job."""
    chance, is_float = context.chance, context.victim.dtype == "float32"
    values = wire.Kind.SCALED if is_float else wire.Kind.INT32
    kind = values if context.aims() else chance.choice(list(wire.Kind))
    if kind != wire.Kind.MISMATCH and not context.fits(
        wire.datagram_bytes(context.lanes), overhead
    ):
        kind = wire.Kind.MISMATCH
    header = bytearray(context.header(kind | result))
    header[6] = 0  # exponent
    digest = (
        job.digest(context.victim.elements, is_float) if context.aims() else chance.getrandbits(32)
    )
    pooled = POOLED.pack(
        chance.randrange(1, SESSIONS),
        digest,
        chance.getrandbits(8),
        chance.getrandbits(job.workers),
        chance.getrandbits(4) if context.aims() else chance.getrandbits(8),
        chance.getrandbits(8),
        0,
    )
    body_bytes = 0 if kind == wire.Kind.MISMATCH else VALUE_BYTES * context.lanes
    return bytes(header) + pooled + chance.randbytes(body_bytes)

"""The payloads that an outsider forges: contributions and results of this system's format."""

from __future__ import annotations

import struct

from agglab.hosts.systems.omnireduce import wire
from agglab.hosts.wire import SHAPE_BYTES, VALUE_BYTES
from agglab.testbed.systems.summing.attack import Aim

COLUMN = struct.Struct("!II")
BARE_ONE_IN = 3


def forge(aim: Aim, result: int, overhead: int) -> bytes:
    """See summing.attack.Forge; without values if there is no room."""
    chance, lanes = aim.chance, aim.lanes
    values = wire.Kind.INT32 if aim.victim.dtype == "int32" else wire.Kind.SCALED
    kind = int(values if aim.aims() else chance.choice(list(wire.Kind)))
    body_bytes = 2 * SHAPE_BYTES if kind == wire.Kind.OPENING else VALUE_BYTES * lanes
    if kind != wire.Kind.OPENING and (
        chance.randrange(BARE_ONE_IN) == 0 or not aim.fits(wire.HEADER_BYTES + body_bytes, overhead)
    ):
        kind, body_bytes = kind | wire.BARE, 0
    header = aim.header(kind | result)
    blocks = -(-aim.victim.elements // lanes)
    column = COLUMN.pack(*(chance.choice((chance.randrange(blocks), wire.NO_BLOCK)) for _ in "bn"))
    return header + column + chance.randbytes(body_bytes)

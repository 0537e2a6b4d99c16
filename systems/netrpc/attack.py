"""The payloads that an outsider forges: calls and answers of NetRPC."""

from __future__ import annotations

import struct

from agglab.systems.netrpc import wire
from agglab.systems.netrpc.wire import Kind
from agglab.testbed.systems.summing.attack import AttackContext

CALL = struct.Struct("!IHH")
METHODS_AIMED_AT = 4
KINDS = (Kind.NOTHING, Kind.ARRAY, Kind.MAP)


def forge(context: AttackContext, result: int, overhead: int) -> bytes:
    """Returns a payload (see summing.attack.Forge). It has no argument if there is no room for
    one."""
    chance = context.chance
    kind = Kind.ARRAY if context.aims() else chance.choice(KINDS)
    size = wire.body_bytes(kind, context.lanes)
    if not context.fits(wire.HEADER_BYTES + size, overhead):
        kind, size = Kind.NOTHING, 0
    method = chance.randrange(METHODS_AIMED_AT if context.aims() else 1 << 16)
    call = CALL.pack(chance.choice((0, 1, chance.randrange(1 << 32))), method, 0)
    return context.header(kind | result) + call + chance.randbytes(size)

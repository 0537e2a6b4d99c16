"""The payloads that an outsider forges: contributions and results in OmniReduce's format."""

from __future__ import annotations

import struct

from agglab.hosts.wire import SHAPE_BYTES, VALUE_BYTES
from agglab.systems.omnireduce import wire
from agglab.testbed.systems.summing.attack import AttackContext

COLUMN = struct.Struct("!II")
BARE_ONE_IN, FUSED_ONE_IN, ENTRIES = 3, 3, 4


def forge(context: AttackContext, result: int, overhead: int) -> bytes:
    """Returns a payload (see summing.attack.Forge). It has no values if there is no room for
    them."""
    chance, lanes = context.chance, context.lanes
    values = wire.Kind.INT32 if context.victim.dtype == "int32" else wire.Kind.SCALED
    kind = int(values if context.aims() else chance.choice(list(wire.Kind)))
    body_bytes = 2 * SHAPE_BYTES if kind == wire.Kind.OPENING else VALUE_BYTES * lanes
    if kind != wire.Kind.OPENING and (
        chance.randrange(BARE_ONE_IN) == 0
        or not context.fits(wire.HEADER_BYTES + body_bytes, overhead)
    ):
        kind, body_bytes = kind | wire.BARE, 0
    entries_bytes = _entries_bytes(context, wire.HEADER_BYTES + body_bytes, overhead)
    header = context.header(kind | result | (wire.FUSED if entries_bytes else 0))
    blocks = -(-context.victim.elements // lanes)
    column = COLUMN.pack(*(chance.choice((chance.randrange(blocks), wire.NO_BLOCK)) for _ in "bn"))
    return header + column + chance.randbytes(body_bytes + entries_bytes)


def _entries_bytes(context: AttackContext, alone_bytes: int, overhead: int) -> int:
    """Returns the length of forged entries; 0 for none."""
    size = wire.ENTRY_BYTES * context.chance.randint(1, ENTRIES)
    is_fused = context.chance.randrange(FUSED_ONE_IN) == 0 and context.fits(
        alone_bytes + size, overhead
    )
    return size if is_fused else 0

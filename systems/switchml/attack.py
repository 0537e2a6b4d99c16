"""The payloads that an outsider forges: contributions and results in SwitchML's format."""

from __future__ import annotations

from agglab.hosts import wire
from agglab.hosts.bfloat16 import dtype_of
from agglab.hosts.slots import KINDS
from agglab.testbed.systems.summing.attack import AttackContext


def forge(
    context: AttackContext,
    result: int,
    overhead: int,
    wire_bits: int | None = None,
    with_presence: bool = False,
) -> bytes:
    """Returns a payload (see summing.attack.Forge), without values if there is no room. wire_bits:
    the bits of a value in the victim's contributions if they are narrow. with_presence: whether the
    victim's packets say who is in a sum."""
    values = KINDS[dtype_of(context.victim.dtype)]
    if wire_bits is not None and not result:  # the program takes both kinds of contributions
        values = context.chance.choice((values, wire.NARROW[wire_bits]))
    kind = values if context.aims() else context.chance.choice(list(wire.Kind))
    more = wire.PRESENCE_BYTES if with_presence else 0
    if not context.fits(wire.datagram_bytes(context.lanes), overhead + more):
        kind = wire.Kind.OPENING
    header = context.header(kind | result)
    if with_presence:
        header = bytes([wire.VERSION_WITH_PRESENCE]) + header[1:]
    return header + context.chance.randbytes(more + _body_bytes(kind, context.lanes))


def _body_bytes(kind: wire.Kind, lanes: int) -> int:
    if kind == wire.Kind.OPENING:
        return 2 * wire.SHAPE_BYTES
    whole = wire.narrow_datagram_bytes if kind in wire.NARROW.values() else wire.datagram_bytes
    return whole(lanes) - wire.HEADER_BYTES

"""The payloads that an outsider forges: contributions and results in SwitchML's format."""

from __future__ import annotations

import numpy as np

from agglab.hosts import wire
from agglab.hosts.slots import KINDS
from agglab.testbed.systems.summing.attack import Aim


def forge(aim: Aim, result: int, overhead: int) -> bytes:
    """Returns a payload (see summing.attack.Forge). It has no values if there is no room for
    them."""
    values = KINDS[np.dtype(aim.victim.dtype)]
    kind = values if aim.aims() else aim.chance.choice(list(wire.Kind))
    if not aim.fits(wire.datagram_bytes(aim.lanes), overhead):
        kind = wire.Kind.OPENING
    opening = kind == wire.Kind.OPENING
    body_bytes = 2 * wire.SHAPE_BYTES if opening else wire.VALUE_BYTES * aim.lanes
    return aim.header(kind | result) + aim.chance.randbytes(body_bytes)

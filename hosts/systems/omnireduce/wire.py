"""The wire format of docs/systems/omnireduce.md, written down once. Imports other formats only."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats, wire
from agglab.hosts.wire import LOWER_HEADER_BYTES, RESULT, SHAPE_BYTES, VALUE_BYTES, VERSION

BARE = 0x40
"""The bit of `kind` that says: headers alone, for a block in which the sender has nothing."""
NO_BLOCK = 2**32 - 1
"""`next` where no block follows in the column."""


class Kind(enum.IntEnum):
    """What a packet is, but for its bits `RESULT` and `BARE`. The numbers are no other system's."""

    INT32 = 0x30
    SCALED = 0x31
    OPENING = 0x32


COLUMN = np.dtype([("block", ">u4"), ("next", ">u4")])
"""Which block a packet is about (0 in an `OPENING`), and the next that its sender has in the
column."""
HEADER = np.dtype([(name, wire.HEADER[name]) for name in wire.HEADER.names or ()] + COLUMN.descr)
"""The aggregation header of hosts/wire.py, and the column."""

HEADER_BYTES = HEADER.itemsize
OPENING_BYTES = HEADER_BYTES + 2 * SHAPE_BYTES
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def longest_datagram_bytes(lanes: int) -> int:
    """Length of the longest legal UDP payload."""
    return max(HEADER_BYTES + VALUE_BYTES * lanes, OPENING_BYTES)


def c_header() -> str:
    """The format as C."""
    constants = {
        "OMNIREDUCE_VERSION": VERSION,
        "OMNIREDUCE_RESULT": RESULT,
        "OMNIREDUCE_BARE": BARE,
        **{f"OMNIREDUCE_{kind.name}": kind.value for kind in Kind},
        "OMNIREDUCE_HEADER_BYTES": HEADER_BYTES,
        "OMNIREDUCE_SHAPE_BYTES": SHAPE_BYTES,
        "OMNIREDUCE_LOWER_HEADER_BYTES": LOWER_HEADER_BYTES,
    }
    struct = formats.c_struct("omnireduce_header", HEADER)
    source, guard = "hosts/systems/omnireduce/wire.py", "AGGLAB_OMNIREDUCE_WIRE_H"
    return formats.c_header(source, guard, constants, struct)

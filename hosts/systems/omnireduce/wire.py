"""The wire format of docs/systems/omnireduce.md, written down once. Imports other formats only."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats, wire
from agglab.hosts.wire import LOWER_HEADER_BYTES, RESULT, SHAPE_BYTES, VALUE_BYTES, VERSION

BARE = 0x40
"""The bit of `kind` that says: headers alone, for a block in which the sender has nothing."""
FUSED = 0x08
"""The bit of `kind` that says: entries of other columns stand behind the packet."""
NO_BLOCK = 2**32 - 1
"""`next` where no block follows in the column."""
NOTHING_AHEAD = 2**16 - 1
"""`ahead` where no block follows in the column."""
ENTRIES_MAX = 20
"""Behind one packet."""


class Kind(enum.IntEnum):
    """The kinds of packet, without the bits `RESULT`, `BARE` and `FUSED`. No other system uses
    these numbers."""

    INT32 = 0x30
    SCALED = 0x31
    OPENING = 0x32


COLUMN = np.dtype([("block", ">u4"), ("next", ">u4")])
"""The block that a packet carries (0 in an `OPENING`), and the next block that its sender has in
the column."""
HEADER = np.dtype([(name, wire.HEADER[name]) for name in wire.HEADER.names or ()] + COLUMN.descr)
"""The aggregation header of hosts/wire.py, and the column."""

ENTRY = np.dtype(
    [("slot", ">u2"), ("tag", ">u4"), ("block", ">u4"), ("ahead", ">u2"), ("exponent", "u1")]
)
"""The entry of one more column in a fused packet. ahead: how far beyond `block` the sender's next
is."""

HEADER_BYTES = HEADER.itemsize
ENTRY_BYTES = ENTRY.itemsize
OPENING_BYTES = HEADER_BYTES + 2 * SHAPE_BYTES
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def full_bytes(lanes: int) -> int:
    """Length of a UDP payload with values, without entries."""
    return HEADER_BYTES + VALUE_BYTES * lanes


def longest_datagram_bytes(lanes: int, most: int = 0) -> int:
    """Length of the longest UDP payload that a worker sends or hears, entries included. most: how
    long it may be if a packet without entries is no longer; 0 for no such limit."""
    alone = max(full_bytes(lanes), OPENING_BYTES)
    fused = alone + ENTRIES_MAX * ENTRY_BYTES
    return max(alone, min(fused, most)) if most else fused


def entries_behind(longest_bytes: int, alone_bytes: int) -> int:
    """Returns how many entries fit behind a packet with so many bytes of UDP payload."""
    return min(ENTRIES_MAX, (longest_bytes - alone_bytes) // ENTRY_BYTES)


def c_header() -> str:
    """The format as C."""
    constants = {
        "OMNIREDUCE_VERSION": VERSION,
        "OMNIREDUCE_RESULT": RESULT,
        "OMNIREDUCE_BARE": BARE,
        "OMNIREDUCE_FUSED": FUSED,
        "OMNIREDUCE_NOTHING_AHEAD": NOTHING_AHEAD,
        **{f"OMNIREDUCE_{kind.name}": kind.value for kind in Kind},
        "OMNIREDUCE_HEADER_BYTES": HEADER_BYTES,
        "OMNIREDUCE_ENTRY_BYTES": ENTRY_BYTES,
        "OMNIREDUCE_LOWER_HEADER_BYTES": LOWER_HEADER_BYTES,
    }
    struct = "\n".join(
        formats.c_struct(f"omnireduce_{name}", layout)
        for name, layout in (("header", HEADER), ("entry", ENTRY))
    )
    source, guard = "hosts/systems/omnireduce/wire.py", "AGGLAB_OMNIREDUCE_WIRE_H"
    return formats.c_header(source, guard, constants, struct)

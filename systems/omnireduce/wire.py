"""The wire format that README.md describes. It is defined only in this module,
which imports only formats.py and wire.py from `hosts`."""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import formats, wire
from agglab.hosts.wire import RESULT, SHAPE_BYTES, VALUE_BYTES, VERSION

BARE = 0x40
"""The bit of `kind` of a packet that has only headers, because its sender has nothing in the
block."""
FUSED = 0x08
"""The bit of `kind` of a packet that is followed by entries of other columns."""
NO_BLOCK = 2**32 - 1
"""The value of `next` if no block follows in the column."""
NOTHING_AHEAD = 2**16 - 1
"""The value of `ahead` if no block follows in the column."""
ENTRIES_MAX = 20
"""The largest number of entries behind one packet."""


class Kind(enum.IntEnum):
    """The kinds of packet, without the bits `RESULT`, `BARE` and `FUSED`. The numbers differ from
    those of all other systems."""

    INT32 = 0x30
    SCALED = 0x31
    OPENING = 0x32


COLUMN = np.dtype([("block", ">u4"), ("next", ">u4")])
"""block: the block that a packet carries (0 in an `OPENING`). next: the next block that its sender
has in the column."""
HEADER = np.dtype([(name, wire.HEADER[name]) for name in wire.HEADER.names or ()] + COLUMN.descr)
"""The aggregation header of hosts/wire.py, followed by COLUMN."""

ENTRY = np.dtype(
    [("slot", ">u2"), ("tag", ">u4"), ("block", ">u4"), ("ahead", ">u2"), ("exponent", "u1")]
)
"""The entry of another column in a fused packet. ahead: the distance from `block` to the sender's
next block in the column."""

HEADER_BYTES = HEADER.itemsize
ENTRY_BYTES = ENTRY.itemsize
OPENING_BYTES = HEADER_BYTES + 2 * SHAPE_BYTES
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def full_bytes(lanes: int) -> int:
    """Returns the length of the UDP payload of a packet that has values and no entries."""
    return HEADER_BYTES + VALUE_BYTES * lanes


def longest_datagram_bytes(lanes: int, most: int = 0) -> int:
    """Returns the length of the longest UDP payload, including entries, that a worker sends or
    receives. most: a limit for this length, or 0 for no limit. A packet without entries may exceed
    the limit."""
    alone = max(full_bytes(lanes), OPENING_BYTES)
    fused = alone + ENTRIES_MAX * ENTRY_BYTES
    return max(alone, min(fused, most)) if most else fused


def entries_behind(longest_bytes: int, alone_bytes: int) -> int:
    """Returns how many entries fit behind a packet. alone_bytes: the length of its UDP payload
    without entries."""
    return min(ENTRIES_MAX, (longest_bytes - alone_bytes) // ENTRY_BYTES)


def entries(datagram: bytes, lanes: int) -> NDArray[np.void]:
    """Returns the complete entries of a fused packet, as an array of ENTRY. It is empty if the
    packet is not fused or is shorter than its header says. lanes: as in the sender's job."""
    is_whole = len(datagram) >= HEADER_BYTES
    kind = int(np.frombuffer(datagram, HEADER, 1)["kind"][0]) if is_whole else 0
    begin = HEADER_BYTES if kind & BARE else full_bytes(lanes)
    if kind & ~FUSED == Kind.OPENING:
        begin = OPENING_BYTES
    count = max(0, len(datagram) - begin) // ENTRY_BYTES if kind & FUSED else 0
    return np.frombuffer(datagram[begin:], ENTRY, count) if count else np.zeros(0, ENTRY)


def c_header() -> str:
    """Returns the text of a C header with the constants and structures of the format."""
    constants = {
        "OMNIREDUCE_VERSION": VERSION,
        "OMNIREDUCE_RESULT": RESULT,
        "OMNIREDUCE_BARE": BARE,
        "OMNIREDUCE_FUSED": FUSED,
        "OMNIREDUCE_NOTHING_AHEAD": NOTHING_AHEAD,
        **{f"OMNIREDUCE_{kind.name}": kind.value for kind in Kind},
        "OMNIREDUCE_HEADER_BYTES": HEADER_BYTES,
        "OMNIREDUCE_ENTRY_BYTES": ENTRY_BYTES,
    }
    struct = "\n".join(
        formats.c_struct(f"omnireduce_{name}", layout)
        for name, layout in (("header", HEADER), ("entry", ENTRY))
    )
    source, guard = "systems/omnireduce/wire.py", "AGGLAB_OMNIREDUCE_WIRE_H"
    return formats.c_header(source, guard, constants, struct)

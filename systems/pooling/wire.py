"""The wire format that README.md describes. It is defined only in this module, which imports
only formats.py and wire.py from `hosts`."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats
from agglab.hosts import wire as base
from agglab.hosts.wire import LOWER_HEADER_BYTES, RESULT, VALUE_BYTES, VERSION


class Kind(enum.IntEnum):
    """The kinds of packet, without the bit `RESULT`. The numbers differ from those of all other
    systems."""

    INT32 = 0x50
    SCALED = 0x51
    FLOAT32 = 0x52
    MISMATCH = 0x53


class Flag(enum.IntFlag):
    """The bits of the field `flags`."""

    RESEND = 0x01
    COLLISION = 0x02
    OVERFLOW = 0x04
    CONGESTED = 0x08
    EVICTED = 0x10


POOLED = np.dtype(
    [
        ("session", ">u4"),
        ("digest", ">u4"),
        ("oldest", ">u4"),
        ("members", ">u4"),
        ("flags", "u1"),
        ("priority", "u1"),
        ("zero", ">u2"),
    ]
)
"""The fields that follow the header of docs/protocol.md."""

HEADER = np.dtype(
    [(name, record[name]) for record in (base.HEADER, POOLED) for name in record.names or ()]
)
"""The whole header. `lanes` values of four bytes follow it, and nothing in a MISMATCH."""

HEADER_BYTES = HEADER.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES
MAX_WORKERS = 32
"""The largest number of workers: `members` has a bit for each."""


def datagram_bytes(lanes: int) -> int:
    """Returns the length of the UDP payload of a packet that carries values."""
    return HEADER_BYTES + VALUE_BYTES * lanes


def frame_bytes(lanes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, of a packet that carries
    values."""
    return LOWER_HEADER_BYTES + datagram_bytes(lanes)


def c_header() -> str:
    """Returns the text of a C header with the constants and structures of the format."""
    constants = {
        "POOLING_VERSION": VERSION,
        "POOLING_RESULT": RESULT,
        **{f"POOLING_{kind.name}": kind.value for kind in Kind},
        **{f"POOLING_{flag.name}": flag.value for flag in Flag},
        "POOLING_HEADER_BYTES": HEADER_BYTES,
    }
    struct = formats.c_struct("pooling_header", HEADER)
    return formats.c_header("systems/pooling/wire.py", "AGGLAB_POOLING_WIRE_H", constants, struct)

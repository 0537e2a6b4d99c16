"""The wire format that README.md describes. It is defined only in this module, which
imports only formats.py and wire.py from `hosts`."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats
from agglab.hosts.wire import LOWER_HEADER_BYTES, VALUE_BYTES

VERSION = 1


class Kind(enum.IntEnum):
    """The kinds of packet. The numbers differ from those of all other systems."""

    PUSH_INT32 = 0x20
    PUSH_FLOAT32 = 0x21
    RESULT = 0x22
    MISMATCH = 0x23


HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),
        ("job", ">u2"),
        ("session", ">u4"),
        ("digest", ">u4"),
        ("round", ">u2"),
        ("attempt", "u1"),
        ("zero", "u1"),
        ("chunk", ">u4"),
        ("chunks", ">u4"),
    ]
)
"""The header. `lanes` values of four bytes follow in a push and in a RESULT, and nothing in a
MISMATCH.

digest: the digest of the sender's shape. attempt: how often the push was sent before; in a RESULT,
the attempt of the push that made the server send it. chunks: the number of chunks of the round; in
a MISMATCH, the digest that differs.
"""

HEADER_BYTES = HEADER.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def datagram_bytes(lanes: int) -> int:
    """Returns the length of the UDP payload of a push, which is also that of a result."""
    return HEADER_BYTES + VALUE_BYTES * lanes


def frame_bytes(lanes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, of a push, which is also that
    of a result."""
    return LOWER_HEADER_BYTES + datagram_bytes(lanes)


def c_header() -> str:
    """Returns the text of a C header with the constants and structures of the format."""
    constants = {
        "PS_VERSION": VERSION,
        **{f"PS_{kind.name}": kind.value for kind in Kind},
        "PS_HEADER_BYTES": HEADER_BYTES,
    }
    struct = formats.c_struct("ps_header", HEADER)
    return formats.c_header("systems/ps/wire.py", "AGGLAB_PS_WIRE_H", constants, struct)

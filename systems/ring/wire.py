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

    DATA = 0x10
    ACKNOWLEDGEMENT = 0x11
    MISMATCH = 0x12


HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),
        ("job", ">u2"),
        ("session", ">u4"),
        ("digest", ">u4"),
        ("round", ">u2"),
        ("attempt", "u1"),
        ("delay", "u1"),
        ("sequence", ">u4"),
        ("cumulative", ">u4"),
    ]
)
"""The header. In DATA, `lanes` values of four bytes follow. In an ACKNOWLEDGEMENT, a bitmap of
whole 64-bit words follows: bit b of byte i stands for packet `cumulative` + 8 i + b. In a MISMATCH,
nothing follows.

digest: the digest of the sender's shape. sequence: in an ACKNOWLEDGEMENT, the packet that came
last. attempt: how often DATA was sent before; in an ACKNOWLEDGEMENT, the attempt of packet
`sequence`. delay: for how long an ACKNOWLEDGEMENT was held back. cumulative: all packets with a
lower number came; in a MISMATCH, the digest that differs.
"""

HEADER_BYTES = HEADER.itemsize
DELAY_UNIT_NS = 8192
MAX_WINDOW = 4096
"""The largest window. Its bitmap fits into the smallest packet that every IPv4 network carries."""
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def datagram_bytes(lanes: int) -> int:
    """Returns the length of the UDP payload of a DATA packet."""
    return HEADER_BYTES + VALUE_BYTES * lanes


def acknowledgement_bytes(window: int) -> int:
    """Returns the length of the longest UDP payload of an ACKNOWLEDGEMENT packet."""
    return HEADER_BYTES + 8 * -(-window // 64)


def frame_bytes(lanes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, of a DATA packet."""
    return LOWER_HEADER_BYTES + datagram_bytes(lanes)


def c_header() -> str:
    """Returns the text of a C header with the constants and structures of the format."""
    constants = {
        "RING_VERSION": VERSION,
        **{f"RING_{kind.name}": kind.value for kind in Kind},
        "RING_HEADER_BYTES": HEADER_BYTES,
        "RING_DELAY_UNIT_NS": DELAY_UNIT_NS,
    }
    struct = formats.c_struct("ring_header", HEADER)
    return formats.c_header("systems/ring/wire.py", "AGGLAB_RING_WIRE_H", constants, struct)

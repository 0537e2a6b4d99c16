"""The wire format that README.md describes. It is defined only in this module, which
imports only formats.py and wire.py from `hosts`."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats
from agglab.hosts.wire import LOWER_HEADER_BYTES, VALUE_BYTES

VERSION = 1
KEY_BYTES = 8
PAIR_BYTES = KEY_BYTES + VALUE_BYTES
NO_KEY = 2**64 - 1
"""The key that fills a group with fewer keys than lanes. No worker may push it."""


class Kind(enum.IntEnum):
    """The kinds of packet. The numbers differ from those of all other systems."""

    HOT = 0x60
    PUSH = 0x61
    PULL = 0x62
    LEARN = 0x63
    SUM = 0x64
    HOT_RESULT = 0x68
    PUSH_ANSWER = 0x69
    PULL_RESULT = 0x6A
    HOT_KEYS = 0x6B
    MISMATCH = 0x6C


FIRST_ANSWER = Kind.HOT_RESULT
"""The lowest kind of an answer. Packets of workers have lower kinds."""

HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),
        ("job", ">u2"),
        ("session", ">u4"),
        ("round", ">u4"),
        ("digest", ">u4"),
        ("item", ">u4"),
        ("items", ">u4"),
        ("pairs", ">u2"),
        ("server", "u1"),
        ("attempt", "u1"),
        ("workers", ">u8"),
    ]
)
"""The header.

items: the number of packets of this kind from one worker to one server in one round. item: which of
them this is. For LEARN, the first answer says how many there are. pairs: the number of keys, of
values, or of both that follow. server: the server to which these belong. attempt: how often the
request was sent before; in an answer, the attempt of the request. workers: in a SUM, a bit for each
rank whose values are in it; in an answer, a bit for each rank for which it is; otherwise 0. digest:
of everything on which all agents have to agree; in a MISMATCH, the digest that differs from the
receiver's.

In a HOT, a SUM and a PUSH, `pairs` keys of 8 bytes and then `pairs` values of 4 bytes follow. In a
HOT_RESULT and a PULL_RESULT only values follow, in HOT_KEYS only keys, and in all others nothing. A
HOT, a SUM and a HOT_RESULT have as many pairs as there are lanes.
"""

HEADER_BYTES = HEADER.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES) // PAIR_BYTES
MAX_WORKERS = 64
MAX_SERVERS = 255


def pairs_bytes(pairs: int) -> int:
    """Returns the length of an Ethernet frame, without its checksum, that carries `pairs` keys with
    their values."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + PAIR_BYTES * pairs


def values_bytes(pairs: int) -> int:
    """Returns the length of an Ethernet frame, without its checksum, that carries `pairs`
    values."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + VALUE_BYTES * pairs


def keys_bytes(pairs: int) -> int:
    """Returns the length of an Ethernet frame, without its checksum, that carries `pairs` keys."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + KEY_BYTES * pairs


BARE_BYTES = LOWER_HEADER_BYTES + HEADER_BYTES
"""The length of an Ethernet frame, without its checksum, without keys and values."""


def datagram_bytes(lanes: int) -> int:
    """Returns the length of the longest UDP payload."""
    return HEADER_BYTES + PAIR_BYTES * lanes


def c_header() -> str:
    """Returns the text of a C header with the constants and structures of the format."""
    constants = {
        "LIBRA_VERSION": VERSION,
        **{f"LIBRA_{kind.name}": kind.value for kind in Kind},
        "LIBRA_HEADER_BYTES": HEADER_BYTES,
    }
    struct = formats.c_struct("libra_header", HEADER)
    return formats.c_header("systems/libra/wire.py", "AGGLAB_LIBRA_WIRE_H", constants, struct)

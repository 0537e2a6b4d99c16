"""The wire format of docs/systems/libra.md, written down once. Imports the other formats only."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats
from agglab.hosts.wire import LOWER_HEADER_BYTES, VALUE_BYTES

VERSION = 1
KEY_BYTES = 8
PAIR_BYTES = KEY_BYTES + VALUE_BYTES
NO_KEY = 2**64 - 1
"""The key that fills up a group with fewer keys than lanes. No worker may push it."""


class Kind(enum.IntEnum):
    """The kinds of packet. No other system uses these numbers."""

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
"""Packets of workers have a kind below this one; packets of servers have this one or one above."""

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
"""item, items: which of how many packets of this kind, of one worker for one server in one round;
of LEARN the first answer says how many there are. pairs: how many keys, values or both follow.
server: whose they are. attempt: how often the request was sent before; in an answer that of the
request that it answers. workers: in a SUM, a bit for each rank whose values are in it; in an answer
a bit for each rank that it is for; otherwise 0. digest: of what all have to agree on; in a MISMATCH
of what the receiver does not agree with.

`pairs` keys of 8 bytes and then `pairs` values of 4 follow in a HOT, a SUM and a PUSH; values alone
in a HOT_RESULT and a PULL_RESULT; keys alone in HOT_KEYS; nothing in all others. A HOT, a SUM and a
HOT_RESULT have as many pairs as there are lanes."""

HEADER_BYTES = HEADER.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES) // PAIR_BYTES
MAX_WORKERS = 64
MAX_SERVERS = 255


def pairs_bytes(pairs: int) -> int:
    """Length of the Ethernet frame, without its checksum, of so many keys with their values."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + PAIR_BYTES * pairs


def values_bytes(pairs: int) -> int:
    """Likewise of values alone."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + VALUE_BYTES * pairs


def keys_bytes(pairs: int) -> int:
    """Likewise of keys alone."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + KEY_BYTES * pairs


BARE_BYTES = LOWER_HEADER_BYTES + HEADER_BYTES
"""Length of a frame without keys and values."""


def datagram_bytes(lanes: int) -> int:
    """Length of the longest UDP payload."""
    return HEADER_BYTES + PAIR_BYTES * lanes


def c_header() -> str:
    """The format as C."""
    constants = {
        "LIBRA_VERSION": VERSION,
        **{f"LIBRA_{kind.name}": kind.value for kind in Kind},
        "LIBRA_HEADER_BYTES": HEADER_BYTES,
        "LIBRA_LOWER_HEADER_BYTES": LOWER_HEADER_BYTES,
    }
    struct = formats.c_struct("libra_header", HEADER)
    return formats.c_header("hosts/systems/libra/wire.py", "AGGLAB_LIBRA_WIRE_H", constants, struct)

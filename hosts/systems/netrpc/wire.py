"""The wire format of docs/systems/netrpc.md, written down once. Imports other formats only."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats, wire
from agglab.hosts.wire import LOWER_HEADER_BYTES, RESULT, VALUE_BYTES, VERSION

POSITIONS = 256
"""Of a caller's window, at most."""
PAIRS = 32
"""Places of a map that one packet names."""
NO_PLACE = 0xFFFF
"""The place of a pair that is not used."""
KEPT = 0xFFFF_FFFF
"""The place of a key that the server keeps."""
COUNT_MAX = 0xFFFF
"""Where a counter stops."""


class Kind(enum.IntEnum):
    """What follows the headers of a packet, but for the bit `RESULT`. The numbers are no other
    system's. KEYS travel between a worker and a server, and never concern a switch."""

    NOTHING = 0x40
    ARRAY = 0x41
    MAP = 0x42
    KEYS = 0x43


CALL = np.dtype([("epoch", ">u4"), ("method", ">u2"), ("count", ">u2")])
"""Of which epoch the state is that a call is about, what is called, and (in an answer) what the
counter stood at."""
HEADER = np.dtype([(name, wire.HEADER[name]) for name in wire.HEADER.names or ()] + CALL.descr)
"""The aggregation header of hosts/wire.py, and the call. `slot` is the call's position in its
caller's window, `exponent` its word, `tag` its sequence number at this position."""
PAIR = np.dtype([("place", ">u2"), ("value", ">u4")])
"""What an argument of kind MAP has `PAIRS` of."""
KEY = np.dtype([("key", ">u8"), ("value", ">u4"), ("place", ">u4")])
"""What an argument of kind KEYS has `PAIRS` of; `place` is which of the map's places the key has,
or KEPT if the server keeps it."""

HEADER_BYTES = HEADER.itemsize
MAP_BYTES = PAIRS * PAIR.itemsize
KEYS_BYTES = PAIRS * KEY.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def longest_datagram_bytes(lanes: int) -> int:
    """Length of the longest legal UDP payload of any kind."""
    return HEADER_BYTES + max(VALUE_BYTES * lanes, KEYS_BYTES)


def body_bytes(kind: Kind, lanes: int) -> int:
    """What follows the headers of a packet of a kind."""
    if kind == Kind.ARRAY:
        return VALUE_BYTES * lanes
    return {Kind.NOTHING: 0, Kind.MAP: MAP_BYTES, Kind.KEYS: KEYS_BYTES}[kind]


def frame_bytes(kind: Kind, lanes: int) -> int:
    """Length of the Ethernet frame, without its checksum, of a packet of a kind."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + body_bytes(kind, lanes)


def c_header() -> str:
    """The format as C."""
    constants = {
        "NETRPC_VERSION": VERSION,
        "NETRPC_RESULT": RESULT,
        **{f"NETRPC_{kind.name}": kind.value for kind in Kind},
        "NETRPC_HEADER_BYTES": HEADER_BYTES,
        "NETRPC_MAP_BYTES": MAP_BYTES,
        "NETRPC_KEYS_BYTES": KEYS_BYTES,
        "NETRPC_LOWER_HEADER_BYTES": LOWER_HEADER_BYTES,
    }
    struct = formats.c_struct("netrpc_header", HEADER)
    source, guard = "hosts/systems/netrpc/wire.py", "AGGLAB_NETRPC_WIRE_H"
    return formats.c_header(source, guard, constants, struct)

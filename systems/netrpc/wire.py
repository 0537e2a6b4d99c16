"""The wire format that README.md describes. It is defined only in this module, which
imports only formats.py and wire.py from `hosts`."""

from __future__ import annotations

import enum

import numpy as np

from agglab.hosts import formats, wire
from agglab.hosts.wire import LOWER_HEADER_BYTES, RESULT, VALUE_BYTES, VERSION

POSITIONS = 256
"""The largest number of positions in a caller's window."""
PAIRS = 32
"""The number of places of a map that one packet names."""
NO_PLACE = 0xFFFF
"""The place of an unused pair."""
KEPT = 0xFFFF_FFFF
"""The place of a key that the server keeps."""
COUNT_MAX = 0xFFFF
"""The value at which a counter stops."""


class Kind(enum.IntEnum):
    """The kinds of data that follow the headers of a packet, without the bit `RESULT`. The numbers
    differ from those of all other systems. Packets of kind KEYS travel between a worker and a
    server; switches only forward them."""

    NOTHING = 0x40
    ARRAY = 0x41
    MAP = 0x42
    KEYS = 0x43


CALL = np.dtype([("epoch", ">u4"), ("method", ">u2"), ("count", ">u2")])
"""epoch: the epoch of the switch's state to which the call refers; a new epoch begins with each
round. method: the called method. count: in an answer, the value of the counter."""
HEADER = np.dtype([(name, wire.HEADER[name]) for name in wire.HEADER.names or ()] + CALL.descr)
"""The aggregation header of hosts/wire.py, followed by CALL. `slot` is the call's position in its
caller's window, `exponent` is the call's word, and `tag` is its sequence number at this
position."""
PAIR = np.dtype([("place", ">u2"), ("value", ">u4")])
"""An entry of an argument of kind MAP, which has `PAIRS` entries."""
KEY = np.dtype([("key", ">u8"), ("value", ">u4"), ("place", ">u4")])
"""An entry of an argument of kind KEYS, which has `PAIRS` entries. `place` is the key's place in
the map, or KEPT if the server keeps the key."""

HEADER_BYTES = HEADER.itemsize
MAP_BYTES = PAIRS * PAIR.itemsize
KEYS_BYTES = PAIRS * KEY.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES


def longest_datagram_bytes(lanes: int) -> int:
    """Returns the length of the longest legal UDP payload of any kind."""
    return HEADER_BYTES + max(VALUE_BYTES * lanes, KEYS_BYTES)


def body_bytes(kind: Kind, lanes: int) -> int:
    """Returns the number of bytes that follow the headers of a packet of the given kind."""
    if kind == Kind.ARRAY:
        return VALUE_BYTES * lanes
    return {Kind.NOTHING: 0, Kind.MAP: MAP_BYTES, Kind.KEYS: KEYS_BYTES}[kind]


def frame_bytes(kind: Kind, lanes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, of a packet of this kind."""
    return LOWER_HEADER_BYTES + HEADER_BYTES + body_bytes(kind, lanes)


def c_header() -> str:
    """Returns the text of a C header with the constants and structures of the format."""
    constants = {
        "NETRPC_VERSION": VERSION,
        "NETRPC_RESULT": RESULT,
        **{f"NETRPC_{kind.name}": kind.value for kind in Kind},
        "NETRPC_HEADER_BYTES": HEADER_BYTES,
        "NETRPC_MAP_BYTES": MAP_BYTES,
        "NETRPC_KEYS_BYTES": KEYS_BYTES,
    }
    struct = formats.c_struct("netrpc_header", HEADER)
    source, guard = "systems/netrpc/wire.py", "AGGLAB_NETRPC_WIRE_H"
    return formats.c_header(source, guard, constants, struct)

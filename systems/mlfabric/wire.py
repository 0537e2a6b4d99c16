"""The wire format that README.md describes. It is defined only in this module, which
imports only wire.py from `hosts`."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import numpy as np

from agglab.hosts.wire import LOWER_HEADER_BYTES, VALUE_BYTES

VERSION = 1
CHUNKS_MAX = 256
MEMBERS_MAX = 8
"""The largest number of updates in one group."""
WORKERS_MAX = 32
"""The largest number of workers: a push has a bit for each."""


class Kind(enum.IntEnum):
    """The kinds of packet. The numbers differ from those of all other systems."""

    ACK = 0x48
    REQUEST = 0x49
    GRANT = 0x4A
    DROP = 0x4B
    PING = 0x4C
    IDLE = 0x4D
    PUSH = 0x54
    SUMMED = 0x55
    COMMIT = 0x56
    PULL = 0x57
    STATE = 0x58
    LOG = 0x59
    REPLICATED = 0x5A
    NEED = 0x5B
    PROMOTE = 0x5C
    PROMOTED = 0x5D
    SERVER = 0x5E
    OVER = 0x5F


class Reason(enum.IntEnum):
    """The reasons why the scheduler refuses an update, as a DROP states them."""

    STALE = 1
    LARGE = 2
    LOST = 3
    OVER = 4


HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),
        ("job", ">u2"),
        ("session", ">u4"),
        ("round", ">u2"),
        ("epoch", "u1"),
        ("attempt", "u1"),
        ("incarnation", ">u4"),
        ("number", ">u4"),
    ]
)
"""The header.

epoch: how many times another server had taken over, as far as the sender knows. incarnation: the
time at which the sender's program began. It distinguishes a program that was started again from the
program before. number: the number of the packet among all that the sender has sent to this
receiver; in an ACK, the number of the packet that it acknowledges; 0 in a SUMMED, which is not
acknowledged. attempt: how often the packet was sent before; in an ACK, the attempt of the
acknowledged packet.
"""

BITMAP = ("chunks", "u1", (CHUNKS_MAX // 8,))
"""The type of a bitmap with a bit for each chunk of the model. Chunk 0 is the lowest bit of the
first byte."""

PUSH = np.dtype(
    [
        ("group", ">u4"),
        ("members", ">u4"),
        ("present", ">u4"),
        ("cell", ">u2"),
        ("chunk", ">u2"),
    ]
)
"""The fields that follow the header of a PUSH or SUMMED. `lanes` values come after them. members:
the workers of the group whose values for the chunk are summed on the way, a bit for each rank; in a
PUSH only the sender. present: those members whose values are in the packet. cell: the cell of the
switch's memory."""

REQUEST = np.dtype([("step", ">u4"), ("read", ">u4"), ("norm", ">u8"), BITMAP])
"""The body of a REQUEST. read: the version of the model from which the update was computed. norm:
the norm of the update, rounded up."""

GRANT = np.dtype([("group", ">u4"), ("base", ">u4"), ("target", ">u2"), ("count", ">u2")])
"""The body of a GRANT, which `count` times ENTRY follows. base: the model's version before the
group is committed. target: the index of the server."""

ENTRY = np.dtype([("rank", ">u2"), ("spare", ">u2"), *REQUEST.descr])
"""One member of a group: the rank of its worker, and the REQUEST that was granted."""

DROP = np.dtype([("step", ">u4"), ("reason", ">u4")])

NUMBERS = np.dtype([("group", ">u4"), ("version", ">u4")])
"""The body of COMMIT, REPLICATED, PROMOTE, PROMOTED, SERVER and OVER. Fields that a kind does not
use are 0."""

PULL = np.dtype([("transfer", ">u4"), ("since", ">u4"), ("whole_log", ">u4")])
"""The body of a PULL. since: the version that the sender has. whole_log: 1 if the log is requested
too."""

PART = np.dtype(
    [
        ("transfer", ">u4"),
        ("version", ">u4"),
        ("since", ">u4"),
        ("part", ">u2"),
        ("parts", ">u2"),
        ("place", ">u4"),
    ]
)
"""The head of the body of STATE and LOG. Each of these packets is one of `parts` that together
bring a model from version `since` to `version`. In a STATE, place is the number of the chunk whose
`lanes` values follow. In a LOG, it is the number of the first of the log records that follow. A
transfer without changes has one LOG without records."""

RECORD = np.dtype(
    [
        ("version", ">u4"),
        ("read", ">u4"),
        ("at_ns", ">u8"),
        ("replicated", ">u4"),
        ("group", ">u4"),
        ("step", ">u4"),
        ("rank", ">u2"),
        ("epoch", ">u2"),
    ]
)
"""One update in a server's log: hosts/workloads/async_sgd.py, COMMIT. `replicated` is 2^32 - 1 if
there is no replica."""
NO_REPLICA = 2**32 - 1

NEED = np.dtype([("group", ">u4"), BITMAP])
"""The body of a NEED: the receiver is to send these chunks of its update to the server directly,
without the switch's memory."""

HEADER_BYTES = HEADER.itemsize
MAX_LANES = (65535 - 28 - HEADER_BYTES - PART.itemsize) // VALUE_BYTES
BODY_BYTES: Mapping[int, int] = {
    Kind.ACK: 0,
    Kind.REQUEST: REQUEST.itemsize,
    Kind.DROP: DROP.itemsize,
    Kind.COMMIT: NUMBERS.itemsize,
    Kind.PULL: PULL.itemsize,
    Kind.REPLICATED: NUMBERS.itemsize,
    Kind.NEED: NEED.itemsize,
    Kind.PROMOTE: NUMBERS.itemsize,
    Kind.PROMOTED: NUMBERS.itemsize,
    Kind.SERVER: NUMBERS.itemsize,
    Kind.OVER: NUMBERS.itemsize,
    Kind.PING: 0,
    Kind.IDLE: 0,
}
"""The length of the body, for each kind of packet that has only one length."""


def body_bytes(kind: int, lanes: int, count: int = 0) -> int:
    """Returns how many bytes follow the header of a packet. count: the number of members in a
    GRANT, or of updates in a LOG."""
    return {
        Kind.PUSH: PUSH.itemsize + VALUE_BYTES * lanes,
        Kind.SUMMED: PUSH.itemsize + VALUE_BYTES * lanes,
        Kind.STATE: PART.itemsize + VALUE_BYTES * lanes,
        Kind.LOG: PART.itemsize + RECORD.itemsize * count,
        Kind.GRANT: GRANT.itemsize + ENTRY.itemsize * count,
        **BODY_BYTES,
    }[kind]


def records_max(lanes: int) -> int:
    """Returns the largest number of records in a LOG: as many as fit in the room of the values, and
    at least one."""
    return max(1, VALUE_BYTES * lanes // RECORD.itemsize)


def longest_datagram_bytes(lanes: int) -> int:
    """Returns the length of the longest legal UDP payload."""
    values = PART.itemsize + max(VALUE_BYTES * lanes, records_max(lanes) * RECORD.itemsize)
    return HEADER_BYTES + max(values, GRANT.itemsize + MEMBERS_MAX * ENTRY.itemsize)


def is_of_legal_length(kind: int, body_bytes: int, lanes: int) -> bool:
    """Returns whether a packet of this kind may have `body_bytes` bytes after its header."""
    values = VALUE_BYTES * lanes
    if kind in (Kind.PUSH, Kind.SUMMED):
        return body_bytes == PUSH.itemsize + values
    if kind == Kind.STATE:
        return body_bytes == PART.itemsize + values
    if kind == Kind.LOG:
        count, rest = divmod(body_bytes - PART.itemsize, RECORD.itemsize)
        return rest == 0 and 0 <= count <= records_max(lanes)
    if kind == Kind.GRANT:
        count, rest = divmod(body_bytes - GRANT.itemsize, ENTRY.itemsize)
        return rest == 0 and 1 <= count <= MEMBERS_MAX
    return BODY_BYTES.get(kind) == body_bytes


def frame_bytes(payload_bytes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, that carries a UDP payload of
    `payload_bytes` bytes."""
    return LOWER_HEADER_BYTES + payload_bytes

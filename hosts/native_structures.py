"""The structures of the C code in `native/` that do not belong to another module, and the text of
the header with all of them, `structures.h`. This module imports only modules of `hosts` that
declare structures, and wire.py."""

from __future__ import annotations

import enum
from typing import Annotated

from agglab.hosts import formats, histogram, recovery, wire
from agglab.hosts.endpoint import OutboxColumns, Rows
from agglab.hosts.histogram import Histogram
from agglab.hosts.recovery import Pending, Recovery
from agglab.hosts.structures import (
    F64,
    I32,
    I64,
    U8,
    U32,
    U64,
    Pointer,
    ReadOnly,
    Structure,
    address,
    c_structs,
    repeated,
    structure,
)


class Step(enum.IntEnum):
    """What `drive_round` did when an error occurred."""

    POLLING = 0
    SENDING = 1
    RECEIVING = 2


@structure("endpoint")
class Head(Structure):
    """The beginning of the state of every endpoint whose step for each packet is in C
    (native/endpoint.h)."""

    # Takes datagrams. Returns how many were awaited.
    take: Annotated[
        int, address("uint32_t (*{})(struct endpoint *, int64_t now_ns, const struct rows *)")
    ]
    # Fills the queue with rows to send now. Returns how many, or a negative errno when the round
    # has failed.
    poll: Annotated[int, address("int (*{})(struct endpoint *, int64_t now_ns)")]
    outbox: OutboxColumns
    queue: Pointer[U32]  # rows of the outbox to send, in order
    pendings: Pointer[U8]  # what waits in each of the first rows: records that begin with a pending
    pending_stride: U64
    pending_rows: U32
    queued: U32
    recoveries: Pointer[Recovery]
    paths: Pointer[Pointer[Recovery]]
    recovery_count: U32
    path_count: U32
    attempt_offset: U32  # where a datagram says how often it was sent before
    rows_are_slots: U32  # a packet's row is its slot, and its tag follows its struct pending
    needs_python: U32  # the part in Python has to act (NativeEndpoint.act) before the next poll
    spare: U32
    deadline_ns: I64  # when to poll even if nothing came; the largest number for never
    done: U32  # the round is over for this agent, or none has begun
    error: U32  # the errno with which the round ends, or 0
    chunks: U32
    chunks_done: U32
    sent: U64  # packets; shared.COUNTERS says what each count means
    received: U64
    duplicates: U64
    late: U64
    malformed: U64
    bytes_sent: U64
    bytes_received: U64


@structure("coalescing")
class Coalescing(Structure):
    """An estimate of how long results should gather (native/coalescing.c)."""

    gap_ns: F64  # mean time from one result to the next
    last_ns: I64
    most_ns: I64
    buffer_packets: U32  # how many packets a full buffer holds; 1: each packet comes by itself
    last_count: U32  # results in the last batch


@structure("drive")
class Drive(Structure):
    """An endpoint with its socket, for native/drive.c."""

    endpoint: Pointer[Head]
    io: Annotated[int, address("struct io *{}")]
    coalescing: Pointer[Coalescing]
    step: U32  # a Step


@structure("pieces")
class PiecesState(Structure):
    """A round whose values and results a worker does not hold whole (pieces.py)."""

    # Writes `count` of the worker's values, from number `first` on.
    give: Annotated[
        int,
        address("void (*{})(const void *input, uint64_t first, uint64_t count, void *values)"),
    ]
    input: ReadOnly[None]
    # Takes the results of the same places. sums: the integers that the switch returned, or NULL.
    take: Annotated[
        int,
        address(
            "void (*{})(void *output, uint64_t first, uint64_t count, const void *results, "
            "const int32_t *sums)"
        ),
    ]
    output: Pointer[None]
    values: Pointer[None]  # room for a chunk of each, which workers may share: nothing stays here
    results: Pointer[None]
    sums: Pointer[I32]  # NULL: the sums are not wanted


@structure("word128")
class Word128(Structure):
    """A number of 128 bits."""

    low: U64
    high: U64

    @classmethod
    def of(cls, number: int) -> Word128:
        return cls(number % 2**64, number >> 64)


@structure("tensor")
class TensorState(Structure):
    """A worker's input, of which any part can be made (tensor_parts.py)."""

    state: Word128  # of the generator PCG64, before its first output
    increment: Word128
    blocks: ReadOnly[U32]  # of floats: each block's upper exponent bits, 0: it is zero; or NULL


@structure("aimd")
class AimdState(Structure):
    """The window of aimd.py in C (native/aimd.h)."""

    window: U32  # packets that may be in flight
    least: U32
    most: U32
    left: U32  # answers until the round trip is over
    marked: U32
    knows: U32  # this round trip met the queue that the last one already told of
    halved: U32


@structure("fixed_point")
class FixedPointState(Structure):
    """How floats become integers if a job's settings change the default, an exponent for each chunk
    (docs/numbers.md)."""

    noise_key: U64  # key of stochastic rounding; 0: values are rounded to the nearest integer
    clipped: U64  # values that were clipped to the largest integer
    vanished: U64  # values other than 0 that became 0
    exponent: U32  # the exponent of every chunk; 0: each chunk has its own
    in_use: U32


@structure("shapes")
class Shapes(Structure):
    """The shapes of a round, as on the wire (native/shapes.h)."""

    own: Annotated[int, repeated(U8, wire.SHAPE_BYTES)]
    smallest: Annotated[int, repeated(U8, wire.SHAPE_BYTES)]  # of all workers, if they disagreed
    largest: Annotated[int, repeated(U8, wire.SHAPE_BYTES)]


DECLARED = (
    *(Histogram, Pending, Recovery, OutboxColumns, Rows, Head, Coalescing, Drive),
    *(PiecesState, Word128, TensorState, AimdState, FixedPointState, Shapes),
)
"""All structures of the C code in `native/`, each after those that it contains."""
_OF_RECOVERY = ("NO_ROUND_TRIP", "ANSWERED", "QUEUED", "SENT")


def c_header() -> str:
    """Returns the text of `structures.h`."""
    constants = {
        "HISTOGRAM_BITS": histogram.BITS,
        "HISTOGRAM_LAST_NS": histogram.LAST_NS,
        **{name: getattr(recovery, name) for name in _OF_RECOVERY},
        **{step.name: step.value for step in Step},
    }
    return formats.c_header("hosts/", "AGGLAB_STRUCTURES_H", constants, c_structs(*DECLARED))

"""The states of a worker and a server, which their C code (worker.c, server.c) shares with Python,
and that code."""

from __future__ import annotations

from typing import Annotated

from agglab.hosts.library import INT, P, SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import AimdState, Head
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
    F32,
    I32,
    U8,
    U16,
    U32,
    U64,
    Pointer,
    ReadOnly,
    Structure,
    dtype_of,
    repeated,
    structure,
)
from agglab.systems.pooling import wire


@structure("pooling_common")
class Common(Structure):
    """What a job's worker and its server both know."""

    _anonymous_ = ("endpoint",)
    endpoint: Head
    job: U32
    session: U32
    workers: U32
    lanes: U32
    window: U32  # number of positions: a chunk's position is its tag modulo this
    other_digest: U32


@structure("pooling_position")
class Position(Structure):
    """The contribution that a position has in flight, or the last that was answered. Its row is the
    position."""

    pending: Pending
    chunk: U32
    floats: U32  # whether the chunk is sent as floats, because it does not fit the scale


POSITION = dtype_of(Position)


@structure("pooling_worker")
class Worker(Structure):
    """A worker."""

    _anonymous_ = ("common",)
    common: Common
    positions: Pointer[Position]
    slots: ReadOnly[U16]  # switch slots: a chunk with tag t uses slots[t % slot_count]
    values: ReadOnly[U32]  # may be the same memory as out
    out: Pointer[U32]
    sums: Pointer[U32]  # the integers that were summed, or NULL
    elements: U64
    is_float: U32
    first_tag: U32  # tag of the round's first chunk
    oldest: U32  # the first chunk that has no result
    next: U32  # the first chunk that has not been sent
    digest: U32
    begun: U32
    scale_log2: I32  # integers are floats times 2 to this
    value_bits: U32
    priority: U32
    slot_count: U32
    aimd: AimdState
    marked: U64  # results that were marked because a link was busy
    overflown: U64  # chunks that were sent as floats
    again_answered: U64  # the latest repetition known to be answered


@structure("pooling_cell")
class Cell(Structure):
    """A position of a server: the chunk that is summed there, or was summed last, and the chunk
    before it. Row 2 * position + generation of the outbox holds the sum so far, and later the
    result; row 2 * position + !generation holds the previous result."""

    tag: U32
    previous_tag: U32
    digest: U32
    members: U32  # the workers whose values are in the sum, or, for floats, have come
    parts: U32  # how many packets the sum was made of
    phase: U8  # POOLING_EMPTY, POOLING_GATHERS, ...
    kind: U8
    flags: U8  # OVERFLOW, CONGESTED
    generation: U8
    previous_used: U8
    spare: Annotated[int, repeated(U8, 3)]


CELL = dtype_of(Cell)


@structure("pooling_server")
class Server(Structure):
    """A server. `endpoint.chunks_done` counts the chunks that it completed in all rounds."""

    _anonymous_ = ("common",)
    common: Common
    cells: Pointer[Cell]
    asked: Pointer[U32]  # for each row, the workers to which it is to be sent
    state: Pointer[U8]  # for each row, ON_QUEUE and AGAIN
    floats: Pointer[F32]  # the values of each position and worker; NULL for a job of integers
    everybody: U32
    disagreed: U32
    disagreed_tag: U32
    disagreed_digest: U32
    summed_ever: U64
    whole: U64  # chunks of summed_ever that a single packet brought
    parts: U64  # packets that were added to sums
    overlapping: U64  # packets that could not be added
    answered_again: U64


LIBRARY = SystemLibrary(
    __file__,
    {"pooling_wire.h": wire.c_header()},
    (Common, Position, Worker, Cell, Server),
    {
        **signatures("pooling_server", begins=["pooling_worker"]),
        "pooling_aimd": (None, [P, INT, INT]),
    },
)

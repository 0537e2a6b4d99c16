"""The state of a worker, which its C code (worker.c) shares with Python, and that code."""

from __future__ import annotations

from typing import Annotated

from agglab.hosts.library import SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import FixedPointState, Head, PiecesState, Shapes
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
    I32,
    U8,
    U32,
    U64,
    Pointer,
    ReadOnly,
    Structure,
    dtype_of,
    repeated,
    structure,
)


@structure("slot")
class Slot(Structure):
    """The packet a slot has in flight, or, when nothing is, the last one that was answered."""

    pending: Pending
    tag: U32
    chunk: U32
    length: U32  # length of the datagram in its row
    kind: U8
    padding: Annotated[int, repeated(U8, 3)]


SLOT = dtype_of(Slot)


@structure("presence")
class Presence(Structure):
    """Who is in sums that may lack workers (presence.py)."""

    of_chunks: Pointer[U64]  # who is in each chunk's sum; only packets of version 2 have this
    partial: U64  # sums that lacked a worker
    absent: U64  # how many workers they lacked
    skipped: U64  # contributions that were not sent, because the sum came first
    ahead: U64  # sums of chunks for which it was not yet this worker's turn


@structure("worker")
class WorkerState(Structure):
    """A worker. Row s of the outbox keeps the datagram of slot s until its result is here."""

    _anonymous_ = ("endpoint", "fixed_point", "presence")
    endpoint: Head
    job: U32
    lanes: U32
    window: U32
    value_bits: U32
    version: U32  # version of the packets
    header_bytes: U32
    fixed_point: FixedPointState
    slots: Pointer[Slot]

    # The round.
    values: ReadOnly[None]  # float, int32_t or floats of 16 bits; may be the same memory as out
    out: Pointer[None]
    sums: Pointer[I32]  # the integer sums, or NULL
    pieces: ReadOnly[PiecesState]  # or NULL; takes the place of the three arrays
    exponents: Pointer[U8]  # the agreed exponent of each chunk
    elements: U64
    shapes: Shapes  # the shapes that workers reduce in this round
    kind: U32  # kind of the round's contributions: any but OPENING
    workers: U32
    presence: Presence


LIBRARY = SystemLibrary(__file__, {}, (Slot, Presence, WorkerState), signatures(begins=["worker"]))

"""The state of a worker, which its C code (omnireduce.c, fuse.c) shares with Python, and that
code."""

from __future__ import annotations

from agglab.hosts.library import SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import Head, Shapes
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
    I32,
    I64,
    U8,
    U32,
    U64,
    Pointer,
    ReadOnly,
    Structure,
    dtype_of,
    structure,
)
from agglab.systems.omnireduce import wire


@structure("omnireduce_column")
class Column(Structure):
    """A column's slot: the packet it has in flight, or, when nothing is, the last one that was
    answered."""

    pending: Pending
    tag: U32
    block: U32  # the block that the packet is about; for an OPENING the column's first block
    next: U32  # this worker's next block after it that has a value, or NO_BLOCK
    kind: U8  # the packet's kind without the bit BARE
    exponent: U8  # exponent of this worker's values in block `next`
    has_values: U8  # whether the packet carries values
    padding: U8


COLUMN = dtype_of(Column)


@structure("omnireduce_worker")
class OmniReducerState(Structure):
    """A worker, whose chunks are blocks. The first `window` rows of the outbox keep each column's
    own datagram until its result is here; those of several columns are in the rows after them until
    the next poll."""

    _anonymous_ = ("endpoint",)
    endpoint: Head
    job: U32
    lanes: U32
    window: U32
    value_bits: U32
    columns: Pointer[Column]
    ready: Pointer[U32]  # columns whose packets are laid out but not sent yet, in order
    held_since_ns: I64  # since when the first column in `ready` waits for others to join it
    ready_count: U32
    opening_entries: U32  # how many entries may follow an OPENING
    bare_entries: U32  # how many entries may follow headers alone
    values_entries: U32  # how many entries may follow values

    # The round.
    values: ReadOnly[None]  # float or int32_t; may be the same memory as out
    out: Pointer[None]
    sums: Pointer[I32]  # the integer sums, or NULL
    exponents: Pointer[U8]  # the agreed exponent of each block; 0 if no worker has values for it
    elements: U64
    shapes: Shapes  # the shapes that workers reduce in this round
    kind: U32  # kind of the round's values: INT32 or SCALED

    blocks_sent: U64  # blocks whose values this worker sent, each counted once
    blocks_bare: U64  # blocks for which it sent headers alone
    blocks_skipped: U64  # blocks for which no worker sent anything
    blocks_fused: U64  # of blocks_bare, those that were entries behind another packet
    openings_fused: U64


LIBRARY = SystemLibrary(
    __file__,
    {"omnireduce_wire.h": wire.c_header()},
    (Column, OmniReducerState),
    signatures(begins=["omnireduce"]),
)

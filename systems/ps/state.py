"""The states of a worker and a server, which their C code (worker.c, server.c) shares with Python,
and that code."""

from __future__ import annotations

from typing import Annotated

from agglab.hosts.library import SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import Head
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
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
from agglab.systems.ps import wire


@structure("ps_common")
class Common(Structure):
    """What a job's worker and its servers both know."""

    _anonymous_ = ("endpoint",)
    endpoint: Head
    job: U32
    session: U32
    workers: U32
    servers: U32
    lanes: U32
    window: U32  # chunks in flight to all servers together: a multiple of `servers`
    is_float: U32
    begun: U32
    round: U32
    digest: U32
    disagreed: U32
    other_digest: U32


@structure("ps_push")
class Push(Structure):
    """The push that a slot has in flight, or the last that was answered. Chunk c has slot c %
    window."""

    pending: Pending
    chunk: U32
    spare_word: U32


PUSH = dtype_of(Push)


@structure("ps_worker")
class Worker(Structure):
    """A worker. It has a path to each server: an answer of one overtakes no answer of another."""

    _anonymous_ = ("common",)
    common: Common
    pushes: Pointer[Push]
    values: ReadOnly[U32]  # may be the same memory as out
    out: Pointer[U32]
    elements: U64


@structure("ps_slot")
class Slot(Structure):
    """A slot of a server: the chunk that is summed in it, or was summed last, and the chunk before
    it. Row `workers` * slot + rank of the outbox holds this worker's values while its bit in
    `present` is set, and otherwise the last result."""

    chunk: U32
    previous_chunk: U32
    missing: U32  # how many workers' values have not come; 0: the sum is complete
    round: U16
    previous_round: U16
    used: U8  # whether `chunk` is set
    previous_used: U8  # whether `previous_chunk` is set
    spare: Annotated[int, repeated(U8, 2)]


SLOT = dtype_of(Slot)


@structure("ps_server")
class Server(Structure):
    """A server. `endpoint.chunks_done` counts the chunks of the round that are complete."""

    _anonymous_ = ("common",)
    common: Common
    index: U32  # the server's index among the servers
    slots: U32  # window / servers
    slot: Pointer[Slot]
    present: Pointer[U64]  # for each slot, bitmap_words words with a bit for each worker
    asked: Pointer[U8]  # for each row, WANTED, ON_QUEUE and AGAIN
    sum: Pointer[U32]  # room for a chunk's sum
    bitmap_words: U32
    round_chunks: U32  # chunks of the round at all servers
    own_digest: U32  # digest of the shape that the server was started with, not of a round
    summed_ever: U64
    answered_again: U64


LIBRARY = SystemLibrary(
    __file__,
    {"ps_wire.h": wire.c_header()},
    (Common, Push, Worker, Slot, Server),
    signatures("ps_server", begins=["ps_worker"]),
)

"""The state of a caller, which its C code (netrpc.c) shares with Python, and that code."""

from __future__ import annotations

import ctypes

from agglab.hosts.library import P, SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import Head
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Pointer,
    ReadOnly,
    Structure,
    dtype_of,
    structure,
)
from agglab.systems.netrpc import wire


@structure("netrpc_call")
class Call(Structure):
    """A position of the window: the call it has in flight, or, when none is, the last one that was
    answered."""

    pending: Pending
    sequence: U32
    length: U32  # length of the datagram in its row
    chunk: U32  # the chunk of the stream that the call is about
    epoch: U32  # epoch in the last answer
    method: U16
    count: U16  # count in the last answer
    kind: U8
    answer_kind: U8  # kind of the expected answer
    word: U8  # word in the last answer
    streams: U8  # whether the call belongs to a stream: C takes the answer and makes the next call


CALL = dtype_of(Call)


@structure("netrpc_caller")
class CallerState(Structure):
    """The calls of an endpoint to one of its peers. The rows of `endpoint.outbox` are those of the
    caller, one for each position of the window, each kept until its answer is here."""

    _anonymous_ = ("endpoint",)
    endpoint: Head
    job: U32
    peer: U32  # index among the endpoint's peers
    lanes: U32
    window: U32
    first_row: U32  # the caller's first row in the endpoint's outbox
    value_bits: U32
    calls: Pointer[Call]
    answers: Pointer[U8]  # the last answers without headers; not kept for a stream's calls
    since_ns: I64  # when the endpoint last heard anything that it awaited

    # The stream under way: an array whose chunks are reduced one by one.
    values: ReadOnly[None]  # float or int32_t; may be the same memory as out
    out: Pointer[None]
    sums: Pointer[I32]  # the integer sums, or NULL
    exponents: Pointer[U8]  # the agreed exponent of each chunk
    elements: U64
    is_float: U32
    width: U32  # how many of the stream's calls are in flight at once
    agree: U16  # numbers of the stream's two methods
    reduce: U16
    epoch: U32


CALL_ARGUMENTS = [P, ctypes.c_uint32, ctypes.c_uint16, *[ctypes.c_uint8] * 3]

LIBRARY = SystemLibrary(
    __file__,
    {"netrpc_wire.h": wire.c_header()},
    (Call, CallerState),
    {
        **signatures("netrpc"),
        "netrpc_call": (None, [*CALL_ARGUMENTS, ctypes.c_char_p, ctypes.c_uint32]),
        "netrpc_stream": (None, [P]),
    },
)

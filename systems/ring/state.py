"""The state of a worker, which its C code (ring.c) shares with Python, and that code."""

from __future__ import annotations

from agglab.hosts.library import SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import Head
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
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
from agglab.systems.ring import wire


@structure("ring_packet")
class RingPacket(Structure):
    """An outgoing packet, or the last that had this row: packet k has row k % window."""

    pending: Pending
    sequence: U32  # NOT_LAID_OUT: the row has had no packet in this round yet
    spare_word: U32


PACKET = dtype_of(RingPacket)


@structure("ring")
class Ring(Structure):
    """A worker. Packets of a round are numbered from 0 in the order in which a worker would send
    them: packet k is chunk k % segment_chunks of step k / segment_chunks. `endpoint.chunks` is the
    number of packets of the round in each direction, `endpoint.chunks_done` how many have come."""

    _anonymous_ = ("endpoint",)
    endpoint: Head
    job: U32
    session: U32
    rank: U32
    workers: U32
    lanes: U32
    window: U32
    next: U32  # index of the peer to which data go, and which acknowledges them
    previous: U32  # index of the peer from which data come
    acknowledge_every: U32
    acknowledge_after_ns: I64
    packets: Pointer[RingPacket]  # `window` elements
    early: Pointer[U8]  # `window` packets of the next round, a row of the outbox each
    early_set: Pointer[U8]  # which packets of `early` have come

    # The round.
    values: ReadOnly[U32]  # may be the same memory as out
    out: Pointer[U32]
    taken: Pointer[U64]  # a bit for each incoming packet, and one more word
    elements: U64
    is_float: U32
    segment_chunks: U32
    digest: U32
    round: U32
    begun: U32  # whether a round has begun
    failed: U32
    taken_below: U32  # all packets before this one are taken
    highest_taken: U32  # no packet from this one on is taken
    acknowledged_below: U32
    heard_ns: I64  # when an awaited packet last came

    owed: U32  # packets that are taken but not acknowledged
    owed_at_once: U32  # an acknowledgement is due, whatever is owed
    owed_previous: U32  # an acknowledgement for the round before is due
    echo: U32  # the last packet that was taken
    echo_attempt: U32
    previous_packets: U32  # `endpoint.chunks` of the round before
    previous_digest: U32
    early_other: U32  # differs from early_digest: so do two workers in the next round
    echo_ns: I64
    owed_since_ns: I64

    disagreed: U32
    other_digest: U32
    told: U32  # bit i: peer i knows of the disagreement
    to_tell: U32  # bit i: peer i seems not to know
    tellings_left: U32  # how often the peers are told before the round fails
    early_digest: U32
    tell_ns: I64

    acknowledgements: U64
    acknowledgement_bytes: U64
    early_packets: U64


LIBRARY = SystemLibrary(
    __file__, {"ring_wire.h": wire.c_header()}, (RingPacket, Ring), signatures(begins=["ring"])
)

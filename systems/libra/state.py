"""The states of a worker and a server, which their C code (worker.c, server.c) shares with Python,
and that code."""

from __future__ import annotations

from typing import Annotated

from agglab.hosts.library import SystemLibrary
from agglab.hosts.native_endpoint import signatures
from agglab.hosts.native_structures import Head
from agglab.hosts.recovery import Pending
from agglab.hosts.structures import (
    I64,
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
from agglab.systems.libra import wire

COUNTED = ("sent", "received", "duplicates", "late", "malformed", "bytes_sent", "bytes_received")
"""What workers and servers count, in the order of events."""
TIMED = ("retransmitted", "timeouts")
HOT, PUSH, PULL, LEARN = range(4)
"""What a worker asks a server for in a round, one kind after the other: the phases."""
PHASES = 4
NO_AGGREGATOR = 2**32 - 1


@structure("libra_common")
class Common(Structure):
    """What a job's worker and its servers both know."""

    _anonymous_ = ("endpoint",)
    endpoint: Head
    job: U32
    session: U32
    workers: U32
    servers: U32
    lanes: U32
    slots: U32  # packets that a worker has in flight to one server
    lengths: Pointer[U32]  # the columns of the outbox
    peers: Pointer[U32]
    begun: U32
    round: U32
    disagreed: U32
    other_digest: U32
    bytes_again: U64  # bytes of frames that were sent again


@structure("libra_request")
class Request(Structure):
    """A request that a slot has in flight, or the last that was answered. Item i of a phase has
    slot i % slots."""

    pending: Pending
    item: U32
    spare_word: U32


REQUEST = dtype_of(Request)


@structure("libra_share")
class Share(Structure):
    """A worker's round with one server. Keys and values are in the machine's order; groups of
    `lanes` keys are padded."""

    hot_keys: ReadOnly[U64]
    hot_values: ReadOnly[U32]
    hot_sums: Pointer[U32]
    cold_keys: ReadOnly[U64]
    cold_values: ReadOnly[U32]
    cold_sums: Pointer[U32]
    learnt: Pointer[U64]
    cold_pairs: U64
    items: Annotated[int, repeated(U32, PHASES)]  # LEARN: 1 until the first answer tells how many
    pages_max: U32
    phase: U32  # PHASES: the round is over
    answered: U32
    spare: U32


@structure("libra_worker")
class Worker(Structure):
    """A worker. It has a path to each server, whose loss recovery is that of the phase: answers of
    one phase say nothing about another. Slot k of server s has request and row k * servers + s."""

    _anonymous_ = ("common",)
    common: Common
    requests: Pointer[Request]
    shares: Pointer[Share]
    aggregator: U32  # the switch's index among the peers; or NO_AGGREGATOR: all goes to servers
    direct_after: U32  # after this many attempts a request goes to its server, not to the switch
    digest: U32
    rank: U32
    directly: U64  # requests that went past the switch because it had not answered
    hold_ns: I64  # how long a server may delay the answer to a first PULL or LEARN


@structure("libra_round")
class Round(Structure):
    """A server's state of one round. A finished round keeps its answers for one more round. Key
    tables use open addressing."""

    keys: Pointer[U64]
    values: Pointer[U32]
    counts: Pointer[U16]  # how many workers pushed the key; 0: the table entry is free
    chunks: Pointer[U32]  # for each worker, how many packets it pushes; 0: not known
    arrived: Pointer[U32]
    pairs: Pointer[U16]  # for each worker and chunk, PULLED and 1 + its number of keys; 0: none yet
    places: Pointer[U32]  # for each worker, chunk and pair, the key's index in the table
    group_keys: Pointer[U64]
    parts: Pointer[U64]  # for each group and rank: the part's workers, of which it is the lowest
    part_values: Pointer[U32]  # for each group, rank and lane; rank 0: the sums of a whole group
    whole: Pointer[U8]  # for each group, whether all workers' values are in it
    round: U32
    digest: U32
    used: U32
    keys_used: U32
    groups: U32  # 0: none yet
    workers_done: U32


@structure("libra_server")
class Server(Structure):
    """A server."""

    _anonymous_ = ("common",)
    common: Common
    index: U32
    capacity: U32  # entries of a key table, a power of two
    keys_max: U32  # most keys that a table may hold
    chunks_max: U32  # most chunks that a worker may push
    groups_max: U32
    racks: U32
    low_key: U64  # the server's range of keys is low_key to high_key, both included
    high_key: U64
    rounds: Pointer[Round]  # two, by the round's parity
    store: Pointer[Round]  # its table has the sum of all rounds for each key; NULL: not kept
    rack_workers: Pointer[U64]  # ranks behind each switch that sums
    rack_peer: Pointer[U32]  # the peer to which packets for all these workers are sent
    asked: Pointer[U8]  # for each row, ON_QUEUE and AGAIN
    waiting: Pointer[U32]  # for each row, 1 + the chunk whose PULL waits for others; 0: none
    waiting_attempt: Pointer[U8]
    hot_keys: Pointer[U64]  # the list that LEARN asks for
    learnt: Pointer[U8]  # for each worker and page, whether it has been sent
    hot_pages: U32
    hot_round: U32  # the sampled round that the list was made from
    answered_again: U64
    groups_whole: U64  # groups summed and given to all workers
    sums: U64  # SUM packets taken
    singles: U64  # HOT packets taken that no switch had summed
    cold_pairs: U64  # pairs of PUSH packets taken


LIBRARY = SystemLibrary(
    __file__,
    {"libra_wire.h": wire.c_header()},
    (Common, Request, Share, Worker, Round, Server),
    signatures("libra_server", begins=["libra_worker"]),
)

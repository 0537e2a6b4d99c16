"""A worker and a parameter server as state machines (hosts/endpoint.py; README.md).

C code processes the packets (worker.c, server.c). This module allocates the memory (NumPy arrays),
starts and ends rounds, and writes the error messages. Times are integers, nanoseconds of any
monotonic clock.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library, shared
from agglab.hosts.agreement import PLAIN, Agreement, disagreement
from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.systems.ps import wire

MAX_WORKERS = MAX_SERVERS = MAX_WINDOW = 65535

LIBRARY = library.SystemLibrary(
    __file__,
    {"ps_wire.h": wire.c_header()},
    {
        "ps_worker_begin": (None, [P, I64]),
        "ps_worker_datagrams": (U32, [P, I64, P, U64, P, P, U32]),
        "ps_worker_poll": (INT, [P, I64]),
        "ps_worker_layout": (U32, []),
        "ps_server_datagrams": (U32, [P, P, U64, P, P, U32]),
        "ps_server_poll": (INT, [P]),
        "ps_server_layout": (U32, []),
    },
)

COUNTERS = shared.COUNTERS
"""The counters of a worker, each with its unit and meaning."""
OWN_COUNTERS = {
    "summed_ever": ("chunks", "chunks that a server completed and gave to all workers"),
    "answered_again": (
        "packets",
        "results that a server sent again because a worker asked; in `duplicates` too",
    ),
}
SERVER_COUNTERS = {**shared.COUNTERS, **OWN_COUNTERS}
"""The counters of a server. A server has no timers, so `retransmitted` and `timeouts` stay 0."""
COMMON_COUNTERS = [name for name in COUNTERS if name not in ("retransmitted", "timeouts")]

PUSH = np.dtype([*PENDING, ("chunk", "u4"), ("spare_word", "u4")])
"""`struct ps_push` of ps.h."""
SLOT = np.dtype(
    [
        ("chunk", "u4"),
        ("previous_chunk", "u4"),
        ("missing", "u4"),
        ("round", "u2"),
        ("previous_round", "u2"),
        ("used", "u1"),
        ("previous_used", "u1"),
        ("spare", "u1", 2),
    ]
)
"""`struct ps_slot` of ps.h."""


class _Common(ctypes.Structure):
    """The ctypes equivalent of `struct ps_common` in ps.h."""

    _fields_ = [
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("job", "session", "workers", "servers", "lanes", "window", "row_bytes"),
                "queued",
            )
        ],
        *[(name, ctypes.c_void_p) for name in ("frames", "lengths", "queue")],
        *[(name, ctypes.c_uint64) for name in COMMON_COUNTERS],
    ]


class _Worker(ctypes.Structure):
    """The ctypes equivalent of `struct ps_worker` in ps.h."""

    _anonymous_ = ("common",)
    _fields_ = [
        ("common", _Common),
        *[(name, ctypes.c_void_p) for name in ("recoveries", "rtts_ns", "pushes", "values", "out")],
        ("elements", ctypes.c_uint64),
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("is_float", "chunks", "chunks_done", "digest", "round", "begun", "disagreed"),
                "other_digest",
            )
        ],
        ("deadline_ns", ctypes.c_int64),
    ]


class _Server(ctypes.Structure):
    """The ctypes equivalent of `struct ps_server` in ps.h."""

    _anonymous_ = ("common",)
    _fields_ = [
        ("common", _Common),
        *[(name, ctypes.c_uint32) for name in ("index", "slots")],
        *[(name, ctypes.c_void_p) for name in ("slot", "present", "asked", "sum")],
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("bitmap_words", "begun", "round", "is_float", "digest", "chunks", "summed"),
                *("disagreed", "other_digest", "own_digest"),
            )
        ],
        *[(name, ctypes.c_uint64) for name in ("summed_ever", "answered_again")],
    ]


@dataclass(frozen=True)
class _Job:
    """The settings on which the workers and servers of a job agree, and `rank` and `peers` of one
    agent."""

    job: int
    rank: int
    workers: int
    servers: int
    lanes: int
    window: int
    session: int
    peers: Sequence[Address]

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, MAX_WORKERS)
        check_range("servers", self.servers, 1, MAX_SERVERS)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        check_range("window", self.window, 1, MAX_WINDOW)
        check_range("session", self.session, 0, 2**32 - 1)

    @property
    def slots(self) -> int:
        """The largest number of chunks that a worker has in flight to one server."""
        return -(-self.window // self.servers)


@dataclass(frozen=True)
class WorkerJob(_Job):
    """One worker's part in a job. peers: the addresses of all servers, by index. window: the number
    of chunks in flight, rounded up to the same number for each server. session: the number of the
    session; packets of other sessions are refused. Raises ValueError for numbers that do not fit
    the wire format."""

    timing: Timing = Timing()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("rank", self.rank, 0, self.workers - 1)
        shared.check_count("peers", self.peers, self.servers)


@dataclass(frozen=True)
class ServerJob(_Job):
    """One server's part in a job. rank: the server's index among the servers. peers: the addresses
    of all workers, by rank. Raises ValueError for numbers that do not fit the wire format."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("rank", self.rank, 0, self.servers - 1)
        shared.check_count("peers", self.peers, self.workers)


def chunks_of_round(elements: int, servers: int, lanes: int) -> int:
    """Returns the number of packets that each worker pushes in a round without loss, which is also
    the number of its results. This is one for each `lanes` elements, and at least one for each
    server, so that all workers meet at every server even if they reduce few elements."""
    return max(servers, -(-elements // lanes))


def chunks_of_server(elements: int, servers: int, lanes: int, index: int) -> int:
    """Returns the number of a round's chunks that belong to server `index`. These are the chunks
    whose number is `index` modulo `servers`."""
    return -(-(chunks_of_round(elements, servers, lanes) - index) // servers)


def predicted_bytes(elements: int, servers: int, lanes: int) -> int:
    """Returns the bytes that each worker sends in a round without loss, which is also the number of
    bytes that it receives. Bytes are those of Ethernet frames without their checksums:
    `chunks_of_round` times (42 + 24 + 4 lanes). A server sends and receives workers times
    `chunks_of_server` times (42 + 24 + 4 lanes) bytes."""
    return chunks_of_round(elements, servers, lanes) * wire.frame_bytes(lanes)


def _rows(lanes: int, count: int) -> NDArray[np.uint8]:
    row_bytes = -(-wire.datagram_bytes(lanes) // 64) * 64
    return np.zeros((count, row_bytes), np.uint8)


def _common(job: _Job, outbox: Outbox, queue: NDArray[np.uint32]) -> _Common:
    return _Common(
        job=job.job,
        session=job.session,
        workers=job.workers,
        servers=job.servers,
        lanes=job.lanes,
        window=job.slots * job.servers,
        row_bytes=outbox.frames.shape[1],
        frames=outbox.frames.ctypes.data,
        lengths=outbox.lengths.ctypes.data,
        queue=queue.ctypes.data,
    )


class PsWorker:
    """The state machine of one worker. All rounds use the same slots."""

    listens = False
    """False, because a server answers only what a worker has asked."""

    def __init__(self, job: WorkerJob) -> None:
        self.job = job
        self.peers = tuple(job.peers)
        self.longest_bytes = wire.datagram_bytes(job.lanes)
        self._native = LIBRARY.load()
        _check_layout(self._native)
        self._rounds = 0
        self.agreement = PLAIN
        window = job.slots * job.servers
        self.outbox = Outbox(
            _rows(job.lanes, window),
            np.full(window, self.longest_bytes, np.uint32),
            np.arange(window, dtype=np.uint32) % np.uint32(job.servers),
        )
        self._pushes: NDArray[np.void] = np.zeros(window, PUSH)
        self._queue: NDArray[np.uint32] = np.zeros(2 * window, np.uint32)
        self._values: NDArray = np.zeros(0, np.int32)
        self._out: NDArray = self._values
        each = (Recovery.of(job.timing) for _ in range(job.servers))
        self._recoveries = (Recovery * job.servers)(*each)
        self._rtts_ns: NDArray[np.int64] = np.zeros(job.servers, np.int64)
        self._state = _Worker(
            common=_common(job, self.outbox, self._queue),
            recoveries=ctypes.addressof(self._recoveries),
            rtts_ns=self._rtts_ns.ctypes.data,
            pushes=self._pushes.ctypes.data,
        )
        self._address = ctypes.addressof(self._state)

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None = None,
    ) -> None:
        """Starts the next round (Endpoint.begin). `sums` is not changed."""
        assert self.done, "a round is under way"
        shared.check_arrays(values, out)
        job, state = self.job, self._state
        chunks = chunks_of_round(values.size, job.servers, job.lanes)
        if chunks >= 2**31:
            raise ValueError(f"{values.size} elements need {chunks} chunks; the limit is 2^31 - 1")
        self._values, self._out = values, out
        state.values, state.out = values.ctypes.data, out.ctypes.data
        state.elements, state.chunks = values.size, chunks
        state.is_float = values.dtype == np.float32
        state.digest = self._digest(self.agreement)
        state.round = self._rounds % 65536
        self._rounds += 1
        self._native.ps_worker_begin(self._address, now_ns)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them the endpoint had waited for.
        The caller must call `poll` next."""
        return self._native.ps_worker_datagrams(
            self._address, now_ns, *inbox.payloads_and_peers, inbox.count
        )

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now, and sets `deadline_ns`. The returned array is
        valid until the next call. Raises RoundTimeout and ShapeMismatch."""
        count = self._native.ps_worker_poll(self._address, now_ns)
        if count < 0:
            raise self._failure(-count)
        return self._queue[:count]

    @property
    def deadline_ns(self) -> int:
        """The time at which `poll` must be called even if no datagram has come. It is the largest
        int64 if there is no such time."""
        return self._state.deadline_ns

    @property
    def done(self) -> bool:
        """Whether all results have come, or no round has begun."""
        return not self.in_flight and not self._state.disagreed

    @property
    def chunks(self) -> int:
        """The number of chunks of the round."""
        return self._state.chunks

    @property
    def chunks_done(self) -> int:
        """The number of results that have come."""
        return self._state.chunks_done

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return tuple(self._recoveries)

    @property
    def in_flight(self) -> int:
        """The number of pushes that wait for their result."""
        return sum(recovery.in_flight for recovery in self._recoveries)

    @property
    def rto_ns(self) -> int:
        """The longest of the retransmission timeouts for the servers, before back-off."""
        return max(recovery.rto_ns for recovery in self._recoveries)

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`COUNTERS`); they count from the creation of the endpoint."""
        return {name: self._count(name) for name in COUNTERS}

    def _count(self, name: str) -> int:
        if name in ("retransmitted", "timeouts"):
            return sum(getattr(recovery, name) for recovery in self._recoveries)
        count: int = getattr(self._state, name)
        return count

    def repeats(self, row: int) -> Repeat | None:
        """Returns the number of the chunk in row `row` if its push is sent again. Returns None if
        it is sent for the first time."""
        push = self._pushes[row]
        if not push["attempt"]:
            return None
        return Repeat(None, int(push["chunk"]), int(push["first_sent_ns"]), gathered=True)

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, index of its server] of pushes that wait for a result, at most `most` of
        them."""
        return [[chunk, chunk % self.job.servers] for chunk in self._missing()[:most]]

    def finish(self) -> None:
        """Raises NotFinite, which names the index, if the result contains Inf or NaN. The next
        round may begin even then."""
        assert self.done
        shared.check_finite(self._out, self.job.job)

    def _missing(self) -> list[int]:
        chunks: NDArray[np.uint32] = self._pushes["chunk"][self._pushes["waiting"] != 0]
        return sorted(chunks.tolist())

    def _digest(self, agreement: Agreement) -> int:
        job, state = self.job, self._state
        sizes = state.elements, job.workers, job.lanes, state.window
        return shared.shape_digest(*sizes, bool(state.is_float), job.servers, agreement)

    def _failure(self, error: int) -> AllReduceError:
        job, state = self.job, self._state
        if error == errno.EPROTO:
            also, another = disagreement(self.agreement, self._digest, state.other_digest)
            dtype = "float32" if state.is_float else "int32"
            return ShapeMismatch(
                f"round {self._rounds - 1} of job {job.job}: this worker reduces {state.elements} "
                f"{dtype} elements with workers {job.workers}, servers {job.servers}, lanes "
                f"{job.lanes}, window {state.window}{also} (digest {state.digest:08x}), another "
                f"or a server {another} (digest {state.other_digest:08x}); all of a job have "
                "to reduce alike"
            )
        assert error == errno.ETIMEDOUT
        missing = self._missing()
        servers = sorted({chunk % job.servers for chunk in missing})
        ranges = shared.runs(missing)
        return RoundTimeout(
            f"no result for chunks {shared.words(ranges)} of job {job.job} from servers "
            f"{shared.words(shared.runs(servers))} after {job.timing.give_up_ns / 1e9:g} s",
            ranges,
        )


class PsServer:
    """The state machine of one server. It sums what workers push, and has neither rounds nor
    timers. It has room for one packet for each worker and slot."""

    listens = True
    done = True
    deadline_ns = NEVER_NS
    in_flight = 0

    def __init__(self, job: ServerJob) -> None:
        self.job = job
        self.peers = tuple(job.peers)
        self.longest_bytes = wire.datagram_bytes(job.lanes)
        self._native = LIBRARY.load()
        _check_layout(self._native)
        rows = (job.slots + 1) * job.workers
        lengths = np.full(rows, self.longest_bytes, np.uint32)
        lengths[-job.workers :] = wire.HEADER_BYTES
        towards = np.arange(rows, dtype=np.uint32) % np.uint32(job.workers)
        self.outbox = Outbox(_rows(job.lanes, rows), lengths, towards)
        self._queue: NDArray[np.uint32] = np.zeros(rows, np.uint32)
        words = -(-job.workers // 64)
        self._slots: NDArray[np.void] = np.zeros(job.slots, SLOT)
        self._present: NDArray[np.uint64] = np.zeros((job.slots, words), np.uint64)
        self._asked: NDArray[np.uint8] = np.zeros(rows, np.uint8)
        self._sum: NDArray[np.uint32] = np.zeros(job.lanes, np.uint32)
        self._state = _Server(
            common=_common(job, self.outbox, self._queue),
            index=job.rank,
            slots=job.slots,
            slot=self._slots.ctypes.data,
            present=self._present.ctypes.data,
            asked=self._asked.ctypes.data,
            sum=self._sum.ctypes.data,
            bitmap_words=words,
            round=65535,
            own_digest=shared.shape_digest(
                0, job.workers, job.lanes, job.slots * job.servers, False, job.servers
            ),
        )
        self._address = ctypes.addressof(self._state)

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None = None,
    ) -> None:
        """Raises TypeError, because a server has nothing to reduce."""
        raise TypeError("a server begins no round: it serves whatever the workers begin")

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them were values that it added to
        a sum. The caller must call `poll` next."""
        return self._native.ps_server_datagrams(
            self._address, *inbox.payloads_and_peers, inbox.count
        )

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now. The returned array is valid until the next
        call. This method never raises an exception. Workers whose shapes differ are told so in the
        answer to each of their requests."""
        return self._queue[: self._native.ps_server_poll(self._address)]

    @property
    def chunks(self) -> int:
        """The number of chunks that this server has in the latest round."""
        state, job = self._state, self.job
        return -(-(state.chunks - job.rank) // job.servers) if state.begun else 0

    @property
    def chunks_done(self) -> int:
        """The number of chunks of the latest round that are summed."""
        return self._state.summed

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`SERVER_COUNTERS`); they count from the creation of the
        endpoint."""
        return {name: getattr(self._state, name, 0) for name in SERVER_COUNTERS}

    def repeats(self, row: int) -> Repeat | None:
        """Returns None, because a server repeats an answer only when a worker repeats its
        request."""

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, rank, ...] for each chunk for which some values have come and others are
        missing. The ranks are those of the workers whose values are missing."""
        found = []
        for slot in np.flatnonzero(self._slots["missing"])[:most].tolist():
            bits = np.unpackbits(
                self._present[slot].astype("<u8").view(np.uint8), bitorder="little"
            )
            ranks = np.flatnonzero(bits[: self.job.workers] == 0).tolist()
            found.append([int(self._slots["chunk"][slot]), *ranks])
        return found

    def finish(self) -> None:
        """Does nothing, because a server has no result."""


def _check_layout(native: ctypes.CDLL) -> None:
    worker = ctypes.sizeof(_Worker) << 16 | PUSH.itemsize
    assert native.ps_worker_layout() == worker, "ps.h and agents.py differ"
    server = ctypes.sizeof(_Server) << 16 | SLOT.itemsize
    assert native.ps_server_layout() == server, "ps.h and agents.py differ"
    check_layout()

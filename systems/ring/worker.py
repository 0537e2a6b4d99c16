"""One worker of a ring all-reduce as a state machine (hosts/endpoint.py; README.md).

C code processes the packets (ring.c). This module allocates the memory (NumPy arrays), starts and
ends rounds, and writes the error messages. Times are integers, nanoseconds of any monotonic clock.
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
from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.systems.ring import wire

ACKNOWLEDGE_EVERY = 4
ACKNOWLEDGE_AFTER_NS = 1_000_000
"""ACKNOWLEDGE_EVERY is the number of packets that one acknowledgement covers. An acknowledgement of
fewer packets is sent after ACKNOWLEDGE_AFTER_NS."""
ROWS_BESIDE_DATA = 4
MAX_WORKERS = 65535

LIBRARY = library.SystemLibrary(
    __file__,
    {"ring_wire.h": wire.c_header()},
    {
        "ring_begin": (None, [P, I64]),
        "ring_datagrams": (U32, [P, I64, P, U64, P, P, U32]),
        "ring_poll": (INT, [P, I64]),
        "ring_layout": (U32, []),
    },
)

OWN_COUNTERS = {
    "acknowledgements": ("packets", "acknowledgements sent; they are in `sent` too"),
    "acknowledgement_bytes": ("bytes", "bytes of the frames with acknowledgements that were sent"),
    "early_packets": ("packets", "packets of the next round, kept until this worker begins it"),
}
COUNTERS = {**shared.COUNTERS, **OWN_COUNTERS}
"""The counters of a worker, each with its unit and meaning."""

PACKET = np.dtype([*PENDING, ("sequence", "u4"), ("spare_word", "u4")])
"""`struct ring_packet` of ring.h."""


class _State(ctypes.Structure):
    """The ctypes equivalent of `struct ring` in ring.h."""

    _anonymous_ = ("recovery",)
    _fields_ = [
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("job", "session", "rank", "workers", "lanes", "window", "next", "previous"),
                *("acknowledge_every", "row_bytes"),
            )
        ],
        ("acknowledge_after_ns", ctypes.c_int64),
        ("recovery", Recovery),
        *[
            (name, ctypes.c_void_p)
            for name in (
                *("packets", "frames", "lengths", "queue", "early", "early_set"),
                *("values", "out", "taken"),
            )
        ],
        ("elements", ctypes.c_uint64),
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("is_float", "chunks", "total", "digest", "round", "begun", "over", "failed"),
                *("taken_count", "taken_below", "highest_taken", "acknowledged_below", "queued"),
            )
        ],
        ("heard_ns", ctypes.c_int64),
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("owed", "owed_at_once", "owed_previous", "echo", "echo_attempt"),
                *("previous_total", "previous_digest", "early_other"),
            )
        ],
        *[(name, ctypes.c_int64) for name in ("echo_ns", "owed_since_ns")],
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("disagreed", "other_digest", "told", "to_tell", "tellings_left"),
                "early_digest",
            )
        ],
        ("tell_ns", ctypes.c_int64),
        *[
            (name, ctypes.c_uint64)
            for name in COUNTERS
            if name not in ("retransmitted", "timeouts")
        ],
    ]


@dataclass(frozen=True)
class RingJob:
    """One worker's part in a job. peers: the addresses of all workers, by rank. session: the number
    of the session; packets of other sessions are refused. All workers agree on all fields except
    rank and timing.

    Raises ValueError for numbers that do not fit the wire format.
    """

    job: int
    rank: int
    workers: int
    lanes: int
    window: int
    session: int
    peers: Sequence[Address]
    timing: Timing = Timing()

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, MAX_WORKERS)
        check_range("rank", self.rank, 0, self.workers - 1)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        check_range("window", self.window, 1, wire.MAX_WINDOW)
        check_range("session", self.session, 0, 2**32 - 1)
        shared.check_count("peers", self.peers, self.workers)


def chunks_of_segment(elements: int, workers: int, lanes: int) -> int:
    """Returns the number of packets of a segment, which is one worker's share of the tensor. It is
    at least one, so that workers exchange packets even if they reduce nothing."""
    longest = -(-elements // workers)
    return max(1, -(-longest // lanes))


def packets_of_round(elements: int, workers: int, lanes: int) -> int:
    """Returns the number of data packets that each worker sends, and also receives, in a round
    without loss: 2 (workers - 1) times `chunks_of_segment`."""
    return 2 * (workers - 1) * chunks_of_segment(elements, workers, lanes)


def predicted_bytes(elements: int, workers: int, lanes: int) -> int:
    """Returns the bytes of data that each worker sends in a round without loss, in Ethernet frames
    without their checksums: `packets_of_round` times (42 + 24 + 4 lanes).

    Acknowledgements go the other way: at least one for every four packets, and at most one for each
    packet. An acknowledgement has 66 bytes if no packet is missing. Otherwise it has 8 bytes more
    for each 64 packets from the first that is missing to the last that came.
    """
    return packets_of_round(elements, workers, lanes) * wire.frame_bytes(lanes)


class RingWorker:
    """The state machine of one worker."""

    def __init__(self, job: RingJob) -> None:
        self.job = job
        self._native = LIBRARY.load()
        _check_layout(self._native)
        self._rounds = 0
        self.agreement = PLAIN
        self.peers, following, preceding = _neighbours(job)
        self.longest_bytes = max(
            wire.datagram_bytes(job.lanes), wire.acknowledgement_bytes(job.window)
        )
        row_bytes = -(-self.longest_bytes // 64) * 64
        rows = job.window + ROWS_BESIDE_DATA
        frames: NDArray[np.uint8] = np.zeros((rows, row_bytes), np.uint8)
        lengths = np.full(rows, wire.datagram_bytes(job.lanes), np.uint32)
        towards = np.full(rows, following, np.uint32)
        towards[job.window :] = preceding, preceding, 0, 1
        self.outbox = Outbox(frames, lengths, towards)
        self._packets: NDArray[np.void] = np.zeros(job.window, PACKET)
        self._queue: NDArray[np.uint32] = np.zeros(2 * job.window + rows, np.uint32)
        self._early: NDArray[np.uint8] = np.zeros((job.window, row_bytes), np.uint8)
        self._early_set: NDArray[np.uint8] = np.zeros(job.window, np.uint8)
        self._taken: NDArray[np.uint64] = np.zeros(1, np.uint64)
        self._values: NDArray = np.zeros(0, np.int32)
        self._out: NDArray = self._values
        self._state = _State(
            job=job.job,
            session=job.session,
            rank=job.rank,
            workers=job.workers,
            lanes=job.lanes,
            window=job.window,
            next=following,
            previous=preceding,
            acknowledge_every=max(1, min(ACKNOWLEDGE_EVERY, job.window // 4)),
            row_bytes=row_bytes,
            acknowledge_after_ns=ACKNOWLEDGE_AFTER_NS,
            recovery=Recovery.of(job.timing, ACKNOWLEDGE_AFTER_NS),
            packets=self._packets.ctypes.data,
            frames=frames.ctypes.data,
            lengths=lengths.ctypes.data,
            queue=self._queue.ctypes.data,
            early=self._early.ctypes.data,
            early_set=self._early_set.ctypes.data,
            round=65535,
            over=1,
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
        total = packets_of_round(values.size, job.workers, job.lanes)
        if total >= 2**31:
            raise ValueError(f"{values.size} elements need {total} packets; the limit is 2^31 - 1")
        state.previous_total, state.previous_digest = state.total, state.digest
        self._values, self._out = values, out
        self._taken = np.zeros(total // 64 + 2, np.uint64)
        state.values, state.out = values.ctypes.data, out.ctypes.data
        state.taken = self._taken.ctypes.data
        state.elements, state.total = values.size, total
        state.is_float = values.dtype == np.float32
        state.chunks = chunks_of_segment(values.size, job.workers, job.lanes)
        state.digest = self._digest(self.agreement)
        state.round = self._rounds % 65536
        self._rounds += 1
        if job.workers == 1:
            np.copyto(out, values)
        self._native.ring_begin(self._address, now_ns)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them the endpoint had waited for.
        The caller must call `poll` next."""
        return self._native.ring_datagrams(
            self._address, now_ns, *inbox.payloads_and_peers, inbox.count
        )

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now, and sets `deadline_ns`. The returned array is
        valid until the next call. Raises RoundTimeout and ShapeMismatch, each once. After that, the
        worker still sends the error to neighbours that do not know of it."""
        count = self._native.ring_poll(self._address, now_ns)
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
        """Whether the round is over, or no round has begun. A round is over when all data packets
        have come, all packets that the worker sent are acknowledged, and the driver has been given
        every acknowledgement that the neighbours wait for."""
        return bool(self._state.over)

    @property
    def listens(self) -> bool:
        """Whether the worker has neighbours. The previous worker in the ring may have missed the
        last acknowledgement, or may already be in the next round."""
        return self.job.workers > 1

    @property
    def chunks(self) -> int:
        """The number of data packets that this worker receives in the round."""
        return self._state.total

    @property
    def chunks_done(self) -> int:
        """The number of data packets that have come in the round."""
        return self._state.taken_count

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return (self._state.recovery,)

    @property
    def in_flight(self) -> int:
        """The number of packets that wait for an acknowledgement."""
        return self._state.in_flight

    @property
    def rto_ns(self) -> int:
        """The retransmission timeout, before back-off."""
        return self._state.rto_ns

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`COUNTERS`); they count from the creation of the endpoint."""
        return {name: getattr(self._state, name) for name in COUNTERS}

    def repeats(self, row: int) -> Repeat | None:
        """Returns the number of the data packet in row `row` if it is sent again. Returns None for
        other packets."""
        if row >= self.job.window or not self._packets["attempt"][row]:
            return None
        packet = self._packets[row]
        return Repeat(None, int(packet["sequence"]), int(packet["first_sent_ns"]))

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [rank, first, last] for runs of packets, first to last. The first items are
        packets that the previous worker in the ring has not delivered. The others are packets that
        the next worker has not acknowledged. rank: the rank of this previous or next worker."""
        if self.job.workers == 1:
            return []
        before, behind = self._ranks()
        data = [[before, *run] for run in self._missing()]
        return [*data, *([behind, *run] for run in self._unacknowledged())][:most]

    def finish(self) -> None:
        """Raises NotFinite, which names the index, if the result contains Inf or NaN. The next
        round may begin even then."""
        assert self.done
        shared.check_finite(self._out, self.job.job)

    def _ranks(self) -> tuple[int, int]:
        rank, workers = self.job.rank, self.job.workers
        return (rank - 1) % workers, (rank + 1) % workers

    def _missing(self) -> list[tuple[int, int]]:
        """Returns runs of the data packets that are missing, from the first missing one to the end
        of the window that begins with it."""
        state = self._state
        bits = np.unpackbits(self._taken.astype("<u8").view(np.uint8), bitorder="little")
        first, end = state.taken_below, min(state.total, state.taken_below + self.job.window)
        return shared.runs((np.flatnonzero(bits[first:end] == 0) + first).tolist())

    def _unacknowledged(self) -> list[tuple[int, int]]:
        waiting = self._packets["waiting"] != 0
        return shared.runs(sorted(self._packets["sequence"][waiting].tolist()))

    def _failure(self, error: int) -> AllReduceError:
        if error == errno.EPROTO:
            return self._mismatch()
        assert error == errno.ETIMEDOUT
        return self._timeout()

    def _digest(self, agreement: Agreement) -> int:
        job, state = self.job, self._state
        is_float = bool(state.is_float)
        return shared.shape_digest(
            state.elements, job.workers, job.lanes, job.window, is_float, 0, agreement
        )

    def _mismatch(self) -> ShapeMismatch:
        job, state = self.job, self._state
        also, another = disagreement(self.agreement, self._digest, state.other_digest)
        dtype = "float32" if state.is_float else "int32"
        return ShapeMismatch(
            f"round {self._rounds - 1} of job {job.job}: this worker reduces {state.elements} "
            f"{dtype} elements with workers {job.workers}, lanes {job.lanes}, window {job.window}"
            f"{also} (digest {state.digest:08x}), another {another} (digest "
            f"{state.other_digest:08x}); all "
            "workers of a job have to reduce alike"
        )

    def _timeout(self) -> RoundTimeout:
        before, behind = self._ranks()
        missing, unacknowledged = self._missing(), self._unacknowledged()
        parts = []
        if missing:
            parts.append(f"packets {shared.words(missing)} from worker {before}")
        if unacknowledged:
            parts.append(
                f"acknowledgement of packets {shared.words(unacknowledged)} by worker {behind}"
            )
        message = f"no {' and no '.join(parts)} of job {self.job.job}"
        return RoundTimeout(f"{message} after {self.job.timing.give_up_ns / 1e9:g} s", missing)


def _neighbours(job: RingJob) -> tuple[tuple[Address, ...], int, int]:
    """Returns the addresses of the neighbours in the ring, and the indices among them of the next
    worker and of the previous one."""
    if job.workers == 1:
        return (), 0, 0
    following = job.peers[(job.rank + 1) % job.workers]
    if job.workers == 2:
        return (following,), 0, 0
    return (following, job.peers[job.rank - 1]), 0, 1


def _check_layout(native: ctypes.CDLL) -> None:
    expected = ctypes.sizeof(_State) << 16 | PACKET.itemsize
    assert native.ring_layout() == expected, "ring.h and worker.py differ"
    check_layout()

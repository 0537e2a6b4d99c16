"""One worker whose chunks switches sum, as a state machine: it is given packets, the time and
deadlines, and says which packets to send and when to ask again. It knows neither sockets nor
clocks.

    worker.begin(now_ns, values, out)
    while not worker.done:
        for slot in worker.poll(now_ns): send(worker.datagram(slot))
        wait for packets until worker.deadline_ns
        worker.on_datagrams(now_ns, inbox)
    worker.finish()

The step per packet is in C (native/worker.c); this module owns its memory (NumPy), starts and ends
rounds and words the errors. Times are integers, nanoseconds of any monotonic clock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import fixed_point, library, wire
from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import AllReduceError
from agglab.hosts.fixed_point import BY_CHUNK, FixedPoint
from agglab.hosts.native_endpoint import NativeEndpoint, native_endpoint
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.hosts.slot_rounds import SlotRounds
from agglab.hosts.slots import KINDS, Job

SLOT = np.dtype(
    [
        *PENDING,
        ("tag", "u4"),
        ("chunk", "u4"),
        ("length", "u4"),
        ("kind", "u1"),
        ("padding", "u1", 3),
    ]
)
"""`struct slot` of native/worker.h."""

COUNTERS = (
    "sent",
    "received",
    "retransmitted",
    "duplicates",
    "late",
    "malformed",
    "timeouts",
    "bytes_sent",
    "bytes_received",
)
"""Packets; bytes are those of Ethernet frames without checksum. `timeouts` are the retransmissions
after a silence, the others follow a gap that later results left."""

FROZEN = ("chunks_done", "in_flight", "disagreed")


class _State(ctypes.Structure):
    """`struct worker` of native/worker.h."""

    _anonymous_ = ("recovery",)
    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("job", "lanes", "window", "value_bits")],
        ("recovery", Recovery),
        ("fixed_point", fixed_point.State),
        *[(name, ctypes.c_void_p) for name in ("slots", "frames", "queue")],
        ("frame_stride", ctypes.c_uint64),
        *[(name, ctypes.c_void_p) for name in ("values", "out", "sums", "exponents")],
        ("elements", ctypes.c_uint64),
        *[(name, ctypes.c_uint8 * wire.SHAPE_BYTES) for name in ("shape", "smallest", "largest")],
        *[
            (name, ctypes.c_uint32)
            for name in ("disagreed", "kind", "workers", "chunks", "chunks_done", "queued")
        ],
        *[
            (name, ctypes.c_uint64)
            for name in COUNTERS
            if name not in ("retransmitted", "timeouts")
        ],
    ]


class Worker:
    """The state of one worker; rounds follow one another on the same slots and tags."""

    listens = False
    dtypes = tuple(KINDS)

    def __init__(
        self,
        job: Job,
        timing: Timing = Timing(),
        aggregator: Address = wire.AGGREGATOR,
        floats: FixedPoint = BY_CHUNK,
    ) -> None:
        assert job.wire_bits is None or (floats.bits or 33) <= job.wire_bits
        self.job, self.timing = job, timing
        self.peers = (aggregator,)
        self._native = library.load()
        _check_layout(self._native)
        self.slots: NDArray[np.void] = np.zeros(job.window, SLOT)
        self.slots["tag"] = (job.first_tag - 1) % 2**32
        stride = -(-wire.longest_datagram_bytes(job.lanes) // 64) * 64
        self.frames: NDArray[np.uint8] = np.zeros((job.window, stride), np.uint8)
        """The datagram each slot has in flight, one a row; its length is `slots["length"]`."""
        self._queue: NDArray[np.uint32] = np.zeros(job.window, np.uint32)
        self._state = _State(
            job=job.job,
            lanes=job.lanes,
            window=job.window,
            value_bits=floats.value_bits(job.workers),
            workers=job.workers,
            recovery=Recovery.of(timing),
            fixed_point=floats.state(job.workers),
            slots=self.slots.ctypes.data,
            frames=self.frames.ctypes.data,
            queue=self._queue.ctypes.data,
            frame_stride=stride,
        )
        self.address = ctypes.addressof(self._state)
        nobody_else = np.zeros(job.window, np.uint32)
        self.outbox = Outbox(self.frames, self.slots["length"], nobody_else)
        self.longest_bytes = wire.longest_datagram_bytes(job.lanes)
        self.rounds = SlotRounds(job, self._state, self.slots, "chunk")

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None = None,
    ) -> None:
        """Start a round: sum `values` (flat, contiguous, aligned, int32, float32 or float16) over
        all workers into `out`.

        `out` has the same shape and dtype and may be `values` itself; `sums` takes the integers the
        switch returned. All three belong to the worker until the round is done. The round before
        must be done.
        """
        assert self.done, "a round is under way"
        self._state.chunks = self.rounds.begin(values, out, sums)
        self._state.kind = self.job.kind(values.dtype)
        self._native.worker_begin(self.address, now_ns)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Take the datagrams that came at `now_ns`; returns how many were awaited results. Call
        `poll` next."""
        return self._native.worker_results(
            self.address,
            now_ns,
            inbox.rows_address,
            inbox.row_bytes,
            inbox.lengths_address,
            inbox.count,
        )

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """The slots whose datagrams are to be sent now, valid until the next call; sets
        `deadline_ns`.

        Raises RoundTimeout, naming what is missing, when no awaited result came for the give-up
        time, and ShapeMismatch, naming this worker's shape and another, when the job's workers did
        not begin the same round.
        """
        count = self._native.worker_poll(self.address, now_ns)
        if count < 0:
            raise self.failure(-count)
        return self._queue[:count]

    def failure(self, error: int) -> AllReduceError:
        """Returns the error for an error number of the step in C."""
        return self.rounds.failure(error, self.timing.give_up_ns)

    def native(self, inbox: Inbox) -> NativeEndpoint:
        """See hosts/native_endpoint.py. inbox: room for what comes."""
        return native_endpoint(
            self._state,
            self._native.worker_results,
            self._native.worker_poll,
            self._queue,
            self.outbox,
            self.slots,
            inbox,
        )

    @property
    def deadline_ns(self) -> int:
        """When to call `poll` although no packet came (the largest int64 if never); as of the last
        `poll`."""
        return self._state.deadline_ns

    @property
    def done(self) -> bool:
        """All chunks of the round are summed (or no round has begun)."""
        return not self._state.in_flight and not self._state.disagreed

    @property
    def chunks(self) -> int:
        """How many chunks the round has."""
        return self._state.chunks

    @property
    def chunks_done(self) -> int:
        """How many of them are summed."""
        return self._state.chunks_done

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The loss recoveries, which know round trips and latencies (hosts/recording.py)."""
        return (self._state.recovery,)

    @property
    def in_flight(self) -> int:
        """How many slots wait for a result."""
        return self._state.in_flight

    @property
    def rto_ns(self) -> int:
        """The retransmission timeout, before back-off."""
        return self._state.rto_ns

    @property
    def counters(self) -> dict[str, int]:
        """What was counted since the worker was made (`COUNTERS`, `fixed_point.COUNTERS`)."""
        own, floats = self._state, self._state.fixed_point
        counted = {name: getattr(own, name) for name in COUNTERS}
        return counted | {name: getattr(floats, name) for name in fixed_point.COUNTERS}

    def datagram(self, slot: int) -> bytes:
        """The UDP payload that `slot` has in flight."""
        return self.outbox.datagram(slot)

    def repeats(self, row: int) -> Repeat | None:
        """The slot and tag of a contribution that is sent again."""
        slot = self.slots[row]
        if not slot["attempt"]:
            return None
        return Repeat(row, int(slot["tag"]), int(slot["first_sent_ns"]))

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, slot, tag] of slots that have no result, at most so many."""
        return self.rounds.waiting(most)

    def snapshot(self) -> bytes:
        """Returns what the worker holds and waits for, without times and counts, for
        `restore` of the same worker within the same round. No packet may be queued for `poll`."""
        slots = self.slots.copy()
        for name in ("sent_ns", "first_sent_ns", "order", "first_order"):
            slots[name] = 0
        counts = np.array([getattr(self._state, name) for name in FROZEN], np.uint32)
        return b"".join(array.tobytes() for array in (counts, slots, *self._held()))

    def restore(self, snapshot: bytes) -> None:
        """Restores the state that `snapshot` returned."""
        counts = np.frombuffer(snapshot, np.uint32, len(FROZEN))
        for name, count in zip(FROZEN, counts.tolist(), strict=True):
            setattr(self._state, name, count)
        at = counts.nbytes
        for array in (self.slots, *self._held()):
            array[...] = np.frombuffer(snapshot, array.dtype, array.size, at).reshape(array.shape)
            at += array.nbytes

    def _held(self) -> list[NDArray]:
        rounds = self.rounds
        arrays: list[NDArray] = [self.frames, rounds.exponents, rounds.out]
        return arrays if rounds.sums is None else [*arrays, rounds.sums]

    def finish(self) -> None:
        """Raise NotFinite if the finished round has no finite result. The next round may begin all
        the same: the slots of all workers are in step."""
        assert self.done
        self.rounds.finish()


def _check_layout(native: ctypes.CDLL) -> None:
    expected = ctypes.sizeof(_State) << 16 | SLOT.itemsize
    assert native.worker_layout() == expected, "native/worker.h and hosts/worker.py differ"
    check_layout()

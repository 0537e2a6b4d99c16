"""One worker whose chunks are summed by switches, as a state machine. Its methods are given packets
and the time. They return the packets to send and the time of the next call. The worker uses neither
sockets nor clocks.

    worker.begin(now_ns, values, out)
    while not worker.done:
        for slot in worker.poll(now_ns): send(worker.datagram(slot))
        wait for packets until worker.deadline_ns
        worker.on_datagrams(now_ns, inbox)
    worker.finish()

C code processes the packets (worker.c). This module allocates the memory (NumPy arrays),
starts and ends rounds, and writes the error messages. Times are integers, nanoseconds of any
monotonic clock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library, wire
from agglab.hosts.agreement import PLAIN
from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import AllReduceError
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.hosts.native_endpoint import NativeEndpoint, native_endpoint
from agglab.hosts.pieces import Pieces
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.hosts.slot_rounds import SlotRounds
from agglab.hosts.slots import Job
from agglab.systems.switchml import fixed_point, presence
from agglab.systems.switchml.fixed_point import BY_CHUNK, FixedPoint

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
"""`struct slot` of worker.h."""

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
"""Names of the counters. They count packets; bytes are those of Ethernet frames without checksum.
`timeouts` counts the retransmissions that follow a silence. The other retransmissions happen
because results of later packets have come."""

FROZEN = ("chunks_done", "in_flight", "disagreed")


LIBRARY = library.SystemLibrary(
    __file__,
    {},
    {
        "worker_begin": (None, [P, I64]),
        "worker_results": (U32, [P, I64, P, U64, P, U32]),
        "worker_poll": (INT, [P, I64]),
        "worker_layout": (U32, []),
    },
)


class _State(ctypes.Structure):
    """The ctypes equivalent of `struct worker` in worker.h."""

    _anonymous_ = ("recovery",)
    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("job", "lanes", "window", "value_bits")],
        *[(name, ctypes.c_uint32) for name in ("version", "header_bytes")],
        ("recovery", Recovery),
        ("fixed_point", fixed_point.State),
        *[(name, ctypes.c_void_p) for name in ("slots", "frames", "queue")],
        ("frame_stride", ctypes.c_uint64),
        *[(name, ctypes.c_void_p) for name in ("values", "out", "sums", "pieces")],
        ("exponents", ctypes.c_void_p),
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
        ("presence", presence.State),
    ]


class Worker:
    """The state machine of one worker. All rounds use the same slots, and the tags continue from
    round to round."""

    listens = False

    def __init__(
        self,
        job: Job,
        timing: Timing = Timing(),
        aggregator: Address = wire.AGGREGATOR,
        floats: FixedPoint = BY_CHUNK,
    ) -> None:
        if job.wire_bits is not None and (floats.bits is None or floats.bits > job.wire_bits):
            raise ValueError(
                f"bits is {floats.bits}; with wire_bits it must be at most {job.wire_bits}"
            )
        self.job, self.timing = job, timing
        self.dtypes = job.dtypes
        self.peers = (aggregator,)
        self._native = LIBRARY.load()
        _check_layout(self._native)
        self.slots: NDArray[np.void] = np.zeros(job.window, SLOT)
        self.slots["tag"] = (job.first_tag - 1) % 2**32
        version, header_bytes = wire.VERSION, wire.HEADER_BYTES
        if job.deadline_ns is not None:
            version = wire.VERSION_WITH_PRESENCE
            header_bytes += wire.PRESENCE_BYTES
        longest_bytes = wire.longest_datagram_bytes(job.lanes) + header_bytes - wire.HEADER_BYTES
        stride = -(-longest_bytes // 64) * 64
        self.frames: NDArray[np.uint8] = np.zeros((job.window, stride), np.uint8)
        """The datagram that each slot has in flight, one in each row. Its length is
        `slots["length"]`."""
        self._queue: NDArray[np.uint32] = np.zeros(job.window, np.uint32)
        self._state = _State(
            job=job.job,
            lanes=job.lanes,
            window=job.window,
            value_bits=floats.value_bits(job.workers),
            workers=job.workers,
            version=version,
            header_bytes=header_bytes,
            recovery=Recovery.of(timing, ask_ns=job.deadline_ns or 0),
            fixed_point=floats.state(job.workers),
            slots=self.slots.ctypes.data,
            frames=self.frames.ctypes.data,
            queue=self._queue.ctypes.data,
            frame_stride=stride,
        )
        self.address = ctypes.addressof(self._state)
        nobody_else = np.zeros(job.window, np.uint32)
        # With a deadline, sums go on to arrive without this worker until all sets are in use.
        answers = 1 if job.deadline_ns is None else job.sets
        self.outbox = Outbox(self.frames, self.slots["length"], nobody_else, answers)
        self.longest_bytes = longest_bytes
        self.rounds = SlotRounds(job, self._state, self.slots, "chunk")
        self._pieces: Pieces | None = None
        self.agreement = PLAIN

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None = None,
    ) -> None:
        """Starts a round: sums `values` over all workers into `out`. The round before must be done.

        `values` is flat, contiguous and aligned, of int32, float32, float16 or
        bfloat16.BFLOAT16. `out` has the same shape and dtype and may be `values` itself. `sums`
        takes the integers that the switch returned. The three arrays belong to the worker until the
        round is done.
        """
        assert self.done, "a round is under way"
        self._state.chunks = self.rounds.begin(values, out, sums, self.agreement)
        self._pieces, self._state.pieces = None, None
        self._begin(now_ns, values.dtype)

    def piece_elements(self, dtype: np.dtype) -> int:
        """Returns the number of values in a chunk (pieces.TakesPieces)."""
        return self.job.values_per_chunk(dtype)

    def begin_in_pieces(self, now_ns: int, pieces: Pieces) -> None:
        """Starts a round without whole arrays (pieces.TakesPieces)."""
        assert self.done, "a round is under way"
        self._state.chunks = self.rounds.begin_in_pieces(pieces.inputs)
        self._pieces, self._state.pieces = pieces, pieces.address
        self._begin(now_ns, pieces.inputs.dtype)

    def _begin(self, now_ns: int, dtype: np.dtype) -> None:
        self._state.kind = self.job.kind(dtype)
        if self.job.deadline_ns is not None:
            self.rounds.presence = np.zeros(self._state.chunks, np.uint64)
            self._state.presence.of_chunks = self.rounds.presence.ctypes.data
        self._native.worker_begin(self.address, now_ns)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`, which came at `now_ns`. Returns how many of them were
        results that the worker waits for. The caller must call `poll` next."""
        return self._native.worker_results(self.address, now_ns, *inbox.payloads, inbox.count)

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the slots whose datagrams are to be sent now, and sets `deadline_ns`. The
        returned array is valid until the next call.

        Raises RoundTimeout, which names what is missing, when no result that the worker waits for
        has come for the give-up time. Raises ShapeMismatch, which names this worker's shape and
        another, when the job's workers did not begin the same round.
        """
        count = self._native.worker_poll(self.address, now_ns)
        if count < 0:
            raise self.failure(-count)
        return self._queue[:count]

    def failure(self, error: int) -> AllReduceError:
        """Returns the exception for an error number that the C code returned."""
        return self.rounds.failure(error, self.timing.give_up_ns)

    def native(self, inbox: Inbox) -> NativeEndpoint:
        """Returns the structure by which C code drives the worker (hosts/native_endpoint.py).
        inbox: room for received datagrams."""
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
        """The time at which `poll` must be called even if no packet has come. The last call of
        `poll` has set it. It is the largest int64 if `poll` need not be called."""
        return self._state.deadline_ns

    @property
    def done(self) -> bool:
        """Whether all chunks of the round are summed, or no round has begun."""
        return not self._state.in_flight and not self._state.disagreed

    @property
    def chunks(self) -> int:
        """The number of chunks of the round."""
        return self._state.chunks

    @property
    def chunks_done(self) -> int:
        """The number of chunks of the round that are summed."""
        return self._state.chunks_done

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` of the worker, from which hosts/recording.py reads round trips and
        latencies."""
        return (self._state.recovery,)

    @property
    def in_flight(self) -> int:
        """The number of slots that wait for a result."""
        return self._state.in_flight

    @property
    def rto_ns(self) -> int:
        """The retransmission timeout, before back-off."""
        return self._state.rto_ns

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`COUNTERS`, `fixed_point.COUNTERS`); they count from the creation
        of the worker."""
        own, floats = self._state, self._state.fixed_point
        counted = {name: getattr(own, name) for name in COUNTERS}
        counted |= {name: getattr(floats, name) for name in fixed_point.COUNTERS}
        counted |= {name: getattr(own.presence, name) for name in presence.HELD}
        return counted | {"asked": self._state.asked}

    @property
    def presence(self) -> NDArray[np.uint64] | None:
        """The workers whose contributions are in the sum of each chunk of the round, as bits; None
        if the job has no deadline, so that each sum has everybody's."""
        return None if self.job.deadline_ns is None else self.rounds.presence

    def datagram(self, slot: int) -> bytes:
        """Returns the UDP payload of the contribution in slot `slot`."""
        return self.outbox.datagram(slot)

    def repeats(self, row: int) -> Repeat | None:
        """Returns the slot and tag of the contribution in row `row` if it is sent again. Returns
        None if it is sent for the first time."""
        slot = self.slots[row]
        if not slot["attempt"]:
            return None
        return Repeat(row, int(slot["tag"]), int(slot["first_sent_ns"]))

    @property
    def packets(self) -> NDArray[np.void]:
        """The contributions by slot (hosts.endpoint.Packets)."""
        return self.slots

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, slot, tag, how often it was sent again] of slots that wait for a result,
        at most `most` of them. If the job has a deadline, the number of sets follows."""
        sets = [] if self.job.deadline_ns is None else [self.job.sets]
        return [[*entry, *sets] for entry in self.rounds.waiting(most)]

    def snapshot(self) -> bytes:
        """Returns the state of the worker, without times and counts. `restore` of the same worker
        accepts it within the same round. No packet may be queued for `poll`."""
        slots = self.slots.copy()
        for name in ("sent_ns", "first_sent_ns", "order", "first_order"):
            slots[name] = 0
        counts = np.array([getattr(self._state, name) for name in FROZEN], np.uint32)
        return b"".join(array.tobytes() for array in (counts, slots, *self._held()))

    def restore(self, snapshot: bytes) -> None:
        """Restores a state that `snapshot` has returned."""
        counts = np.frombuffer(snapshot, np.uint32, len(FROZEN))
        for name, count in zip(FROZEN, counts.tolist(), strict=True):
            setattr(self._state, name, count)
        at = counts.nbytes
        for array in (self.slots, *self._held()):
            array[...] = np.frombuffer(snapshot, array.dtype, array.size, at).reshape(array.shape)
            at += array.nbytes

    def _held(self) -> list[NDArray]:
        rounds = self.rounds
        arrays: list[NDArray] = [self.frames, rounds.exponents, rounds.presence, rounds.out]
        return arrays if rounds.sums is None else [*arrays, rounds.sums]

    def finish(self) -> None:
        """Raises NotFinite if the finished round has no finite result. Even then the next round may
        begin, because the slots of all workers are in step."""
        assert self.done
        self.rounds.finish()


def _check_layout(native: ctypes.CDLL) -> None:
    expected = ctypes.sizeof(_State) << 16 | SLOT.itemsize
    assert native.worker_layout() == expected, "worker.h and worker.py differ"
    check_layout()

"""One worker whose chunks are summed by switches, as a state machine. Its methods are given packets
and the time. They return the packets to send and the time of the next call. The worker uses neither
sockets nor clocks.

    worker.begin(now_ns, values, out)
    while not worker.done:
        for slot in worker.poll(now_ns): send(worker.datagram(slot))
        wait for packets until worker.deadline_ns
        worker.on_datagrams(now_ns, inbox)
    worker.finish()

C code processes the packets (worker.c, state.py). This module allocates the memory (NumPy arrays),
starts and ends rounds, and writes the error messages. Times are integers, nanoseconds of any
monotonic clock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared, wire
from agglab.hosts.agreement import PLAIN
from agglab.hosts.endpoint import Address, Repeat
from agglab.hosts.errors import AllReduceError
from agglab.hosts.native_endpoint import NativeEndpoint
from agglab.hosts.pieces import Pieces
from agglab.hosts.recovery import Recovery, Timing
from agglab.hosts.slot_rounds import SlotRounds
from agglab.hosts.slots import Job
from agglab.systems.switchml import fixed_point, presence
from agglab.systems.switchml.fixed_point import BY_CHUNK, FixedPoint
from agglab.systems.switchml.state import LIBRARY, SLOT, WorkerState

COUNTERS = tuple(shared.COUNTERS)
"""Names of the counters. They count packets; bytes are those of Ethernet frames without checksum.
`timeouts` counts the retransmissions that follow a silence. The other retransmissions happen
because results of later packets have come."""

FROZEN = ("chunks_done", "done", "error")


class Worker(NativeEndpoint):
    """The state machine of one worker. All rounds use the same slots, and the tags continue from
    round to round."""

    COUNTERS = (*COUNTERS, *fixed_point.COUNTERS, *presence.COUNTERS)

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
        self.slots: NDArray[np.void] = np.zeros(job.window, SLOT)
        self.slots["tag"] = (job.first_tag - 1) % 2**32
        version, header_bytes = wire.VERSION, wire.HEADER_BYTES
        if job.deadline_ns is not None:
            version = wire.VERSION_WITH_PRESENCE
            header_bytes += wire.PRESENCE_BYTES
        longest_bytes = wire.longest_datagram_bytes(job.lanes) + header_bytes - wire.HEADER_BYTES
        # With a deadline, sums go on to arrive without this worker until all sets are in use.
        answers = 1 if job.deadline_ns is None else job.sets
        rows = shared.outbox_of(job.window, longest_bytes)
        outbox = rows._replace(lengths=self.slots["length"], answers=answers)
        self.frames = outbox.frames
        """The datagram that each slot has in flight, one in each row. Its length is
        `slots["length"]`."""
        state = WorkerState(
            job=job.job,
            lanes=job.lanes,
            window=job.window,
            value_bits=floats.value_bits(job.workers),
            workers=job.workers,
            version=version,
            header_bytes=header_bytes,
            fixed_point=floats.state(job.workers),
            slots=self.slots,
        )
        native, peers = LIBRARY.load(), (aggregator,)
        super().__init__(state, native, "worker", peers, outbox, longest_bytes, job.window)
        recovery = Recovery.of(timing, ask_ns=job.deadline_ns or 0)
        self.wait_for_answers([recovery], self.slots, wire.HEADER, rows_are_slots=True)
        self.rounds = SlotRounds(job, state, self.slots, "chunk")
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
        self.rounds.begin(values, out, sums, self.agreement)
        self._pieces, self.state.pieces = None, None
        self._begin_round(now_ns, values.dtype)

    def piece_elements(self, dtype: np.dtype) -> int:
        """Returns the number of values in a chunk (pieces.TakesPieces)."""
        return self.job.values_per_chunk(dtype)

    def begin_in_pieces(self, now_ns: int, pieces: Pieces) -> None:
        """Starts a round without whole arrays (pieces.TakesPieces)."""
        assert self.done, "a round is under way"
        self.rounds.begin_in_pieces(pieces.inputs)
        self._pieces, self.state.pieces = pieces, pieces.address
        self._begin_round(now_ns, pieces.inputs.dtype)

    def _begin_round(self, now_ns: int, dtype: np.dtype) -> None:
        self.state.kind = self.job.kind(dtype)
        if self.job.deadline_ns is not None:
            self.rounds.presence = np.zeros(self.chunks, np.uint64)
            self.state.presence.of_chunks = self.rounds.presence.ctypes.data
        self._begin(self._address, now_ns)

    def failure(self, error: int) -> AllReduceError:
        """See NativeEndpoint.failure."""
        return self.rounds.failure(error, self.timing.give_up_ns)

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
        frozen = (getattr(self.head, name) for name in FROZEN)
        counts = np.array([*frozen, self.in_flight], np.uint32)
        return b"".join(array.tobytes() for array in (counts, slots, *self._held()))

    def restore(self, snapshot: bytes) -> None:
        """Restores a state that `snapshot` has returned."""
        counts = np.frombuffer(snapshot, np.uint32, len(FROZEN) + 1)
        *frozen, self.recoveries[0].in_flight = counts.tolist()
        for name, count in zip(FROZEN, frozen, strict=True):
            setattr(self.head, name, count)
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

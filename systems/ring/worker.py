"""One worker of a ring all-reduce as a state machine (hosts/endpoint.py; README.md).

C code processes the packets (ring.c, state.py). This module allocates the memory (NumPy arrays),
starts and ends rounds, and writes the error messages. Times are integers, nanoseconds of any
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.agreement import PLAIN, Agreement, disagreement
from agglab.hosts.endpoint import Address, Repeat
from agglab.hosts.errors import RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.native_endpoint import NativeWorker
from agglab.hosts.recovery import Recovery, Timing
from agglab.systems.ring import wire
from agglab.systems.ring.state import LIBRARY, PACKET, Ring

ACKNOWLEDGE_EVERY = 4
ACKNOWLEDGE_AFTER_NS = 1_000_000
"""ACKNOWLEDGE_EVERY is the number of packets that one acknowledgement covers. An acknowledgement of
fewer packets is sent after ACKNOWLEDGE_AFTER_NS."""
ROWS_BESIDE_DATA = 4
MAX_WORKERS = 65535

OWN_COUNTERS = {
    "acknowledgements": ("packets", "acknowledgements sent; they are in `sent` too"),
    "acknowledgement_bytes": ("bytes", "bytes of the frames with acknowledgements that were sent"),
    "early_packets": ("packets", "packets of the next round, kept until this worker begins it"),
}
COUNTERS = {**shared.COUNTERS, **OWN_COUNTERS}
"""The counters of a worker, each with its unit and meaning."""


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


class RingWorker(NativeWorker):
    """The state machine of one worker."""

    COUNTERS = tuple(COUNTERS)

    def __init__(self, job: RingJob) -> None:
        self.job = job
        self._rounds = 0
        self.agreement = PLAIN
        peers, following, preceding = _neighbours(job)
        data_bytes = wire.datagram_bytes(job.lanes)
        longest_bytes = max(data_bytes, wire.acknowledgement_bytes(job.window))
        outbox = shared.outbox_of(job.window + ROWS_BESIDE_DATA, longest_bytes)
        outbox.lengths[:] = data_bytes
        outbox.peers[:] = following
        outbox.peers[job.window :] = preceding, preceding, 0, 1
        self._packets: NDArray[np.void] = np.zeros(job.window, PACKET)
        self._early = np.zeros((job.window, outbox.frames.shape[1]), np.uint8)
        self._early_set: NDArray[np.uint8] = np.zeros(job.window, np.uint8)
        self._taken: NDArray[np.uint64] = np.zeros(1, np.uint64)
        self._out: NDArray = np.zeros(0, np.int32)
        state = Ring(
            job=job.job,
            session=job.session,
            rank=job.rank,
            workers=job.workers,
            lanes=job.lanes,
            window=job.window,
            next=following,
            previous=preceding,
            acknowledge_every=max(1, min(ACKNOWLEDGE_EVERY, job.window // 4)),
            acknowledge_after_ns=ACKNOWLEDGE_AFTER_NS,
            packets=self._packets,
            early=self._early,
            early_set=self._early_set,
            round=65535,
        )
        rows = 2 * job.window + len(outbox.frames)
        super().__init__(state, LIBRARY.load(), "ring", peers, outbox, longest_bytes, rows)
        recovery = Recovery.of(job.timing, ACKNOWLEDGE_AFTER_NS)
        self.wait_for_answers([recovery], self._packets, wire.HEADER)
        # The worker before this one may have missed the last acknowledgement, or be a round ahead.
        self.listens = job.workers > 1

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
        job, state = self.job, self.state
        packets = packets_of_round(values.size, job.workers, job.lanes)
        if packets >= 2**31:
            raise ValueError(
                f"{values.size} elements need {packets} packets; the limit is 2^31 - 1"
            )
        state.previous_packets, state.previous_digest = state.chunks, state.digest
        self._out = out
        self._taken = np.zeros(packets // 64 + 2, np.uint64)
        state.values, state.out, state.taken = values, out, self._taken
        state.elements, state.chunks = values.size, packets
        state.is_float = values.dtype == np.float32
        state.segment_chunks = chunks_of_segment(values.size, job.workers, job.lanes)
        state.digest = self._digest(self.agreement)
        state.round = self._rounds % 65536
        self._rounds += 1
        if job.workers == 1:
            np.copyto(out, values)
        self._begin(self._address, now_ns)

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
        state = self.state
        bits = np.unpackbits(self._taken.astype("<u8").view(np.uint8), bitorder="little")
        first, end = state.taken_below, min(state.chunks, state.taken_below + self.job.window)
        return shared.runs((np.flatnonzero(bits[first:end] == 0) + first).tolist())

    def _unacknowledged(self) -> list[tuple[int, int]]:
        waiting = self._packets["waiting"] != 0
        return shared.runs(sorted(self._packets["sequence"][waiting].tolist()))

    def _digest(self, agreement: Agreement) -> int:
        job, state = self.job, self.state
        is_float = bool(state.is_float)
        return shared.shape_digest(
            state.elements, job.workers, job.lanes, job.window, is_float, 0, agreement
        )

    def mismatch(self) -> ShapeMismatch:
        job, state = self.job, self.state
        dtype = "float32" if state.is_float else "int32"
        size = f"{state.elements} {dtype} elements"
        shape = f"{size} with workers {job.workers}, lanes {job.lanes}, window {job.window}"
        where = f"round {self._rounds - 1} of job {job.job}"
        told = self.agreement, self._digest, state.other_digest
        return ShapeMismatch(disagreement(where, shape, *told, members="all workers of a job"))

    def timeout(self) -> RoundTimeout:
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

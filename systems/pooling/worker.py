"""A worker whose chunks share the slots of switches with other jobs, as a state machine
(hosts/endpoint.py; README.md).

C code processes the packets (worker.c, state.py). This module allocates the memory (NumPy arrays),
starts and ends rounds, and writes the error messages. Times are integers, nanoseconds of any
monotonic clock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.agreement import PLAIN, Agreement, disagreement
from agglab.hosts.endpoint import Address, Repeat
from agglab.hosts.errors import RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.native_endpoint import NativeWorker
from agglab.hosts.native_structures import AimdState
from agglab.hosts.recovery import Recovery, Timing
from agglab.hosts.wire import AGGREGATOR
from agglab.systems.pooling import wire
from agglab.systems.pooling.hashed_slots import hashed_slots
from agglab.systems.pooling.job import PoolingJob, common_of
from agglab.systems.pooling.state import LIBRARY, POSITION, Worker

WINDOW_LEAST = 4
"""The number of packets that may always be in flight. With fewer, no later results would show that
a packet was lost."""

OWN_COUNTERS = {
    "halved": ("times", "how often congestion control halved the window"),
    "marked": ("packets", "results that carry a congestion mark"),
    "overflown": ("chunks", "chunks that did not fit the scale and were summed as floats"),
}
"""The counters that this system's workers have besides `shared.COUNTERS`."""


def chunks_of_round(elements: int, lanes: int) -> int:
    """Returns the number of chunks that each worker sends in a round. It is at least one, so that
    workers exchange packets even if they reduce nothing."""
    return max(1, -(-elements // lanes))


class PoolingWorker(NativeWorker):
    """The state machine of one worker. The tags continue from round to round."""

    COUNTERS = (*shared.COUNTERS, *OWN_COUNTERS)

    def __init__(
        self,
        job: PoolingJob,
        rank: int,
        timing: Timing = Timing(),
        aggregator: Address = AGGREGATOR,
        repair_ns: int = 0,
    ) -> None:
        """Makes the worker. repair_ns: how much longer a silence has to last, because the server's
        link may be busy with contributions that workers send again."""
        check_range("rank", rank, 0, job.workers - 1)
        self.job, self.rank, self.timing = job, rank, timing
        self._next_tag = self._rounds = 0
        self.agreement = PLAIN
        longest_bytes = wire.datagram_bytes(job.lanes)
        self._positions: NDArray[np.void] = np.zeros(job.window, POSITION)
        self._slots = hashed_slots(job.job, job.window, job.first_slot, job.slots)
        self._out: NDArray = np.zeros(0, np.int32)
        least = min(WINDOW_LEAST, job.window) if job.congestion_control else job.window
        state = Worker(
            **common_of(job),
            positions=self._positions,
            slots=self._slots,
            scale_log2=job.scale_log2,
            value_bits=job.value_bits,
            priority=job.priority,
            slot_count=self._slots.size,
            aimd=AimdState(window=job.window, least=least, most=job.window, left=job.window),
        )
        outbox, rows = shared.outbox_of(job.window, longest_bytes), 2 * job.window
        native, peers = LIBRARY.load(), (aggregator,)
        super().__init__(state, native, "pooling_worker", peers, outbox, longest_bytes, rows)
        self.wait_for_answers([Recovery.of(timing, repair_ns)], self._positions, wire.HEADER)

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """Starts the next round (Endpoint.begin). `sums` takes the integers that were summed, and 0
        for values that were summed as floats."""
        assert self.done, "a round is under way"
        shared.check_arrays(values, out)
        assert sums is None or (sums.dtype == np.int32 and sums.shape == values.shape)
        job, state = self.job, self.state
        chunks = chunks_of_round(values.size, job.lanes)
        if self._next_tag + chunks >= 2**31:
            raise ValueError("no tags are left in this session: its rounds had 2^31 chunks")
        self._out = out
        state.values, state.out, state.sums = values, out, sums
        state.elements, state.chunks = values.size, chunks
        state.is_float = values.dtype == np.float32
        state.digest = self._digest(self.agreement)
        state.first_tag = self._next_tag
        self._next_tag += chunks
        self._rounds += 1
        self._begin(self._address, now_ns)

    def repeats(self, row: int) -> Repeat | None:
        """Returns the slot and tag of the contribution in row `row` if it is sent again. Returns
        None if it is sent for the first time."""
        position = self._positions[row]
        if not position["attempt"]:
            return None
        _, slot, tag = self._where(int(position["chunk"]))
        before = self._slot_of(tag - self.job.window), (tag - self.job.window) % 2**32
        return Repeat(slot, tag, int(position["first_sent_ns"]), before=before)

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, slot, tag, how often it was sent again] of contributions that wait for a
        result, at most `most` of them."""
        waits = self._positions[self._positions["waiting"] != 0]
        pairs = sorted(zip(waits["chunk"].tolist(), waits["attempt"].tolist(), strict=True))
        return [[*self._where(chunk), again] for chunk, again in pairs[:most]]

    def _where(self, chunk: int) -> list[int]:
        tag = self.state.first_tag + chunk
        return [chunk, self._slot_of(tag), tag]

    def _slot_of(self, tag: int) -> int:
        return int(self._slots[tag % self._slots.size])

    def finish(self) -> None:
        """Raises NotFinite, which names the index, if the result contains Inf or NaN. The next
        round may begin even then."""
        assert self.done
        shared.check_finite(self._out, self.job.job)

    def _digest(self, agreement: Agreement) -> int:
        return self.job.digest(self.state.elements, bool(self.state.is_float), agreement)

    def _count(self, name: str) -> int:
        """See NativeEndpoint.counters. The window has a field `marked`, too."""
        return self.state.aimd.halved if name == "halved" else super()._count(name)

    def mismatch(self) -> ShapeMismatch:
        job, state = self.job, self.state
        dtype = "float32" if state.is_float else "int32"
        size = f"{state.elements} {dtype} elements"
        shape = f"{size} with workers {job.workers}, lanes {job.lanes}, window {job.window}"
        where = f"round {self._rounds - 1} of job {job.job}"
        told = self.agreement, self._digest, state.other_digest
        return ShapeMismatch(disagreement(where, shape, *told))

    def timeout(self) -> RoundTimeout:
        ranges = shared.runs([chunk for chunk, *_ in self.waiting(self.job.window)])
        return RoundTimeout(
            f"no result for chunks {shared.words(ranges)} of job {self.job.job} after "
            f"{self.timing.give_up_ns / 1e9:g} s",
            ranges,
        )

"""A worker whose chunks share the slots of switches with other jobs, as a state machine
(hosts/endpoint.py; README.md).

C code processes the packets (worker.c). This module allocates the memory (NumPy arrays), starts and
ends rounds, and writes the error messages. Times are integers, nanoseconds of any monotonic clock.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.agreement import PLAIN, Agreement, disagreement
from agglab.hosts.endpoint import Address, Inbox, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.hosts.wire import AGGREGATOR
from agglab.systems.pooling import wire
from agglab.systems.pooling.hashed_slots import hashed_slots
from agglab.systems.pooling.job import (
    LIBRARY,
    Common,
    PoolingJob,
    common_of,
    outbox_of,
)

WINDOW_LEAST = 4
"""The number of packets that may always be in flight. With fewer, no later results would show that
a packet was lost."""

OWN_COUNTERS = {
    "halved": ("times", "how often congestion control halved the window"),
    "marked": ("packets", "results that carry a congestion mark"),
    "overflown": ("chunks", "chunks that did not fit the scale and were summed as floats"),
}
"""The counters that this system's workers have besides `shared.COUNTERS`."""

POSITION = np.dtype([*PENDING, ("chunk", "u4"), ("floats", "u4")])
"""`struct pooling_position` of pooling.h."""


class Aimd(ctypes.Structure):
    """The ctypes equivalent of `struct aimd` in native/aimd.h."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in ("window", "least", "most", "left", "marked", "knows", "halved")
    ]


class _Worker(ctypes.Structure):
    """The ctypes equivalent of `struct pooling_worker` in pooling.h."""

    _anonymous_ = ("common", "recovery")
    _fields_ = [
        ("common", Common),
        ("recovery", Recovery),
        *[(name, ctypes.c_void_p) for name in ("positions", "slots", "values", "out", "sums")],
        ("elements", ctypes.c_uint64),
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("is_float", "chunks", "chunks_done", "first_tag", "oldest", "next", "digest"),
                "begun",
            )
        ],
        ("scale_log2", ctypes.c_int32),
        *[(name, ctypes.c_uint32) for name in ("value_bits", "priority", "slot_count")],
        ("aimd", Aimd),
        *[(name, ctypes.c_uint64) for name in ("marked", "overflown", "again_answered")],
    ]


def chunks_of_round(elements: int, lanes: int) -> int:
    """Returns the number of chunks that each worker sends in a round. It is at least one, so that
    workers exchange packets even if they reduce nothing."""
    return max(1, -(-elements // lanes))


class PoolingWorker:
    """The state machine of one worker. The tags continue from round to round."""

    listens = False
    """False, because a server answers only what a worker has asked."""

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
        self.peers = (aggregator,)
        self.longest_bytes = wire.datagram_bytes(job.lanes)
        self._native = LIBRARY.load()
        _check_layout(self._native)
        self._next_tag = self._rounds = 0
        self.agreement = PLAIN
        self.outbox = outbox_of(job, job.window)
        self._positions: NDArray[np.void] = np.zeros(job.window, POSITION)
        self._queue: NDArray[np.uint32] = np.zeros(2 * job.window, np.uint32)
        self._slots = hashed_slots(job.job, job.window, job.first_slot, job.slots)
        self._values: NDArray = np.zeros(0, np.int32)
        self._out: NDArray = self._values
        self._sums: NDArray[np.int32] | None = None
        least = min(WINDOW_LEAST, job.window) if job.congestion_control else job.window
        self._state = _Worker(
            common=common_of(job, self.outbox, self._queue),
            recovery=Recovery.of(timing, repair_ns),
            positions=self._positions.ctypes.data,
            slots=self._slots.ctypes.data,
            scale_log2=job.scale_log2,
            value_bits=job.value_bits,
            priority=job.priority,
            slot_count=self._slots.size,
            aimd=Aimd(window=job.window, least=least, most=job.window, left=job.window),
        )
        self._address = ctypes.addressof(self._state)

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """Starts the next round (Endpoint.begin). `sums` takes the integers that were summed, and 0
        for values that were summed as floats."""
        assert self.done, "a round is under way"
        shared.check_arrays(values, out)
        assert sums is None or (sums.dtype == np.int32 and sums.shape == values.shape)
        job, state = self.job, self._state
        chunks = chunks_of_round(values.size, job.lanes)
        if self._next_tag + chunks >= 2**31:
            raise ValueError("no tags are left in this session: its rounds had 2^31 chunks")
        self._values, self._out, self._sums = values, out, sums
        state.values, state.out = values.ctypes.data, out.ctypes.data
        state.sums = None if sums is None else sums.ctypes.data
        state.elements, state.chunks = values.size, chunks
        state.is_float = values.dtype == np.float32
        state.digest = self._digest(self.agreement)
        state.first_tag = self._next_tag
        self._next_tag += chunks
        self._rounds += 1
        self._native.pooling_worker_begin(self._address, now_ns)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """See Endpoint.on_datagrams."""
        taken: int = self._native.pooling_worker_datagrams(
            self._address, now_ns, *inbox.payloads, inbox.count
        )
        return taken

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Does what Endpoint.poll describes. Each row of the outbox belongs to one position of the
        window."""
        count = self._native.pooling_worker_poll(self._address, now_ns)
        if count < 0:
            raise self._failure(-count)
        return self._queue[:count]

    @property
    def deadline_ns(self) -> int:
        """See Endpoint.deadline_ns."""
        return self._state.deadline_ns

    @property
    def done(self) -> bool:
        """Whether all results have come, or no round has begun."""
        return self._state.chunks_done == self._state.chunks and not self._state.disagreed

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
        return (self._state.recovery,)

    @property
    def in_flight(self) -> int:
        """The number of contributions that wait for their result."""
        return self._state.in_flight

    @property
    def congestion_window(self) -> int:
        """The largest number of contributions that may wait for their results."""
        return self._state.aimd.window

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`shared.COUNTERS`, `OWN_COUNTERS`); they count from the creation of
        the worker."""
        counts = {name: getattr(self._state, name) for name in shared.COUNTERS}
        marked, overflown = self._state.marked, self._state.overflown
        return {
            **counts,
            "halved": self._state.aimd.halved,
            "marked": marked,
            "overflown": overflown,
        }

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
        tag = self._state.first_tag + chunk
        return [chunk, self._slot_of(tag), tag]

    def _slot_of(self, tag: int) -> int:
        return int(self._slots[tag % self._slots.size])

    def finish(self) -> None:
        """Raises NotFinite, which names the index, if the result contains Inf or NaN. The next
        round may begin even then."""
        assert self.done
        shared.check_finite(self._out, self.job.job)

    def _digest(self, agreement: Agreement) -> int:
        return self.job.digest(self._state.elements, bool(self._state.is_float), agreement)

    def _failure(self, error: int) -> AllReduceError:
        job, state = self.job, self._state
        if error == errno.EPROTO:
            also, another = disagreement(self.agreement, self._digest, state.other_digest)
            dtype = "float32" if state.is_float else "int32"
            return ShapeMismatch(
                f"round {self._rounds - 1} of job {job.job}: this worker reduces {state.elements} "
                f"{dtype} elements with workers {job.workers}, lanes {job.lanes}, window "
                f"{job.window}{also} (digest {state.digest:08x}), another {another} (digest "
                f"{state.other_digest:08x}); all of a job have to reduce alike"
            )
        assert error == errno.ETIMEDOUT
        ranges = shared.runs([chunk for chunk, *_ in self.waiting(job.window)])
        return RoundTimeout(
            f"no result for chunks {shared.words(ranges)} of job {job.job} after "
            f"{self.timing.give_up_ns / 1e9:g} s",
            ranges,
        )


def _check_layout(native: ctypes.CDLL) -> None:
    expected = ctypes.sizeof(_Worker) << 16 | POSITION.itemsize
    assert native.pooling_worker_layout() == expected, "pooling.h and worker.py differ"
    check_layout()

"""A worker and a parameter server as state machines (hosts/endpoint.py; README.md).

C code processes the packets (worker.c, server.c, state.py). This module allocates the memory (NumPy
arrays), starts and ends rounds, and writes the error messages. Times are integers, nanoseconds of
any monotonic clock.
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
from agglab.hosts.native_endpoint import NativeServer, NativeWorker
from agglab.hosts.recovery import Recovery, Timing
from agglab.systems.ps import wire
from agglab.systems.ps.state import LIBRARY, PUSH, SLOT, Server, Worker

MAX_WORKERS = MAX_SERVERS = MAX_WINDOW = 65535

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


def _common(job: _Job) -> dict[str, int]:
    """Returns the fields of `state.Common` that do not change."""
    return {
        "job": job.job,
        "session": job.session,
        "workers": job.workers,
        "servers": job.servers,
        "lanes": job.lanes,
        "window": job.slots * job.servers,
    }


class PsWorker(NativeWorker):
    """The state machine of one worker. All rounds use the same slots."""

    COUNTERS = tuple(COUNTERS)

    def __init__(self, job: WorkerJob) -> None:
        self.job = job
        self._rounds = 0
        self.agreement = PLAIN
        window, longest_bytes = job.slots * job.servers, wire.datagram_bytes(job.lanes)
        outbox = shared.outbox_of(window, longest_bytes)
        outbox.peers[:] = np.arange(window) % job.servers
        self._pushes: NDArray[np.void] = np.zeros(window, PUSH)
        self._out: NDArray = np.zeros(0, np.int32)
        state, native = Worker(**_common(job), pushes=self._pushes), LIBRARY.load()
        super().__init__(state, native, "ps_worker", job.peers, outbox, longest_bytes, 2 * window)
        recoveries = [Recovery.of(job.timing) for _ in range(job.servers)]
        self.wait_for_answers(recoveries, self._pushes, wire.HEADER)

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
        chunks = chunks_of_round(values.size, job.servers, job.lanes)
        if chunks >= 2**31:
            raise ValueError(f"{values.size} elements need {chunks} chunks; the limit is 2^31 - 1")
        self._out = out
        state.values, state.out = values, out
        state.elements, state.chunks = values.size, chunks
        state.is_float = values.dtype == np.float32
        state.digest = self._digest(self.agreement)
        state.round = self._rounds % 65536
        self._rounds += 1
        self._begin(self._address, now_ns)

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
        job, state = self.job, self.state
        sizes = state.elements, job.workers, job.lanes, state.window
        return shared.shape_digest(*sizes, bool(state.is_float), job.servers, agreement)

    def mismatch(self) -> ShapeMismatch:
        job, state = self.job, self.state
        dtype = "float32" if state.is_float else "int32"
        shape = (
            f"{state.elements} {dtype} elements with workers {job.workers}, servers {job.servers}, "
            f"lanes {job.lanes}, window {state.window}"
        )
        where = f"round {self._rounds - 1} of job {job.job}"
        told = self.agreement, self._digest, state.other_digest
        return ShapeMismatch(disagreement(where, shape, *told, "another or a server"))

    def timeout(self) -> RoundTimeout:
        job, missing = self.job, self._missing()
        servers = sorted({chunk % job.servers for chunk in missing})
        ranges = shared.runs(missing)
        return RoundTimeout(
            f"no result for chunks {shared.words(ranges)} of job {job.job} from servers "
            f"{shared.words(shared.runs(servers))} after {job.timing.give_up_ns / 1e9:g} s",
            ranges,
        )


class PsServer(NativeServer):
    """The state machine of one server. It sums what workers push, and has room for one packet for
    each worker and slot. Workers whose shapes differ are told so in the answer to each of their
    requests."""

    COUNTERS = tuple(SERVER_COUNTERS)

    def __init__(self, job: ServerJob) -> None:
        self.job = job
        longest_bytes = wire.datagram_bytes(job.lanes)
        rows = (job.slots + 1) * job.workers
        outbox = shared.outbox_of(rows, longest_bytes)
        outbox.lengths[-job.workers :] = wire.HEADER_BYTES
        outbox.peers[:] = np.arange(rows) % job.workers
        words = -(-job.workers // 64)
        self._slots: NDArray[np.void] = np.zeros(job.slots, SLOT)
        self._present: NDArray[np.uint64] = np.zeros((job.slots, words), np.uint64)
        self._asked: NDArray[np.uint8] = np.zeros(rows, np.uint8)
        window = job.slots * job.servers
        state = Server(
            **_common(job),
            index=job.rank,
            slots=job.slots,
            slot=self._slots,
            present=self._present,
            asked=self._asked,
            sum=np.zeros(job.lanes, np.uint32),
            bitmap_words=words,
            round=65535,
            own_digest=shared.shape_digest(0, job.workers, job.lanes, window, False, job.servers),
        )
        native = LIBRARY.load()
        super().__init__(state, native, "ps_server", job.peers, outbox, longest_bytes, rows)

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

"""The server of a job that shares the slots of switches with other jobs, as a state machine
(hosts/endpoint.py; README.md).

C code processes the packets (server.c). This module allocates the memory (NumPy arrays).
"""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Repeat
from agglab.hosts.wire import AGGREGATOR
from agglab.systems.pooling import wire
from agglab.systems.pooling.job import (
    LIBRARY,
    Common,
    PoolingJob,
    common_of,
    outbox_of,
)

SERVER_COUNTERS = {
    "summed_ever": ("chunks", "chunks that a server completed and gave to all workers"),
    "whole": (
        "chunks",
        "chunks that a server got as one packet, because switches had summed all of it",
    ),
    "parts": ("packets", "whole and partial sums that a server accepted"),
    "overlapping": (
        "packets",
        "partial sums that a server ignored, because it already had some of their values",
    ),
    "answered_again": (
        "packets",
        "results that a server sent again because a worker asked",
    ),
}
"""The counters that a server has besides `shared.COUNTERS`. A server has no timers, so
`retransmitted` and `timeouts` stay 0."""

CELL = np.dtype(
    [
        *[(name, "u4") for name in ("tag", "previous_tag", "digest", "members", "parts")],
        *[(name, "u1") for name in ("phase", "kind", "flags", "generation", "previous_used")],
        ("spare", "u1", 3),
    ]
)
"""`struct pooling_cell` of pooling.h."""
GATHERS, GATHERS_FLOATS = 1, 2


class _Server(ctypes.Structure):
    """The ctypes equivalent of `struct pooling_server` in pooling.h."""

    _anonymous_ = ("common",)
    _fields_ = [
        ("common", Common),
        *[(name, ctypes.c_void_p) for name in ("cells", "asked", "state", "floats")],
        *[
            (name, ctypes.c_uint32)
            for name in ("everybody", "disagreed_tag", "disagreed_digest", "begun")
        ],
        *[
            (name, ctypes.c_uint64)
            for name in ("summed_ever", "whole", "parts", "overlapping", "answered_again")
        ],
    ]


class PoolingServer:
    """The state machine of one server. It sums what switches could not sum, and sends every sum to
    the workers. It has neither rounds nor timers. dtype: the type of the job's tensors. Only for
    float32 does the server have room for chunks whose values do not fit the scale."""

    listens = True
    done = True
    deadline_ns = NEVER_NS
    in_flight = 0
    chunks = 0
    """0, because a server does not know how many chunks a round has."""

    def __init__(
        self, job: PoolingJob, dtype: str = "float32", aggregator: Address = AGGREGATOR
    ) -> None:
        self.job = job
        self.peers = (aggregator,)
        self.longest_bytes = wire.datagram_bytes(job.lanes)
        self._native = LIBRARY.load()
        expected = ctypes.sizeof(_Server) << 16 | CELL.itemsize
        assert self._native.pooling_server_layout() == expected, "pooling.h and server.py differ"
        rows = 2 * job.window + 1
        self.outbox = outbox_of(job, rows)
        self.outbox.lengths[-1] = wire.HEADER_BYTES
        self._queue: NDArray[np.uint32] = np.zeros(rows, np.uint32)
        self._cells: NDArray[np.void] = np.zeros(job.window, CELL)
        self._asked: NDArray[np.uint32] = np.zeros(rows, np.uint32)
        self._row_state: NDArray[np.uint8] = np.zeros(rows, np.uint8)
        positions = job.window if dtype == "float32" else 0
        self._floats: NDArray[np.float32] = np.zeros(
            (positions, job.workers, job.lanes), np.float32
        )
        self._state = _Server(
            common=common_of(job, self.outbox, self._queue),
            cells=self._cells.ctypes.data,
            asked=self._asked.ctypes.data,
            state=self._row_state.ctypes.data,
            floats=self._floats.ctypes.data if positions else None,
            everybody=job.everybody,
        )
        self._address = ctypes.addressof(self._state)

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """Raises TypeError, because a server has nothing to reduce."""
        raise TypeError("a server begins no round: it serves whatever the workers begin")

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them were values that it added to
        a sum. The caller must call `poll` next."""
        taken: int = self._native.pooling_server_datagrams(
            self._address, *inbox.payloads, inbox.count
        )
        return taken

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now. The returned array is valid until the next
        call. This method never raises an exception. Workers whose shapes differ are told so in the
        answer to each of their requests."""
        return self._queue[: self._native.pooling_server_poll(self._address)]

    @property
    def chunks_done(self) -> int:
        """The number of chunks that the server has summed so far."""
        done: int = self._state.summed_ever
        return done

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`shared.COUNTERS`, `SERVER_COUNTERS`); they count from the creation
        of the endpoint."""
        names = (*shared.COUNTERS, *SERVER_COUNTERS)
        return {name: getattr(self._state, name, 0) for name in names}

    def repeats(self, row: int) -> Repeat | None:
        """Returns None, because a server repeats an answer only when a worker repeats its
        request."""

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [tag, rank, ...] for each chunk for which some values have come and others are
        missing. The ranks are those of the workers whose values are missing."""
        phases = self._cells["phase"]
        begun = np.flatnonzero((phases == GATHERS) | (phases == GATHERS_FLOATS))[:most]
        found = []
        for cell in self._cells[begun]:
            members = int(cell["members"])
            missing = [rank for rank in range(self.job.workers) if not members >> rank & 1]
            found.append([int(cell["tag"]), *missing])
        return found

    def finish(self) -> None:
        """Does nothing, because a server has no result."""

"""The server of a job that shares the slots of switches with other jobs, as a state machine
(hosts/endpoint.py; README.md).

C code processes the packets (server.c, state.py). This module allocates the memory (NumPy arrays).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import Address
from agglab.hosts.native_endpoint import NativeServer
from agglab.hosts.wire import AGGREGATOR
from agglab.systems.pooling import wire
from agglab.systems.pooling.job import PoolingJob, common_of
from agglab.systems.pooling.state import CELL, LIBRARY, Server

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

GATHERS, GATHERS_FLOATS = 1, 2


class PoolingServer(NativeServer):
    """The state machine of one server. It sums what switches could not sum, and sends every sum to
    the workers. Workers whose shapes differ are told so in the answer to each of their requests.
    dtype: the type of the job's tensors. Only for float32 does the server have room for chunks
    whose values do not fit the scale. It does not know how many chunks a round has."""

    COUNTERS = (*shared.COUNTERS, *SERVER_COUNTERS)

    def __init__(
        self, job: PoolingJob, dtype: str = "float32", aggregator: Address = AGGREGATOR
    ) -> None:
        self.job = job
        longest_bytes, rows = wire.datagram_bytes(job.lanes), 2 * job.window + 1
        outbox = shared.outbox_of(rows, longest_bytes)
        outbox.lengths[-1] = wire.HEADER_BYTES
        self._cells: NDArray[np.void] = np.zeros(job.window, CELL)
        self._asked: NDArray[np.uint32] = np.zeros(rows, np.uint32)
        self._row_state: NDArray[np.uint8] = np.zeros(rows, np.uint8)
        of_floats = (job.window, job.workers, job.lanes)
        self._floats = np.zeros(of_floats, np.float32) if dtype == "float32" else None
        state = Server(
            **common_of(job),
            cells=self._cells,
            asked=self._asked,
            state=self._row_state,
            floats=self._floats,
            everybody=job.everybody,
        )
        native, peers = LIBRARY.load(), (aggregator,)
        super().__init__(state, native, "pooling_server", peers, outbox, longest_bytes, rows)

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

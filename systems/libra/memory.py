"""Allocates the memory on which the C code of workers and servers works."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import Outbox
from agglab.systems.libra import layout, wire
from agglab.systems.libra.job import LibraJob


def rows(lanes: int, count: int) -> NDArray[np.uint8]:
    """Returns the `frames` of an Outbox: `count` rows, each long enough for the longest
    datagram."""
    row_bytes = -(-wire.datagram_bytes(lanes) // 64) * 64
    return np.zeros((count, row_bytes), np.uint8)


def common_of(job: LibraJob, outbox: Outbox, queue: NDArray[np.uint32]) -> layout.Common:
    """Returns the `struct libra_common` with which the structures of workers and servers begin."""
    return layout.Common(
        job=job.job,
        session=job.session,
        workers=job.workers,
        servers=job.servers,
        lanes=job.lanes,
        slots=job.slots,
        row_bytes=outbox.frames.shape[1],
        frames=outbox.frames.ctypes.data,
        lengths=outbox.lengths.ctypes.data,
        peers=outbox.peers.ctypes.data,
        queue=queue.ctypes.data,
    )

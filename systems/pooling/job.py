"""The settings on which the worker and the server of a job agree, and the memory structures that
both use."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library, quantise, shared
from agglab.hosts.agreement import PLAIN, Agreement
from agglab.hosts.endpoint import Outbox
from agglab.hosts.errors import check_range
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.systems.pooling import wire

MAX_WINDOW = 32768
SCALES = range(-64, 65)

LIBRARY = library.SystemLibrary(
    __file__,
    {"pooling_wire.h": wire.c_header()},
    {
        "pooling_worker_begin": (None, [P, I64]),
        "pooling_worker_datagrams": (U32, [P, I64, P, U64, P, U32]),
        "pooling_worker_poll": (INT, [P, I64]),
        "pooling_worker_layout": (U32, []),
        "pooling_server_datagrams": (U32, [P, P, U64, P, U32]),
        "pooling_server_poll": (INT, [P]),
        "pooling_server_layout": (U32, []),
        "pooling_aimd": (None, [P, INT, INT]),
    },
)

COMMON_COUNTERS = [
    *("sent", "received", "duplicates", "late", "malformed", "bytes_sent", "bytes_received")
]


@dataclass(frozen=True)
class PoolingJob:
    """The settings on which all agents of a job must agree.

    window: the largest number of chunks in flight. slots, first_slot: the range of slots in which a
    switch keeps sums of this job; other jobs may use the same slots. scale_log2: floats are
    multiplied by 2 to this power. priority: 0 to 255, for switches that take slots away. Raises
    ValueError for numbers that do not fit the wire format.
    """

    job: int
    workers: int
    lanes: int
    window: int
    session: int
    slots: int
    first_slot: int = 0
    scale_log2: int = 24
    priority: int = 0
    congestion_control: bool = True

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, wire.MAX_WORKERS)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        check_range("window", self.window, 1, MAX_WINDOW)
        check_range("session", self.session, 1, 2**32 - 1)
        check_range("slots", self.slots, 1, 65535)
        check_range("first_slot", self.first_slot, 0, 65535 - self.slots)
        check_range("scale_log2", self.scale_log2, SCALES[0], SCALES[-1])
        check_range("priority", self.priority, 0, 255)

    @property
    def everybody(self) -> int:
        """The set of all workers, as a number with a bit for each rank."""
        return (1 << self.workers) - 1

    @property
    def value_bits(self) -> int:
        """The number b for which scaled integers are from -(2^b - 1) to 2^b - 1, so that the sum of
        all workers' integers fits int32."""
        return quantise.value_bits(self.workers)

    def digest(self, elements: int, is_float: bool, agreement: Agreement = PLAIN) -> int:
        """Returns a digest of everything on which workers must agree before a round."""
        scale = self.scale_log2 - SCALES[0] if is_float else 0
        return shared.shape_digest(
            elements, self.workers, self.lanes, self.window, is_float, 1 + scale, agreement
        )


class Common(ctypes.Structure):
    """The ctypes equivalent of `struct pooling_common` in pooling.h."""

    _fields_ = [
        *[
            (name, ctypes.c_uint32)
            for name in (
                *("job", "session", "workers", "lanes", "window", "row_bytes", "queued"),
                *("disagreed", "other_digest", "spare"),
            )
        ],
        *[(name, ctypes.c_void_p) for name in ("frames", "lengths", "queue")],
        *[(name, ctypes.c_uint64) for name in COMMON_COUNTERS],
    ]


def common_of(job: PoolingJob, outbox: Outbox, queue: NDArray[np.uint32]) -> Common:
    """Returns the `struct pooling_common` with which the structures of both worker and server
    begin."""
    return Common(
        job=job.job,
        session=job.session,
        workers=job.workers,
        lanes=job.lanes,
        window=job.window,
        row_bytes=outbox.frames.shape[1],
        frames=outbox.frames.ctypes.data,
        lengths=outbox.lengths.ctypes.data,
        queue=queue.ctypes.data,
    )


def outbox_of(job: PoolingJob, rows: int) -> Outbox:
    """Returns an outbox with room for `rows` packets that carry values, all to the same peer."""
    longest = wire.datagram_bytes(job.lanes)
    return Outbox(
        np.zeros((rows, -(-longest // 64) * 64), np.uint8),
        np.full(rows, longest, np.uint32),
        np.zeros(rows, np.uint32),
    )

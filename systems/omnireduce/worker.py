"""One OmniReduce worker as a state machine (README.md), which drivers use as
hosts/endpoint.py describes.

C code processes the packets (omnireduce.c). This module allocates the memory (NumPy arrays), starts
and ends rounds, and writes the error messages.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library, quantise, shared
from agglab.hosts.agreement import PLAIN
from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import AllReduceError, check_range
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.hosts.native_endpoint import NativeEndpoint, native_endpoint
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.hosts.slot_rounds import SlotRounds
from agglab.hosts.slots import Job
from agglab.hosts.wire import AGGREGATOR, SHAPE_BYTES
from agglab.systems.omnireduce import wire

COLUMN = np.dtype(
    [
        *PENDING,
        *[(name, "u4") for name in ("tag", "block", "next")],
        *[(name, "u1") for name in ("kind", "exponent", "has_values", "padding")],
    ]
)
"""`struct omnireduce_column` of omnireduce.h."""

OWN_COUNTERS = {
    "blocks_sent": (
        "blocks",
        "blocks whose values a worker sent; a block that is sent again counts once",
    ),
    "blocks_bare": (
        "blocks",
        "blocks in which a worker had nothing, so that it sent only headers",
    ),
    "blocks_skipped": (
        "blocks",
        "blocks that no worker sent, because all of them had nothing there",
    ),
    "blocks_fused": (
        "blocks",
        "blocks of `blocks_bare` that were sent as entries of other packets",
    ),
    "openings_fused": (
        "columns",
        "columns whose first packet was sent as an entry of another packet",
    ),
}
"""The counters that this system's workers have besides `shared.COUNTERS`. Each block of a round is
counted in exactly one of the first three."""

LIBRARY = library.SystemLibrary(
    __file__,
    {"omnireduce_wire.h": wire.c_header()},
    {
        "omnireduce_begin": (None, [P, I64]),
        "omnireduce_results": (U32, [P, I64, P, U64, P, U32]),
        "omnireduce_poll": (INT, [P, I64]),
        "omnireduce_layout": (U32, []),
    },
)


class _State(ctypes.Structure):
    """The ctypes equivalent of `struct omnireduce_worker` in omnireduce.h."""

    _anonymous_ = ("recovery",)
    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("job", "lanes", "window", "value_bits")],
        ("recovery", Recovery),
        *[(name, ctypes.c_void_p) for name in ("columns", "frames", "lengths", "queue", "ready")],
        ("frame_stride", ctypes.c_uint64),
        ("held_since_ns", ctypes.c_int64),
        *[
            (name, ctypes.c_uint32)
            for name in ("ready_count", "opening_entries", "bare_entries", "values_entries")
        ],
        *[(name, ctypes.c_void_p) for name in ("values", "out", "sums", "exponents")],
        ("elements", ctypes.c_uint64),
        *[(name, ctypes.c_uint8 * SHAPE_BYTES) for name in ("shape", "smallest", "largest")],
        *[
            (name, ctypes.c_uint32)
            for name in ("disagreed", "kind", "blocks", "blocks_done", "queued")
        ],
        *[
            (name, ctypes.c_uint64)
            for name in (
                *("sent", "received", "duplicates", "late", "malformed"),
                *("bytes_sent", "bytes_received", *OWN_COUNTERS),
            )
        ],
    ]


@cache
def _native() -> ctypes.CDLL:
    native = LIBRARY.load()
    expected = ctypes.sizeof(_State) << 16 | COLUMN.itemsize
    assert native.omnireduce_layout() == expected, "omnireduce.h and worker.py differ"
    check_layout()
    return native


class OmniReducer:
    """The state machine of one worker. All rounds use the same slots, and the tags continue from
    round to round."""

    listens = False
    """False, because a switch answers only what a worker has asked."""

    def __init__(
        self,
        job: Job,
        timing: Timing = Timing(),
        aggregator: Address = AGGREGATOR,
        longest_bytes: int = 0,
    ) -> None:
        """Makes the worker. longest_bytes: the length of the longest datagram that the path allows,
        or 0 if only the system limits it."""
        check_range("lanes", job.lanes, 1, wire.MAX_LANES)
        self.job, self.timing = job, timing
        self.peers = (aggregator,)
        self.longest_bytes = wire.longest_datagram_bytes(job.lanes, longest_bytes)
        self.columns: NDArray[np.void] = np.zeros(job.window, COLUMN)
        self.columns["tag"] = (job.first_tag - 1) % 2**32
        stride = -(-self.longest_bytes // 64) * 64
        rows = job.window + job.window // 2  # each column's own, and those of at least two columns
        frames = np.zeros((rows, stride), np.uint8)
        self.outbox = Outbox(frames, np.zeros(rows, np.uint32), np.zeros(rows, np.uint32))
        self._queue: NDArray[np.uint32] = np.zeros(job.window, np.uint32)
        self._ready: NDArray[np.uint32] = np.zeros(job.window, np.uint32)
        self._library = _native()
        self._state = _State(
            job=job.job,
            lanes=job.lanes,
            window=job.window,
            value_bits=quantise.value_bits(job.workers),
            recovery=Recovery.of(timing),
            columns=self.columns.ctypes.data,
            frames=frames.ctypes.data,
            lengths=self.outbox.lengths.ctypes.data,
            queue=self._queue.ctypes.data,
            ready=self._ready.ctypes.data,
            frame_stride=stride,
            opening_entries=wire.entries_behind(self.longest_bytes, wire.OPENING_BYTES),
            bare_entries=wire.entries_behind(self.longest_bytes, wire.HEADER_BYTES),
            values_entries=wire.entries_behind(self.longest_bytes, wire.full_bytes(job.lanes)),
        )
        self._address = ctypes.addressof(self._state)
        self.rounds = SlotRounds(job, self._state, self.columns, "block")
        self.agreement = PLAIN

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """See Endpoint.begin."""
        assert self.done, "a round is under way"
        self._state.blocks = self.rounds.begin(values, out, sums, self.agreement)
        assert self._state.blocks < wire.NO_BLOCK
        is_float = values.dtype == np.float32
        self._state.kind = wire.Kind.SCALED if is_float else wire.Kind.INT32
        self._library.omnireduce_begin(self._address, now_ns)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """See Endpoint.on_datagrams."""
        taken: int = self._library.omnireduce_results(
            self._address, now_ns, *inbox.payloads, inbox.count
        )
        return taken

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Does what Endpoint.poll describes. The first rows of the outbox hold the packets of the
        columns, one each; the rows after them hold fused packets."""
        count = self._library.omnireduce_poll(self._address, now_ns)
        if count < 0:
            raise self.failure(-count)
        return self._queue[:count]

    def others(self, datagram: bytes) -> list[tuple[int, int]]:
        """Returns the slot and the tag of each entry of a fused packet (hosts.endpoint.Others)."""
        found = wire.entries(datagram, self.job.lanes)
        return list(zip(found["slot"].tolist(), found["tag"].tolist(), strict=True))

    def failure(self, error: int) -> AllReduceError:
        """Returns the exception for an error number that the C code returned."""
        return self.rounds.failure(error, self.timing.give_up_ns)

    def native(self, inbox: Inbox) -> NativeEndpoint:
        """Returns the structure by which C code drives the endpoint (hosts/native_endpoint.py).
        inbox: room for received datagrams."""
        return native_endpoint(
            self._state,
            self._library.omnireduce_results,
            self._library.omnireduce_poll,
            self._queue,
            self.outbox,
            self.columns,
            inbox,
        )

    def repeats(self, row: int) -> Repeat | None:
        """Does what Endpoint.repeats describes. Packets that are sent again are never fused."""
        if row >= self.job.window:
            return None
        column = self.columns[row]
        if not column["attempt"]:
            return None
        return Repeat(row, int(column["tag"]), int(column["first_sent_ns"]))

    @property
    def packets(self) -> NDArray[np.void]:
        """The packets by column (hosts.endpoint.Packets)."""
        return self.columns

    @property
    def deadline_ns(self) -> int:
        """See Endpoint.deadline_ns."""
        return self._state.deadline_ns

    @property
    def done(self) -> bool:
        """See Endpoint.done."""
        return not self._state.in_flight and not self._state.disagreed

    @property
    def chunks(self) -> int:
        """The number of blocks of the round."""
        return self._state.blocks

    @property
    def chunks_done(self) -> int:
        """The number of blocks that are summed or known to be zero."""
        return self._state.blocks_done

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return (self._state.recovery,)

    @property
    def in_flight(self) -> int:
        """The number of columns that wait for a result."""
        return self._state.in_flight

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`shared.COUNTERS`, `OWN_COUNTERS`); they count from the creation of
        the worker."""
        names = (*shared.COUNTERS, *OWN_COUNTERS)
        return {name: getattr(self._state, name) for name in names}

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [block, slot, tag, how often it was sent again] of columns that wait for a
        result, at most `most` of them."""
        return self.rounds.waiting(most)

    def finish(self) -> None:
        """See Endpoint.finish."""
        assert self.done
        self.rounds.finish()

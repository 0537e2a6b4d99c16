"""The calls of a NetRPC worker to one peer (README.md, "A caller"). C code processes
the packets (netrpc.c). This module allocates the memory for it and makes its functions available to
Python. Times are integers, nanoseconds of any monotonic clock."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library, quantise
from agglab.hosts.endpoint import Inbox, Outbox
from agglab.hosts.library import I64, INT, U32, U64, P
from agglab.hosts.recovery import PENDING, Recovery, Timing, check_layout
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.service import Method
from agglab.systems.netrpc.wire import Kind

CALL = np.dtype(
    [
        *PENDING,
        *[(name, "u4") for name in ("sequence", "length", "chunk", "epoch")],
        *[(name, "u2") for name in ("method", "count")],
        *[(name, "u1") for name in ("kind", "answer_kind", "word", "streams")],
    ]
)
"""`struct netrpc_call` of netrpc.h."""

COUNTED = (
    "sent",
    "received",
    "duplicates",
    "late",
    "malformed",
    "bytes_sent",
    "bytes_received",
)

LIBRARY = library.SystemLibrary(
    __file__,
    {"netrpc_wire.h": wire.c_header()},
    {
        "netrpc_call": (
            None,
            [P, U32, ctypes.c_uint16, *[ctypes.c_uint8] * 3, ctypes.c_char_p, U32],
        ),
        "netrpc_stream": (None, [P]),
        "netrpc_answers": (U32, [P, I64, P, U64, P, P, U32]),
        "netrpc_poll": (INT, [P, I64, I64]),
        "netrpc_layout": (U32, []),
    },
)


class _State(ctypes.Structure):
    """The ctypes equivalent of `struct netrpc_caller` in netrpc.h."""

    _anonymous_ = ("recovery",)
    _fields_ = [
        *[
            (name, ctypes.c_uint32)
            for name in ("job", "peer", "lanes", "window", "first_row", "value_bits")
        ],
        ("recovery", Recovery),
        *[(name, ctypes.c_void_p) for name in ("calls", "frames", "answers", "queue")],
        ("frame_stride", ctypes.c_uint64),
        *[(name, ctypes.c_void_p) for name in ("values", "out", "sums", "exponents")],
        ("elements", ctypes.c_uint64),
        *[(name, ctypes.c_uint32) for name in ("is_float", "chunks", "chunks_done", "width")],
        *[(name, ctypes.c_uint16) for name in ("agree", "reduce")],
        *[(name, ctypes.c_uint32) for name in ("epoch", "queued")],
        *[(name, ctypes.c_uint64) for name in COUNTED],
    ]


@cache
def _native() -> ctypes.CDLL:
    native = LIBRARY.load()
    expected = ctypes.sizeof(_State) << 16 | CALL.itemsize
    assert native.netrpc_layout() == expected, "netrpc.h and caller.py differ"
    check_layout()
    return native


class Rows:
    """The memory for all calls of an endpoint to all its peers. Each row holds one call."""

    def __init__(self, peers: NDArray[np.uint32], lanes: int) -> None:
        count = peers.size
        stride = -(-wire.longest_datagram_bytes(lanes) // 64) * 64
        self.calls: NDArray[np.void] = np.zeros(count, CALL)
        self.frames: NDArray[np.uint8] = np.zeros((count, stride), np.uint8)
        self.answers: NDArray[np.uint8] = np.zeros((count, stride), np.uint8)
        self.queue: NDArray[np.uint32] = np.zeros(2 * count, np.uint32)
        self.outbox = Outbox(self.frames, self.calls["length"], peers)


@dataclass(frozen=True)
class Window:
    """The settings of one caller, and the rows of Rows that it uses. first_sequence: the first
    sequence number of its session."""

    job: int
    workers: int
    lanes: int
    first_sequence: int
    timing: Timing
    peer: int
    first_row: int
    positions: int


class Caller:
    """The calls to one peer. Each call has one of the positions of a window until it is
    answered."""

    def __init__(self, window: Window, rows: Rows) -> None:
        first, last = window.first_row, window.first_row + window.positions
        self.window = window.positions
        self.calls: NDArray[np.void] = rows.calls[first:last]
        self.calls["sequence"] = (window.first_sequence - 1) % 2**32
        self._frames, self._answers = rows.frames[first:last], rows.answers[first:last]
        self._queue = rows.queue[2 * first : 2 * last]
        self._library = _native()
        self._state = _State(
            job=window.job,
            peer=window.peer,
            lanes=window.lanes,
            window=window.positions,
            first_row=first,
            value_bits=quantise.value_bits(window.workers),
            recovery=Recovery.of(window.timing),
            calls=self.calls.ctypes.data,
            frames=self._frames.ctypes.data,
            answers=self._answers.ctypes.data,
            queue=self._queue.ctypes.data,
            frame_stride=rows.frames.shape[1],
        )
        self._address = ctypes.addressof(self._state)
        self._held: tuple[NDArray | None, ...] = ()
        self.exponents: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """The exponents on which the workers agreed, one for each chunk of the last stream."""

    def begin(self, now_ns: int, epoch: int) -> None:
        """Begins a round, in which no call is in flight yet. epoch: the number of the round for the
        peer, or 0 if the next answer contains it."""
        recovery = self._state.recovery
        recovery.in_flight, recovery.progress_ns, recovery.hold_ns = 0, now_ns, 0
        self.epoch = epoch

    @property
    def hold_ns(self) -> int:
        """The longest time for which the peer may delay answers on purpose."""
        return self._state.recovery.hold_ns

    @hold_ns.setter
    def hold_ns(self, hold_ns: int) -> None:
        self._state.recovery.hold_ns = hold_ns

    @property
    def epoch(self) -> int:
        """The epoch that the calls name, which tells the peer to which round's state they refer."""
        return self._state.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._state.epoch = epoch

    def wait_for_others(self, busy_ns: int = 0) -> None:
        """Makes the caller wait longer, as the next call is answered when all workers have made
        it, and round trips that were measured may be those to a switch nearby. busy_ns: how long
        the others may be busy."""
        self.hold_ns = busy_ns + self._state.recovery.delays_ns

    def post(
        self, position: int, method: Method, kind: Kind, answer: Kind, body: bytes, word: int = 0
    ) -> None:
        """Calls a method at a position that is not in use. The first packet of the call is sent
        with the next `poll`."""
        assert not self.calls["waiting"][position], "the position is in use"
        assert wire.HEADER_BYTES + len(body) <= self._frames.shape[1], "longer than any call"
        self._library.netrpc_call(
            self._address, position, method.number, kind, answer, word, body, len(body)
        )

    def stream(
        self,
        reduce: int,
        agree: int,
        width: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None,
    ) -> None:
        """Starts a stream: the reduction of an array (flat, int32 or float32) chunk by chunk, at
        the positions 0 to width - 1, which must not be in use. The arrays belong to this object
        until `streaming` is False."""
        state = self._state
        chunks = quantise.chunks_of(values.size, state.lanes)
        self.exponents = np.zeros(chunks, np.uint8)
        self._held = values, out, sums
        state.values, state.out = values.ctypes.data, out.ctypes.data
        state.sums = None if sums is None else sums.ctypes.data
        state.exponents = self.exponents.ctypes.data
        state.elements, state.chunks = values.size, chunks
        state.is_float = values.dtype == np.float32
        state.width = min(width, chunks)
        state.reduce, state.agree = reduce, agree
        self._library.netrpc_stream(self._address)

    @property
    def streaming(self) -> bool:
        """Whether some chunks of the stream have no result yet."""
        return self._state.chunks_done < self._state.chunks

    @property
    def chunks(self) -> int:
        """The number of chunks of the last stream."""
        return self._state.chunks

    @property
    def chunks_done(self) -> int:
        return self._state.chunks_done

    def forget_stream(self) -> None:
        """Sets the number of chunks to 0, as before the first stream."""
        self._state.chunks = self._state.chunks_done = 0

    def answer(self, position: int, kind: Kind) -> bytes:
        """Returns the data that followed the headers of the last answer at a position of the
        window. kind: the kind of the answer."""
        size = wire.body_bytes(kind, self._state.lanes)
        return self._answers[position, :size].tobytes()

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes those datagrams in `inbox` that came from this peer. Returns how many of them
        were answers that the caller waits for."""
        taken: int = self._library.netrpc_answers(
            self._address, now_ns, *inbox.payloads_and_peers, inbox.count
        )
        return taken

    def poll(self, now_ns: int, since_ns: int) -> NDArray[np.uint32] | None:
        """Returns the rows to send now. Returns None if the caller must give up, because no answer
        has come since `since_ns`."""
        count = self._library.netrpc_poll(self._address, now_ns, since_ns)
        return None if count < 0 else self._queue[:count]

    @property
    def progress_ns(self) -> int:
        """The time at which the last answer that the caller waited for came."""
        return self._state.progress_ns

    @property
    def deadline_ns(self) -> int:
        return self._state.deadline_ns

    @property
    def recovery(self) -> Recovery:
        """The `Recovery` of the calls, which decides what is sent again."""
        recovery: Recovery = self._state.recovery
        return recovery

    @property
    def in_flight(self) -> int:
        return self._state.in_flight

    def count(self, name: str) -> int:
        """Returns the count `name`, one of systems.shared.COUNTERS."""
        counted: int = getattr(self._state, name)
        return counted

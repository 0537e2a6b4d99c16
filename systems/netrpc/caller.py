"""The calls of a NetRPC worker to one peer (README.md, "A caller"). C code processes
the packets (netrpc.c, state.py). This module allocates the memory for it and makes its functions
available to Python. Times are integers, nanoseconds of any monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import quantise, shared
from agglab.hosts.endpoint import Outbox
from agglab.hosts.native_endpoint import NativeEndpoint
from agglab.hosts.recovery import Recovery, Timing
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.service import Method
from agglab.systems.netrpc.state import CALL, LIBRARY, CallerState
from agglab.systems.netrpc.wire import Kind


class Rows:
    """The memory for all calls of an endpoint to all its peers. Each row holds one call."""

    def __init__(self, peers: NDArray[np.uint32], lanes: int) -> None:
        count = peers.size
        stride = -(-wire.longest_datagram_bytes(lanes) // 64) * 64
        self.calls: NDArray[np.void] = np.zeros(count, CALL)
        self.frames: NDArray[np.uint8] = np.zeros((count, stride), np.uint8)
        self.answers: NDArray[np.uint8] = np.zeros((count, stride), np.uint8)
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


class Caller(NativeEndpoint):
    """The calls to one peer: an endpoint whose rows are part of the worker's outbox. Each call has
    one of the positions of a window until it is answered."""

    COUNTERS = tuple(shared.COUNTERS)

    def __init__(self, window: Window, rows: Rows) -> None:
        first, last = window.first_row, window.first_row + window.positions
        self.window = window.positions
        self.calls: NDArray[np.void] = rows.calls[first:last]
        self.calls["sequence"] = (window.first_sequence - 1) % 2**32
        self._answers = rows.answers[first:last]
        frames, lengths, peers, _ = rows.outbox
        outbox = Outbox(frames[first:last], lengths[first:last], peers[first:last])
        state = CallerState(
            job=window.job,
            peer=window.peer,
            lanes=window.lanes,
            window=window.positions,
            first_row=first,
            value_bits=quantise.value_bits(window.workers),
            calls=self.calls,
            answers=self._answers,
        )
        longest_bytes, queued = wire.longest_datagram_bytes(window.lanes), 2 * window.positions
        super().__init__(state, LIBRARY.load(), "netrpc", (), outbox, longest_bytes, queued)
        self.wait_for_answers([Recovery.of(window.timing)], self.calls, wire.HEADER)
        self._library = LIBRARY.load()
        self.exponents: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """The exponents on which the workers agreed, one for each chunk of the last stream."""

    def begin_round(self, now_ns: int, epoch: int) -> None:
        """Begins a round, in which no call is in flight yet. epoch: the number of the round for the
        peer, or 0 if the next answer contains it."""
        recovery = self.recovery
        recovery.in_flight, recovery.progress_ns, recovery.hold_ns = 0, now_ns, 0
        self.epoch = epoch

    @property
    def hold_ns(self) -> int:
        """The longest time for which the peer may delay answers on purpose."""
        return self.recovery.hold_ns

    @hold_ns.setter
    def hold_ns(self, hold_ns: int) -> None:
        self.recovery.hold_ns = hold_ns

    @property
    def epoch(self) -> int:
        """The epoch that the calls name, which tells the peer to which round's state they refer."""
        return self.state.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.state.epoch = epoch

    def wait_for_others(self, busy_ns: int = 0) -> None:
        """Makes the caller wait longer, as the next call is answered when all workers have made
        it, and round trips that were measured may be those to a switch nearby. busy_ns: how long
        the others may be busy."""
        self.hold_ns = busy_ns + self.recovery.delays_ns

    def post(
        self, position: int, method: Method, kind: Kind, answer: Kind, body: bytes, word: int = 0
    ) -> None:
        """Calls a method at a position that is not in use. The first packet of the call is sent
        with the next `poll`."""
        assert not self.calls["waiting"][position], "the position is in use"
        assert wire.HEADER_BYTES + len(body) <= self.outbox.frames.shape[1], "longer than any call"
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
        state = self.state
        chunks = quantise.chunks_of(values.size, state.lanes)
        self.exponents = np.zeros(chunks, np.uint8)
        state.values, state.out, state.sums = values, out, sums
        state.exponents = self.exponents
        state.elements, state.chunks = values.size, chunks
        state.is_float = values.dtype == np.float32
        state.width = min(width, chunks)
        state.reduce, state.agree = reduce, agree
        self._library.netrpc_stream(self._address)

    @property
    def streaming(self) -> bool:
        """Whether some chunks of the stream have no result yet."""
        return self.state.chunks_done < self.state.chunks

    def forget_stream(self) -> None:
        """Sets the number of chunks to 0, as before the first stream."""
        self.state.chunks = self.state.chunks_done = 0

    def answer(self, position: int, kind: Kind) -> bytes:
        """Returns the data that followed the headers of the last answer at a position of the
        window. kind: the kind of the answer."""
        size = wire.body_bytes(kind, self.state.lanes)
        return self._answers[position, :size].tobytes()

    def poll_since(self, now_ns: int, since_ns: int) -> NDArray[np.uint32] | None:
        """Returns the rows of the worker's outbox to send now. Returns None if the caller must give
        up, because no answer has come since `since_ns`."""
        self.state.since_ns = since_ns
        count = self._poll(self._address, now_ns)
        return None if count < 0 else self._queue[:count]

    @property
    def progress_ns(self) -> int:
        """The time at which the last answer that the caller waited for came."""
        return self.recovery.progress_ns

    @property
    def recovery(self) -> Recovery:
        """The `Recovery` of the calls, which decides what is sent again."""
        return self.recoveries[0]

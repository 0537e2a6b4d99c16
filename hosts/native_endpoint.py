"""The Python side of an endpoint (endpoint.py) whose step for each packet is written in C
(native/endpoint.h). C code can drive such an endpoint without calling Python."""

from __future__ import annotations

import ctypes
import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import Address, Inbox, Outbox, OutboxColumns
from agglab.hosts.errors import AllReduceError
from agglab.hosts.library import I64, INT, U32, P, Signatures
from agglab.hosts.native_structures import Head
from agglab.hosts.recovery import Recovery

SUMMED = ("retransmitted", "timeouts", "asked")
"""The counters that each path has."""


def signatures(*names: str, begins: Sequence[str] = ()) -> Signatures:
    """Returns the signatures of the functions `NAME_take` and `NAME_poll` for each of these names,
    and of `NAME_begin` for each name in `begins`."""
    steps: Signatures = {}
    for name in (*names, *begins):
        steps = {**steps, f"{name}_take": (U32, [P, I64, P]), f"{name}_poll": (INT, [P, I64])}
    return {**steps, **{f"{name}_begin": (None, [P, I64]) for name in begins}}


class NativeEndpoint:
    """The part of an Endpoint that is the same for all systems whose steps are in C.

    A system derives its endpoint from this class, or from NativeWorker or NativeServer. It sets the
    class variable COUNTERS, and has the methods `begin`, `waiting`, `repeats` and `finish` of its
    own. If a round can fail, it has `failure`, too.
    """

    COUNTERS: Sequence[str]
    """The names of the counters: fields of the state, or SUMMED."""
    listens = False
    state: Any
    """The structure of the C code. It has the fields of Head, too."""

    def __init__(
        self,
        state: Any,
        native: ctypes.CDLL,
        name: str,
        peers: Sequence[Address],
        outbox: Outbox,
        longest_bytes: int,
        queue_rows: int,
    ) -> None:
        """Completes the state, which begins with a Head.

        native, name: the C library, and the first word of the names of its functions: `name_take`,
        `name_poll` and, for an endpoint that begins rounds, `name_begin`. longest_bytes: the length
        of the longest legal datagram. queue_rows: how many rows may be queued at once.
        """
        self.state, self.peers = state, tuple(peers)
        self.outbox, self.longest_bytes = outbox, longest_bytes
        self._take, self._poll = getattr(native, f"{name}_take"), getattr(native, f"{name}_poll")
        self._begin: Any = getattr(native, f"{name}_begin", None)
        self._queue: NDArray[np.uint32] = np.zeros(queue_rows, np.uint32)
        head = self.head = Head.from_address(state.address)
        head.take, head.poll = map(address_of, (self._take, self._poll))
        head.outbox, head.queue = OutboxColumns.of(outbox), self._queue
        head.deadline_ns, head.done = 2**63 - 1, 1
        self.recoveries: Sequence[Recovery] = ()
        self._address: int = state.address

    def wait_for_answers(
        self,
        recoveries: Sequence[Recovery],
        packets: NDArray[np.void],
        header: np.dtype,
        rows_are_slots: bool = False,
    ) -> None:
        """Tells the C code what packets wait for, which the caller must do once.

        recoveries: the loss recovery of each path. packets: records that begin with a
        recovery.Pending, one for each of the first rows of the outbox. header: the header of a
        datagram, whose field `attempt` says how often it was sent before. rows_are_slots: whether a
        packet's row is its slot; then its tag follows the Pending.
        """
        head, count = self.head, len(recoveries)
        self._kept = (Recovery * count)(*recoveries)
        self.recoveries = tuple(self._kept)
        self.paths = np.array([recovery.address for recovery in self.recoveries], np.uint64)
        head.recoveries, head.paths = ctypes.addressof(self._kept), self.paths
        head.recovery_count = head.path_count = count
        head.pendings, head.pending_stride = packets, packets.itemsize
        head.pending_rows, head.attempt_offset = packets.size, _offset(header, "attempt")
        head.rows_are_slots = rows_are_slots

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """See Endpoint.on_datagrams."""
        taken: int = self._take(self._address, now_ns, inbox.address)
        if self.head.needs_python:
            self.act()
        return taken

    def act(self) -> None:
        """Does what the C code cannot do, after datagrams for which it has set `needs_python`."""
        self.head.needs_python = 0

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """See Endpoint.poll."""
        count = self._poll(self._address, now_ns)
        if count < 0:
            raise self.failure(-count)
        return self._queue[:count]

    def failure(self, error: int) -> AllReduceError:
        """Returns the exception for an error number that the C code returned."""
        return AllReduceError(os.strerror(error))

    @property
    def deadline_ns(self) -> int:
        """See Endpoint.deadline_ns."""
        return self.head.deadline_ns

    @property
    def done(self) -> bool:
        """See Endpoint.done."""
        return bool(self.head.done)

    @property
    def chunks(self) -> int:
        """See Endpoint.chunks."""
        return self.head.chunks

    @property
    def chunks_done(self) -> int:
        """See Endpoint.chunks_done."""
        return self.head.chunks_done

    @property
    def in_flight(self) -> int:
        """See Endpoint.in_flight."""
        return sum(recovery.in_flight for recovery in self.recoveries)

    @property
    def rto_ns(self) -> int:
        """The longest of the retransmission timeouts for the paths, before back-off."""
        return max(recovery.rto_ns for recovery in self.recoveries)

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`COUNTERS`); they count from the creation of the endpoint."""
        return {name: self._count(name) for name in self.COUNTERS}

    def _count(self, name: str) -> int:
        if name in SUMMED:
            return sum(getattr(recovery, name) for recovery in self.recoveries)
        count: int = getattr(self.state, name)
        return count


class NativeWorker(NativeEndpoint, ABC):
    """A NativeEndpoint whose rounds fail for one of two reasons."""

    def failure(self, error: int) -> AllReduceError:
        """See NativeEndpoint.failure."""
        if error == errno.EPROTO:
            return self.mismatch()
        assert error == errno.ETIMEDOUT
        return self.timeout()

    @abstractmethod
    def mismatch(self) -> AllReduceError:
        """Returns the exception for a round that the job's workers did not begin alike."""

    @abstractmethod
    def timeout(self) -> AllReduceError:
        """Returns the exception for a round in which nothing came for the give-up time."""


class NativeServer(NativeEndpoint):
    """A NativeEndpoint that begins no rounds and has no timers: it serves whatever workers
    begin."""

    listens = True

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """Raises TypeError, because a server has nothing to reduce."""
        raise TypeError("a server begins no round: it serves whatever the workers begin")

    def repeats(self, row: int) -> None:
        """Returns None, because a server repeats an answer only when a worker repeats its
        request."""

    def finish(self) -> None:
        """Does nothing, because a server has no result."""


def _offset(record: np.dtype, field: str) -> int:
    assert record.fields
    return record.fields[field][1]


def address_of(function: Any) -> int:
    """Returns the address of a function of a C library."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    return address

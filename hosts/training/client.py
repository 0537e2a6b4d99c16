"""The script's end of a training: passes reductions to the agent of the host and takes the results.
It does not use PyTorch; backend.py turns tensors into pieces.

One thread fills slots of the shared memory and sends requests, in the order that order.py
determines. Another takes the results and empties the slots. A pool of threads (pool.py) runs the
callbacks of finished jobs.
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import queue
import socket
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.bfloat16 import dtype_of
from agglab.hosts.training import protocol
from agglab.hosts.training.environment import SOCKET
from agglab.hosts.training.jobs import Job, Piece
from agglab.hosts.training.order import VOTE_DTYPE, Disagreement, Order
from agglab.hosts.training.pool import Pool
from agglab.hosts.training.protocol import ProtocolError

CONNECT_S = 60.0
"""The longest time to wait for the agent's first answer. The agent answers at once unless it is
busy."""
END_S = 1.0
GONE = "the agent of this host has ended; its log says why"


class TrainingError(RuntimeError):
    """Raised if there is no agent, or if the agent gives no more results. The message is one
    line."""


class _BrokenOff(Exception):
    """Raised in the thread that asks when the connection has been given up."""


class Client:
    """The script's connection to the agent at the Unix socket `path`. The constructor raises
    TrainingError if there is no agent."""

    def __init__(self, path: str) -> None:
        self._socket, self.terms, self._memory = _join(path)
        self._order = Order(self.terms.workers, self.terms.elements)
        self._free: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        for slot in range(self.terms.slots):
            self._free.put(slot)
        self._asked = 0
        self._pending: deque[tuple[int, int, Piece, Job]] = deque()
        self._open: dict[int, Job] = {}
        self._lock = threading.Lock()
        self._error: str | None = None
        self._counts: dict[str, int] = {}
        self._pool = Pool()
        self._threads = [
            threading.Thread(target=call, name=f"agglab-{call.__name__[1:]}", daemon=True)
            for call in (self._ask, self._hear)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> None:
        """Queues a job. Without a priority, its reductions are requested after those of all jobs
        that were queued before."""
        with self._lock:
            if self._error is None:
                self._open_job(job)
                self._order.add(job)
                return
            error = self._error
        self._pool.run(lambda: job.ended(error))

    def count(self, name: str, by: int = 1) -> None:
        """Adds `by` to the count `name`. The counts are sent to the agent with the next `report`,
        when a process group is destroyed, and when the connection is closed."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + by

    def tell_counts(self) -> None:
        """Sends the counts to the agent. Raises TrainingError if the agent has ended."""
        with self._lock:
            counts, self._counts = self._counts, {}
        if counts:
            self._send(protocol.Counts(counts))

    def report(self, values: Mapping[str, Any]) -> None:
        """Sends a report of the script's progress to the agent. Raises ProtocolError for a value
        that is neither a number nor a text, and TrainingError if the agent has ended."""
        self._send(protocol.Report(dict(values)))
        self.tell_counts()

    def close(self) -> None:
        """Ends the connection with a Goodbye message. Before that, waits for a moment in which
        queued reductions can still be requested. May be called twice."""
        with self._lock:
            first, self._error = self._error is None, self._error or "the process group was closed"
        self._order.close()
        self._threads[0].join(END_S)
        if first:
            with contextlib.suppress(TrainingError):
                self.tell_counts()
                self._send(protocol.Goodbye())
        self.forget()
        self._threads[1].join(END_S)
        self._pool.close(END_S)

    def forget(self) -> None:
        """Shuts the connection down, so that both ends notice its end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Closes the socket in this process. The agent does not notice this as long as another
        process has the connection."""
        self._socket.close()

    # The thread that asks.

    def _ask(self) -> None:
        try:
            while (oldest := self._order.oldest()) is not None:
                for job in [oldest] if oldest.priority is None else self._elected():
                    piece, overtakes = self._order.take(job)
                    if overtakes:
                        self.count("priority.overtakes")
                    self._ask_for(self._slot(), piece, job)
        except _BrokenOff:
            pass
        except (TrainingError, Disagreement) as error:
            self._break_off(first_line(error))
        except Exception as error:
            self._break_off(f"{type(error).__name__}: {first_line(error)}")

    def _elected(self) -> list[Job]:
        """Returns the jobs whose pieces all ranks reduce next. The ranks vote when no reduction is
        under way, so that a job that begins meanwhile waits for one turn at most."""
        slots = [self._slot() for _ in range(self.terms.slots)]
        for slot in slots[1:]:
            self._free.put(slot)
        vote, answer = self._order.vote(), queue.SimpleQueue[str | None]()
        values = vote.values()
        piece = Piece(
            values.size,
            VOTE_DTYPE,
            fill=lambda slot: np.copyto(slot, values),
            drain=lambda slot: np.copyto(values, slot),
        )
        job = Job([piece], answer.put)
        with self._lock:
            self._open_job(job)
        self._ask_for(slots[0], piece, job)
        if error := answer.get():
            raise TrainingError(error)
        self.count("priority.votes")
        return vote.elected(values)

    def _slot(self) -> int:
        """Waits for a free slot of the shared memory and returns its number."""
        slot = self._free.get()
        if slot is None:
            raise _BrokenOff
        return slot

    def _ask_for(self, slot: int, piece: Piece, job: Job) -> None:
        number, self._asked = self._asked, self._asked + 1
        piece.fill(self._place(slot, piece))
        self._pending.append((number, slot, piece, job))
        try:
            agreed = job.agreement.operation, job.agreement.tensors
            self._send(protocol.Reduce(number, slot, piece.elements, piece.dtype, *agreed))
        except TrainingError:
            self.forget()  # the thread that hears reads the agent's last message, which says why
            raise _BrokenOff from None

    def _place(self, slot: int, piece: Piece) -> NDArray:
        return np.frombuffer(
            self._memory, dtype_of(piece.dtype), piece.elements, slot * self.terms.slot_bytes
        )

    # The thread that hears.

    def _hear(self) -> None:
        error = GONE
        try:
            while packet := self._packet():
                message = protocol.unpack(
                    packet, (protocol.Done, protocol.Failed, protocol.Refused)
                )
                if isinstance(message, protocol.Refused):
                    error = message.error
                    break
                self._take(message)
                if isinstance(message, protocol.Failed) and message.fatal:
                    error = message.error
                    break
        except OSError:
            pass
        except Exception as wrong:
            error = f"{type(wrong).__name__}: {first_line(wrong)}"
        self._break_off(error)

    def _packet(self) -> bytes:
        """Waits for the agent's next message. Returns b"" if the agent sends no more."""
        try:
            return self._socket.recv(protocol.MESSAGE_BYTES_MAX + 1)
        except ConnectionResetError:  # comes once, before the messages that were sent earlier
            return self._socket.recv(protocol.MESSAGE_BYTES_MAX + 1)

    def _take(self, message: protocol.Done | protocol.Failed) -> None:
        if not self._pending or self._pending[0][0] != message.number:
            raise ProtocolError(f"the agent answers reduction {message.number}, not asked for")
        _, slot, piece, job = self._pending.popleft()
        if isinstance(message, protocol.Done):
            piece.drain(self._place(slot, piece))
        else:
            job.error = job.error or message.error
        self._free.put(slot)
        job.left -= 1
        if not job.left:
            self._end(job, job.error)

    # Both.

    def _break_off(self, error: str) -> None:
        """Ends all jobs in progress with an error. Jobs that are submitted later end with the same
        error."""
        with self._lock:
            self._error = error = self._error or error
        self.forget()  # a vote that begins after the next lines cannot be sent
        with self._lock:
            failed = list(self._open.values())
        self._free.put(None)
        self._order.close()
        for job in failed:
            self._end(job, error)

    def _open_job(self, job: Job) -> None:
        """Lets the job end when all of its pieces have a result. The caller holds the lock."""
        job.left = len(job.pieces)
        self._open[id(job)] = job

    def _end(self, job: Job, error: str | None) -> None:
        """Ends a job, unless it has ended already. error: why there is no result, or None."""
        with self._lock:
            mine = self._open.pop(id(job), None)
        if mine:
            self._pool.run(lambda: mine.ended(error))

    def _send(self, message: protocol.Message) -> None:
        packet = protocol.pack(message)
        try:
            self._socket.send(packet)
        except OSError:
            raise TrainingError(GONE) from None


_lock = threading.Lock()
_connected: Client | None = None


def connect() -> Client:
    """Returns the connection to the agent of this host. All callers in the process get the same
    connection. Raises TrainingError, with a message of one line, if there is no agent."""
    global _connected
    with _lock:
        if _connected is None:
            path = os.environ.get(SOCKET)
            if not path:
                raise TrainingError(
                    f"no agent: {SOCKET} is not set. Start the script by a scenario with "
                    "`workload: {kind: torch, script: ...}`, or use the backend gloo"
                )
            _connected = Client(path)
            atexit.register(_connected.close)
        return _connected


def first_line(error: Exception) -> str:
    """Returns the first line of an exception's text."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _join(path: str) -> tuple[socket.socket, protocol.Welcome, mmap.mmap]:
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptors: list[int] = []
    try:
        connected.settimeout(CONNECT_S)
        connected.connect(path)
        packet, descriptors, _, _ = socket.recv_fds(connected, protocol.MESSAGE_BYTES_MAX, 1)
        if not packet:
            raise TrainingError(GONE)
        terms = protocol.unpack(packet, (protocol.Welcome, protocol.Refused))
        if isinstance(terms, protocol.Refused):
            raise TrainingError(terms.error)
        if len(descriptors) != 1:
            raise ProtocolError("the agent's welcome came without its memory")
        memory = mmap.mmap(descriptors[0], terms.slots * terms.slot_bytes)
        connected.settimeout(None)
        return connected, terms, memory
    except (OSError, ValueError) as error:
        connected.close()
        raise TrainingError(f"cannot talk to the agent at {path}: {first_line(error)}") from None
    except TrainingError:
        connected.close()
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _forget_in_child() -> None:
    """Gives up the connection in a forked process, because only the parent process uses it."""
    global _connected, _lock
    _lock = threading.Lock()
    if _connected is not None:
        atexit.unregister(_connected.close)
        _connected.drop()
        _connected = None


os.register_at_fork(after_in_child=_forget_in_child)

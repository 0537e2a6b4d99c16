"""The agent's end of a training: performs the reductions that the script of its host requests, in
the order of the requests. It passes each reduction to a function. The module uses neither threads
nor PyTorch:

    service = Service(path, terms, reduce, on_report)
    start the script with AGGLAB_TRAINING=path
    while the script runs:
        wait until service.fileno() can be read       # Reducer.serve(interrupt) does
        service.step()
    service.close()

All messages that come over the socket are checked (protocol.py). If a script breaks the protocol,
it is told so and its connection is closed. The service owns the shared memory, and nobody can make
this memory smaller.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.agreement import Agreement
from agglab.hosts.bfloat16 import dtype_of
from agglab.hosts.errors import AllReduceError, NotFinite
from agglab.hosts.training import protocol
from agglab.hosts.training.protocol import ProtocolError

SLOTS = 2
"""The number of slots. The script fills or empties one slot while the other is reduced."""
BACKLOG = 8

DTYPES = ("float32", "int32")
"""The types that every system takes, unless its sums may lack workers."""
ReduceCall = Callable[[NDArray, NDArray, Agreement], object]
"""A callable reduce(values, out, agreement). It puts the sum of `values`, a flat array, over all
ranks into `out`, which is `values` itself, if all ranks have an equal agreement. Raises
AllReduceError."""


@dataclass(frozen=True)
class Terms:
    """The facts that the Welcome message tells the script.

    rank, workers: this worker's rank in the job, and the job's number of workers. elements: the
    largest number of values in one reduction. address: this host's IPv4 address. dtypes: the types
    that `reduce` accepts.
    """

    rank: int
    workers: int
    elements: int
    address: str
    dtypes: tuple[str, ...] = DTYPES

    def welcome(self) -> protocol.Welcome:
        """Returns the Welcome message with these facts."""
        return protocol.Welcome(
            protocol.VERSION,
            self.rank,
            self.workers,
            self.elements,
            SLOTS,
            list(self.dtypes),
            self.address,
        )


class Service:
    """The Unix socket at `path`, at which the service waits for one script. The constructor makes
    the socket. It raises OSError if this fails, and ProtocolError for terms that the protocol does
    not allow."""

    def __init__(
        self,
        path: str,
        terms: Terms,
        reduce: ReduceCall,
        on_report: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._welcome = terms.welcome()
        self._first_packet = protocol.pack(self._welcome)
        self._path, self._reduce, self._on_report = path, reduce, on_report
        self._memory, self._descriptor = _shared_memory(SLOTS * self._welcome.slot_bytes)
        self._listener = _listen(path)
        self._events = select.epoll()
        self._events.register(self._listener, select.EPOLLIN)
        self._script: socket.socket | None = None
        self._closed = False
        self._next = 0
        self.reductions = 0
        """The number of reductions that have ended with a result."""
        self.counts: dict[str, int] = {}
        """What the script has counted: what Gloo carried out, and why, and what went through the
        system."""
        self.refused = 0
        """The number of connections and messages that were refused."""
        self.goodbye = False
        """Whether the script has said that it needs no more reductions."""
        self.left = False
        """Whether the script was connected and no longer is."""

    def fileno(self) -> int:
        """Returns a file descriptor that is readable whenever `step` has something to do."""
        return self._events.fileno()

    def wait(self, seconds: float) -> bool:
        """Waits for at most `seconds` until `step` has something to do. Returns whether it has."""
        return bool(self._events.poll(seconds))

    def step(self) -> None:
        """Processes one event, if there is one: a new connection or a message of the script. Tells
        the script of an exception of `reduce` and then raises it. NotFinite is not raised, because
        the next reduction can still succeed."""
        for descriptor, _ in self._events.poll(0):
            if descriptor == self._listener.fileno():
                self._accept()
            else:
                self._hear()
            return

    def close(self, error: str = "the agent has ended the training") -> None:
        """Ends the connection and tells the script why. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._leave(error)
        self._events.close()
        self._listener.close()
        os.close(self._descriptor)
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connected, _ = self._listener.accept()
            if self._script is not None or self.left:
                self.refused += 1
                error = "another process of this host's script talks to the agent, or has done so"
                _send(connected, protocol.pack(protocol.Refused(error)))
                connected.close()
                return
            self._script = connected
            connected.setblocking(False)
            socket.send_fds(connected, [self._first_packet], [self._descriptor])
            self._events.register(connected, select.EPOLLIN)

    def _hear(self) -> None:
        assert self._script is not None, "an event of a connection"
        try:
            packet = self._script.recv(protocol.MESSAGE_BYTES_MAX + 1)
        except (BlockingIOError, ConnectionResetError):
            return  # a reset comes once, before the messages that were sent earlier
        except OSError:
            packet = b""
        if not packet:
            self._leave(None)
            return
        try:
            self._execute(protocol.unpack(packet, protocol.FROM_SCRIPT))
        except ProtocolError as error:
            self.refused += 1
            self._leave(f"the agent does not understand the script: {error}")

    def _execute(self, message: protocol.Message) -> None:
        if isinstance(message, protocol.Reduce):
            self._perform(message)
        elif isinstance(message, protocol.Report):
            self._on_report(message.values)
        elif isinstance(message, protocol.Counts):
            for name, count in message.values.items():
                self.counts[name] = self.counts.get(name, 0) + count
        else:
            self.goodbye = True

    def _perform(self, asked: protocol.Reduce) -> None:
        values = self._values(asked)
        self._next += 1
        try:
            self._reduce(values, values, Agreement(asked.operation, asked.tensors))
        except AllReduceError as error:
            fatal = not isinstance(error, NotFinite)
            self._tell(protocol.Failed(asked.number, one_line(error), fatal))
            if fatal:
                raise
            return
        self.reductions += 1
        self._tell(protocol.Done(asked.number))

    def _values(self, asked: protocol.Reduce) -> NDArray:
        """Returns the values that the script has put into a slot. Raises ProtocolError if the
        request does not fit the terms or the order of requests."""
        terms = self._welcome
        if asked.number != self._next:
            raise ProtocolError(f"reduce: number {asked.number}; expected {self._next}")
        if asked.slot >= terms.slots or asked.elements > terms.elements:
            raise ProtocolError(
                f"reduce: slot {asked.slot} with {asked.elements} elements; "
                f"there are {terms.slots} slots of {terms.elements}"
            )
        if asked.dtype not in terms.dtypes:
            raise ProtocolError(f"reduce: {asked.dtype} is none of {', '.join(terms.dtypes)}")
        start = asked.slot * terms.slot_bytes
        return np.frombuffer(self._memory, dtype_of(asked.dtype), asked.elements, start)

    def _tell(self, message: protocol.Message) -> None:
        """Sends the script an answer. A script that no longer listens has no use for it, but its
        last messages can still be read, and are."""
        if self._script is None:
            return
        try:
            self._script.send(protocol.pack(message))
        except BlockingIOError:  # it reads nothing
            self._leave(None)
        except OSError:
            pass

    def _leave(self, error: str | None) -> None:
        """Closes the connection, if there is one. error: the reason that is sent to the script, or
        None to send nothing."""
        if self._script is None:
            return
        if error is not None:
            _send(self._script, protocol.pack(protocol.Refused(error)))
        if not self._closed:
            self._events.unregister(self._script)
        self._script.close()
        self._script, self.left = None, True


def one_line(error: Exception) -> str:
    """Returns the text of an exception as one line, for a message."""
    return " ".join((str(error).strip() or type(error).__name__).split())[:1000]


def _shared_memory(size: int) -> tuple[mmap.mmap, int]:
    """Returns memory that another process can map and that nobody can resize, and its file
    descriptor."""
    descriptor = os.memfd_create("agglab-training", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return mmap.mmap(descriptor, size), descriptor


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _send(connected: socket.socket, packet: bytes) -> None:
    """Sends a packet, unless the script reads nothing and the socket's buffer is full, or the
    script has gone."""
    with contextlib.suppress(OSError):
        connected.send(packet)

"""The agent's end of the control socket: JSON lines to and from the testbed."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any


class Stopped(Exception):
    """Raised when the testbed has told the agent to stop, or has closed the control socket."""


class Control:
    """The agent's connection to the control socket at `path`. The constructor raises OSError if no
    process listens there."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._received = b""

    def send(self, event: dict[str, Any]) -> None:
        """Sends one event. Raises Stopped if the testbed has closed the socket."""
        try:
            self._socket.sendall(json.dumps(event).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            raise Stopped from None

    def wait(self) -> dict[str, Any]:
        """Waits for the next command, without a time limit, and returns it. Raises Stopped."""
        while not self.waits:
            self._receive()
        return self._next()

    def fileno(self) -> int:
        """Returns the file descriptor of the socket, so that a caller can wait for commands and for
        other input at the same time."""
        return self._socket.fileno()

    @property
    def waits(self) -> bool:
        """Whether a complete command has been received and not yet taken."""
        return b"\n" in self._received

    def arrived(self) -> Iterator[dict[str, Any]]:
        """Yields the commands that have been received. Commands that the caller does not take from
        the iterator stay for later calls. Raises Stopped."""
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._receive()
        self._socket.setblocking(True)
        while self.waits:
            yield self._next()

    def _next(self) -> dict[str, Any]:
        line, _, self._received = self._received.partition(b"\n")
        command = json.loads(line)
        assert isinstance(command, dict), line
        return command

    def _receive(self) -> None:
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            raise Stopped from None
        if not data:
            raise Stopped
        self._received += data

"""The agent's end of the control socket: JSON lines to and from the testbed."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

Command = dict[str, Any]


class Stopped(Exception):
    """The testbed wants no more: it said so, or closed the control socket."""


class Aborted(Exception):
    """The testbed gives up the round under way."""


class Control:
    """Every event carries what `identity` holds. Raises OSError if nobody listens at `path`."""

    def __init__(self, path: str, identity: dict[str, Any]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._identity = identity
        self._received = b""

    def send(self, event: str, **content: Any) -> None:
        """One event. Raises Stopped if the testbed has gone."""
        line = json.dumps({"event": event, **self._identity, **content})
        try:
            self._socket.sendall(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            raise Stopped from None

    def wait(self) -> Command:
        """The next command, however long it takes. Raises Stopped."""
        while b"\n" not in self._received:
            self._receive()
        return self._next()

    def fileno(self) -> int:
        """Of the socket, to wait for commands and for something else."""
        return self._socket.fileno()

    @property
    def waits(self) -> bool:
        """A command has come already."""
        return b"\n" in self._received

    def during_round(self) -> list[Command]:
        """Commands that came while a round is under way. Raises Stopped and Aborted."""
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._receive()
        self._socket.setblocking(True)
        commands = []
        while b"\n" in self._received:
            command = self._next()
            if command.get("command") == "abort":
                raise Aborted
            commands.append(command)
        return commands

    def _next(self) -> Command:
        line, _, self._received = self._received.partition(b"\n")
        command = json.loads(line)
        assert isinstance(command, dict), line
        if command.get("command") == "stop":
            raise Stopped
        return command

    def _receive(self) -> None:
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            raise Stopped from None
        if not data:
            raise Stopped
        self._received += data

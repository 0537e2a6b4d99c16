"""The testbed's side of the connection to the agents, which are the programs on the hosts: JSON
lines over one Unix socket (docs/architecture.md)."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
from collections.abc import Iterator
from pathlib import Path

from agglab.hosts.part import WORKER
from agglab.testbed.base.errors import AgentFailed
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.backend import Command

LINE_MAX_BYTES = 1 << 20
BACKLOG = 1024


class _Connection:
    """One agent's connection to the control socket. `worker` is None until the agent has sent its
    first line."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.worker: WorkerId | None = None
        self.closed = False
        self._pending = b""

    def receive(self) -> Iterator[Event]:
        """Yields the complete lines that have arrived."""
        try:
            data = self.peer.recv(65536)
        except ConnectionResetError:
            data = b""
        self.closed = not data
        *lines, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > LINE_MAX_BYTES:
            raise AgentFailed(f"{self.name()}: sent a line longer than {LINE_MAX_BYTES} bytes")
        for line in lines:
            yield self._decoded(line)

    def send(self, message: Command) -> None:
        self.peer.sendall(json.dumps(message).encode() + b"\n")

    def _decoded(self, line: bytes) -> Event:
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise AgentFailed(f"{self.name()}: sent a line that is not a JSON object")
        return event

    def name(self) -> str:
        """Returns the agent's name for use in messages."""
        return f"the agent of {self.worker.host}" if self.worker else "an agent"


class Agents:
    """The control socket and all agents connected to it. A context manager."""

    def __init__(self, path: Path) -> None:
        """path: the path of the socket, which has at most 107 bytes."""
        self.path = path
        self._expected: set[WorkerId] = set()
        self._connections: dict[WorkerId, _Connection] = {}
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> Agents:
        self._server.bind(str(self.path))
        self._server.listen(BACKLOG)
        self._selector.register(self._server, selectors.EVENT_READ, None)
        return self

    def __exit__(self, *_: object) -> None:
        for registered in list(self._selector.get_map().values()):
            if registered.data is not None:
                registered.data.peer.close()
        self._selector.close()
        self._server.close()

    def expect(self, worker: WorkerId) -> None:
        """Announces that a program for this worker was started. The next connection that identifies
        itself as this worker is accepted."""
        self._expected.add(worker)
        self._connections.pop(worker, None)

    def send(self, worker: WorkerId, command: Command) -> None:
        """Sends a command; does nothing if the agent is gone."""
        connection = self._connections.get(worker)
        if connection is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.send(command)

    def poll(self, timeout_s: float) -> list[Event]:
        """Returns the events that have arrived; waits up to `timeout_s` seconds for the first."""
        events: list[Event] = []
        for ready, _ in self._selector.select(max(0.0, timeout_s)):
            events += self._serve(ready.data)
        return events

    def _serve(self, connection: _Connection | None) -> list[Event]:
        if connection is None:
            peer, _ = self._server.accept()
            self._selector.register(peer, selectors.EVENT_READ, _Connection(peer))
            return []
        events = list(connection.receive())
        for event in events:
            self._identify(connection, event)
        if connection.closed:
            self._selector.unregister(connection.peer)
            connection.peer.close()
            if connection.worker and self._connections.get(connection.worker) is connection:
                del self._connections[connection.worker]
        return events

    def _identify(self, connection: _Connection, event: Event) -> None:
        job, name = event.get("job", -1), event.get("name", "")
        if not isinstance(job, int) or not isinstance(name, str):
            raise AgentFailed(f"{connection.name()}: sent a line that is not an event")
        if not isinstance(event.get("rank"), int) or not isinstance(event.get("event"), str):
            raise AgentFailed(f"the agent of {name}: sent a line that is not an event")
        role = str(event.get("role", WORKER))
        worker = WorkerId.of({**event, "job": job, "name": name, "role": role})
        if worker not in self._expected or connection.worker not in (None, worker):
            raise AgentFailed(
                f"an agent says that it is {worker.host!r} of job {worker.job!r}, "
                "which this connection cannot belong to"
            )
        if connection.worker is None:
            connection.worker = worker
            self._connections[worker] = connection

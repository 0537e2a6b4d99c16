"""The testbed's side of the agents: JSON lines over one Unix socket (docs/architecture.md)."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from testbed.errors import NodeFailed
from testbed.network.process import NodeProcess

LINE_MAX_BYTES = 1 << 20
POLL_S = 0.1

Event = dict[str, Any]


class AgentFailed(Exception):
    """A worker could not finish; one line that names it."""


class _Connection:
    """One agent's end of the control socket; `rank` is known once it said it is ready."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.rank: int | None = None
        self.closed = False
        self._pending = b""

    def receive(self) -> Iterator[Event]:
        """Complete lines that have arrived."""
        data = self.peer.recv(65536)
        self.closed = not data
        *lines, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > LINE_MAX_BYTES:
            raise AgentFailed(f"worker {self.rank}: sent a line over {LINE_MAX_BYTES} bytes")
        for line in lines:
            yield _decoded(line, self.rank)

    def send(self, message: Event) -> None:
        self.peer.sendall(json.dumps(message).encode() + b"\n")


class Agents:
    """The control socket and everyone connected to it. A context manager."""

    def __init__(self, path: Path, workers: int, on_event: Callable[[Event], None]) -> None:
        """path: of the socket, at most 107 bytes. on_event: called with each event received."""
        self.path = path
        self.workers = workers
        self._on_event = on_event
        self._processes: dict[int, NodeProcess] = {}
        self._by_rank: dict[int, _Connection] = {}
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> Agents:
        self._server.bind(str(self.path))
        self._server.listen(self.workers)
        self._selector.register(self._server, selectors.EVENT_READ, None)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in list(self._connections()):
            connection.peer.close()
        self._selector.close()
        self._server.close()

    def watch(self, rank: int, process: NodeProcess) -> None:
        """From now on the end of this process ends the run."""
        self._processes[rank] = process

    def wait_ready(self, timeout_s: float) -> None:
        """Until every rank said that it is ready."""
        try:
            self._wait(lambda: len(self._by_rank) == self.workers, timeout_s)
        except TimeoutError:
            missing = sorted(set(range(self.workers)) - set(self._by_rank))
            what = f"not ready after {timeout_s:g} s"
            raise self._failed(missing[0], what) from None

    def round(self, number: int, timeout_s: float, idle: Callable[[], None]) -> dict[int, Event]:
        """Start a round everywhere; rank -> its `round` event. `idle` is called now and then."""
        ended: dict[int, Event] = {}
        self._ended = ended
        for connection in self._by_rank.values():
            connection.send({"command": "round", "round": number})
        try:
            self._wait(lambda: len(ended) == self.workers, timeout_s, idle)
        except TimeoutError:
            rank = min(set(range(self.workers)) - set(ended))
            what = f"round {number} not over after {timeout_s:g} s"
            raise self._failed(rank, what) from None
        return ended

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ask all agents to end, and wait for them."""
        for connection in self._by_rank.values():
            connection.send({"command": "stop"})
        deadline = time.monotonic() + timeout_s
        for process in self._processes.values():
            process.wait(max(0.1, deadline - time.monotonic()))

    def _connections(self) -> Iterator[_Connection]:
        for registered in list(self._selector.get_map().values()):
            if registered.data is not None:
                yield registered.data

    def _wait(
        self,
        done: Callable[[], bool],
        timeout_s: float,
        idle: Callable[[], None] = lambda: None,
    ) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError
            for ready, _ in self._selector.select(POLL_S):
                self._serve(ready.data)
            self._check_processes()
            idle()

    def _serve(self, connection: _Connection | None) -> None:
        if connection is None:
            peer, _ = self._server.accept()
            self._selector.register(peer, selectors.EVENT_READ, _Connection(peer))
            return
        for event in connection.receive():
            self._take(connection, event)
        if connection.closed:
            self._selector.unregister(connection.peer)
            connection.peer.close()

    def _take(self, connection: _Connection, event: Event) -> None:
        rank = event.get("rank")
        if not isinstance(rank, int) or not 0 <= rank < self.workers:
            raise AgentFailed(f"an agent names itself worker {rank!r}, of {self.workers}")
        kind = event.get("event")
        self._on_event(event)
        if kind == "ready":
            connection.rank = rank
            self._by_rank[rank] = connection
        elif kind == "round":
            self._ended[rank] = event
        elif kind == "failed":
            raise AgentFailed(f"worker {rank}: {event.get('error')}")

    def _check_processes(self) -> None:
        for rank, process in self._processes.items():
            status = process.poll()
            if status is not None:
                self._drain()
                raise self._failed(rank, f"ended early with status {status}")

    def _drain(self) -> None:
        """What an agent said before it ended: its own reason is better than ours."""
        for ready, _ in self._selector.select(0):
            if ready.data is not None:
                self._serve(ready.data)

    def _failed(self, rank: int, what: str) -> Exception:
        process = self._processes.get(rank)
        if process is None:
            return AgentFailed(f"worker {rank}: {what}")
        return NodeFailed(process.node, f"worker {rank} {what}", process.command, process.log)


def _decoded(line: bytes, rank: int | None) -> Event:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise AgentFailed(f"worker {rank}: sent a line that is not a JSON object")
    return event

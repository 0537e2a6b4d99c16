"""One agent of MLfabric as an endpoint (hosts/endpoint.py; README.md). It consists
of a Transport and a Role. The Transport exchanges packets with the peers; the Role decides what
to send and what to do with received messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import RoundTimeout
from agglab.hosts.recovery import Recovery
from agglab.systems.mlfabric.transport import Message, Transport
from agglab.systems.mlfabric.wire import Kind
from agglab.systems.mlfabric.worker import Worker

RUNS = 1 << 16


class Role(Protocol):
    """The interface of an agent's role, which is a worker, a server or the scheduler."""

    done: bool
    listens: bool
    chunks: int
    chunks_done: int
    counters: dict[str, int]

    @property
    def awaited(self) -> int:
        """The number of answers that the role waits for, besides acknowledgements."""

    def take(self, now_ns: int, message: Message) -> None: ...

    def tick(self, now_ns: int) -> None: ...

    @property
    def deadline_ns(self) -> int: ...

    def waiting(self, most: int) -> list[list[int]]: ...


class Answering(Role, Protocol):
    """The interface of the roles that begin no runs: server and scheduler."""

    def start_run(self, now_ns: int) -> None: ...


class Agent:
    """The endpoint of one agent of MLfabric. give_up_ns: a worker gives up if it receives nothing
    for this time."""

    def __init__(self, transport: Transport, role: Worker | Answering, give_up_ns: int) -> None:
        self.peers: Sequence[Address] = transport.peers
        self.longest_bytes = transport.longest_bytes
        self._transport, self._role = transport, role
        self._give_up_ns = give_up_ns
        self._progress_ns = 0

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None
    ) -> None:
        """Begins a training run. It may be called only at a worker."""
        assert isinstance(self._role, Worker), "only workers begin runs"
        assert self._role.done, "a run is under way"
        self._transport.begin(now_ns)
        self._transport.run = (self._transport.run + 1) % RUNS
        self._progress_ns = now_ns
        self._role.begin(now_ns, values, out)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them were new messages or awaited
        acknowledgements."""
        before = self._transport.answered
        taken = 0
        for message in self._transport.on_datagrams(now_ns, inbox):
            taken += 1
            self._take(now_ns, message)
        return taken + self._transport.answered - before

    def _take(self, now_ns: int, message: Message) -> None:
        role, transport = self._role, self._transport
        if isinstance(role, Worker):
            if message.kind == Kind.SERVER and message.peer == len(self.peers) - 1:
                role.another_server(now_ns, message)
            elif message.run != transport.run or role.done:
                transport.is_late()
            else:
                self._progress_ns = now_ns
                role.take(now_ns, message)
            return
        # A replica hears nothing of a run in which nothing was replicated.
        if 0 < (message.run - transport.run) % RUNS < RUNS // 2:
            transport.run = message.run
            role.start_run(now_ns)
        if message.run != transport.run:
            transport.is_late()
        else:
            role.take(now_ns, message)

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now. Raises RoundTimeout if a worker has received
        nothing for the give-up time."""
        self._role.tick(now_ns)
        if not self._role.done and now_ns >= self._progress_ns + self._give_up_ns:
            waiting = self._role.waiting(8)
            raise RoundTimeout(f"no packet came for the steps and groups {waiting}", [])
        return self._transport.poll(now_ns)

    def repeats(self, row: int) -> Repeat | None:
        """Returns facts about the packet in row `row` if it is sent again (Endpoint.repeats)."""
        return self._transport.repeats(row)

    @property
    def deadline_ns(self) -> int:
        gives_up_ns = NEVER_NS if self._role.done else self._progress_ns + self._give_up_ns
        return min(self._transport.deadline_ns, self._role.deadline_ns, gives_up_ns)

    @property
    def outbox(self) -> Outbox:
        return self._transport.outbox

    @property
    def done(self) -> bool:
        return self._role.done

    @property
    def listens(self) -> bool:
        return self._role.listens

    @property
    def chunks(self) -> int:
        return self._role.chunks

    @property
    def chunks_done(self) -> int:
        return self._role.chunks_done

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return self._transport.recoveries

    @property
    def in_flight(self) -> int:
        """The number of packets and of transfers to the replica that wait for an answer."""
        return self._transport.in_flight + self._role.awaited

    @property
    def counters(self) -> Mapping[str, int]:
        return {**self._transport.counters, **self._role.counters}

    def waiting(self, most: int) -> list[list[int]]:
        """Returns a description of what the agent waits for; the role says what the numbers are."""
        return self._role.waiting(most)

    def finish(self) -> None:
        """Does nothing, because integers are always finite."""

"""One agent of MLfabric as an endpoint (hosts/endpoint.py; docs/systems/mlfabric.md). It consists
of a Post and a Role. The Post exchanges packets with the peers; the Role decides what to send and
what to do with received messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import RoundTimeout
from agglab.hosts.recovery import Recovery
from agglab.hosts.systems.mlfabric.channel import NEVER_NS
from agglab.hosts.systems.mlfabric.post import Message, Post
from agglab.hosts.systems.mlfabric.wire import Kind
from agglab.hosts.systems.mlfabric.worker import Worker

RUNS = 1 << 16


class Role(Protocol):
    """The interface of an agent's role, which is a worker, a server or the scheduler."""

    done: bool
    listens: bool
    chunks: int
    chunks_done: int
    counters: dict[str, int]

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

    def __init__(self, post: Post, role: Worker | Answering, give_up_ns: int) -> None:
        self.peers: Sequence[Address] = post.peers
        self.longest_bytes = post.longest_bytes
        self._post, self._role = post, role
        self._give_up_ns = give_up_ns
        self._progress_ns = 0

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None
    ) -> None:
        """Begins a training run. It may be called only at a worker."""
        assert isinstance(self._role, Worker), "only workers begin runs"
        assert self._role.done, "a run is under way"
        self._post.begin(now_ns)
        self._post.run = (self._post.run + 1) % RUNS
        self._progress_ns = now_ns
        self._role.begin(now_ns, values, out)

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them were new messages or awaited
        acknowledgements."""
        before = self._post.answered
        taken = 0
        for message in self._post.on_datagrams(now_ns, inbox):
            taken += 1
            self._take(now_ns, message)
        return taken + self._post.answered - before

    def _take(self, now_ns: int, message: Message) -> None:
        role, post = self._role, self._post
        if isinstance(role, Worker):
            if message.kind == Kind.SERVER and message.peer == len(self.peers) - 1:
                role.another_server(now_ns, message)
            elif message.run != post.run or role.done:
                post.is_late()
            else:
                self._progress_ns = now_ns
                role.take(now_ns, message)
            return
        # A replica hears nothing of a run in which nothing was replicated.
        if 0 < (message.run - post.run) % RUNS < RUNS // 2:
            post.run = message.run
            role.start_run(now_ns)
        if message.run != post.run:
            post.is_late()
        else:
            role.take(now_ns, message)

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now. Raises RoundTimeout if a worker has received
        nothing for the give-up time."""
        self._role.tick(now_ns)
        if not self._role.done and now_ns >= self._progress_ns + self._give_up_ns:
            waiting = self._role.waiting(8)
            raise RoundTimeout(f"nothing heard for the steps and groups {waiting}", [])
        return self._post.poll(now_ns)

    def repeats(self, row: int) -> Repeat | None:
        """Returns facts about the packet in row `row` if it is sent again (Endpoint.repeats)."""
        return self._post.repeats(row)

    @property
    def deadline_ns(self) -> int:
        gives_up_ns = NEVER_NS if self._role.done else self._progress_ns + self._give_up_ns
        return min(self._post.deadline_ns, self._role.deadline_ns, gives_up_ns)

    @property
    def outbox(self) -> Outbox:
        return self._post.outbox

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
        return self._post.recoveries

    @property
    def in_flight(self) -> int:
        return self._post.in_flight

    @property
    def counters(self) -> Mapping[str, int]:
        return {**self._post.counters, **self._role.counters}

    def waiting(self, most: int) -> list[list[int]]:
        """Returns a description of what the agent waits for; the role says what the numbers are."""
        return self._role.waiting(most)

    def finish(self) -> None:
        """Does nothing, because integers are always finite."""

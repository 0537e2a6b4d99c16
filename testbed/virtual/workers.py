"""Runs an agent's program in virtual time: drives hosts.agent_core as hosts.agent does on real
links.

What a real agent does with a socket and a control connection happens here without delay. A datagram
is taken at the moment when it arrives, and a command at the moment when it is given. Sending and
computing take no time. If the endpoint's step is written in C, native/host.c drives the endpoint
through a round until something is needed that only Python can do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.agent_config import Config
from agglab.hosts.agent_core import AgentCore
from agglab.hosts.endpoint import Address, Endpoint, Inbox, Others, Repeat
from agglab.hosts.errors import AllReduceError
from agglab.hosts.iteration import endpoint_of
from agglab.hosts.native_endpoint import NativeEndpoint
from agglab.hosts.part import Part
from agglab.hosts.recording import Sample
from agglab.hosts.workloads import Sgd
from agglab.testbed.base.worker_id import Event
from agglab.testbed.run.backend import Command
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.virtual import native
from agglab.testbed.virtual.causes import Explained
from agglab.testbed.virtual.clock import (
    ACT,
    AGAIN,
    DATAGRAM,
    FAILED,
    FINISH,
    LOCAL,
    TIMER,
    Clock,
)
from agglab.testbed.virtual.gathered import Gatherings, Share

NS_PER_S = 1_000_000_000
GATHERED_MAX = 128
SIGKILL = 9

Report = Callable[[Event], None]
Send = Callable[[int, bytes], None]
Keep = Callable[[int, Received], None]
OnRetransmission = Callable[[int, Repeat], None]
Opened = Callable[["AgentNode"], None]


class Inboxes(dict[int, Inbox]):
    """The inboxes that all agents of a network share, by the length of the longest payload. An
    endpoint processes what is in an inbox before any other agent receives something."""

    def __missing__(self, longest_bytes: int) -> Inbox:
        made = self[longest_bytes] = Inbox(GATHERED_MAX, longest_bytes)
        return made


class VirtualSession:
    """A session of an agent. In virtual time, its datagrams can always be sent at once."""

    def __init__(self, endpoint: Endpoint, inbox: Inbox) -> None:
        self.endpoint, self.inbox = endpoint, inbox
        self.network_errors = self.kernel_drops = 0

    @property
    def stats(self) -> dict[str, int]:
        """The counts, as in hosts.agent_core.Session."""
        counts = {"kernel_drops": self.kernel_drops, "unsent": 0}
        return {**self.endpoint.counters, **counts, "network_errors": self.network_errors}

    def close(self) -> None: ...


class AgentNode:
    """One agent of one job.

    send(peer, datagram): sends a datagram. report(event): is called with every event. keep(round,
    received): is called with the arrays of a round that ended. again(peer, repeat): is called for
    every packet that is sent again, except those that native/host.c counts in `explained`.
    opened(agent): is called when the agent's `peers` have changed, which happens at its start and
    with each session.
    """

    _session: VirtualSession
    """The current session, which `open` creates."""

    def __init__(
        self,
        clock: Clock,
        configuration: Mapping[str, Any],
        send: Send,
        report: Report,
        keep: Keep,
        again: OnRetransmission = lambda peer, repeat: None,
        opened: Opened = lambda agent: None,
        explained: Explained | None = None,
        inboxes: Inboxes | None = None,
        gatherings: Gatherings | None = None,
    ) -> None:
        self._clock, self._library = clock, clock.library
        self.address: int = self._library.agent_new(clock.address, id(self))
        if not self.address:
            raise MemoryError
        self._state = native.AgentState.from_address(self.address)
        self._is_native = False
        self._answer_questions()
        self._send, self._keep, self._again, self._opened = send, keep, again, opened
        self._explained, self._inboxes = explained, Inboxes() if inboxes is None else inboxes
        self._gatherings = Gatherings() if gatherings is None else gatherings
        self._share: Share | None = None
        self._config = Config.of({**configuration, "control": "", "sums_dir": None}, "the agent")
        self._paused = False
        self.busy_until_ns = 0
        """The time until which a slow agent handles no packets."""
        self._arrived: list[tuple[int, bytes]] = []
        self._thrown_away = 0
        self._commands: list[Command] = []
        self._core = AgentCore(self._config, self, report, lambda: clock.now_ns)
        self._core.start()
        self._reconsider()

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.agent_free(self.address)

    def _answer_questions(self) -> None:
        """Answers the questions of native/host.c about this agent."""
        answers = {
            DATAGRAM: self.receive,
            TIMER: lambda _, data: self._on_timer(),
            ACT: lambda _, data: self._driven().act(),
            FINISH: lambda _, data: self._finish(),
            FAILED: lambda error, data: self._fail(self._driven().failure(error)),
            AGAIN: lambda row, data: self._tell_repeat(row),
            LOCAL: lambda peer, datagram: self._send(peer, datagram),
        }
        for question, answer in answers.items():
            self._clock.answer(question, id(self), answer)

    def send_from(self, host: int, framings: int) -> None:
        """Sets the host from which datagrams to the endpoint's peers are sent. host, framings: the
        addresses of a `struct host` and of a `struct framing` for each peer. From then on,
        native/host.c may drive the endpoint, if the endpoint has a step in C."""
        endpoint, inbox = self._session.endpoint, self._session.inbox
        self._is_native = isinstance(endpoint, NativeEndpoint)
        if isinstance(endpoint, NativeEndpoint):
            explained = ctypes.byref(self._explained) if self._explained is not None else None
            room = inbox.buffer.ctypes.data, inbox.row_bytes
            self._library.agent_drive(
                self.address, endpoint.head.address, *room, host, framings, explained
            )

    def _driven(self) -> NativeEndpoint:
        """Returns the endpoint, for calls while C code drives it."""
        endpoint = self._session.endpoint
        assert isinstance(endpoint, NativeEndpoint)
        return endpoint

    def _reconsider(self) -> None:
        """Decides whether C code drives the endpoint from now on."""
        core = self._core
        plain = not (core.slow_s or core.marks or core.is_settling)
        self._state.in_round = core.round is not None
        self._state.driven = self._is_native and plain and self._looks

    @property
    def alive(self) -> bool:
        """Whether the agent's program runs."""
        return bool(self._state.alive)

    @property
    def peers(self) -> Sequence[Address]:
        """The addresses that the agent sends to and receives from."""
        return self._session.endpoint.peers

    # Commands.

    def command(self, command: Command) -> None:
        """Executes a command of hosts.agent. While the worker is paused, the command waits until it
        continues."""
        if not self.alive:
            return
        if self._paused:
            self._commands.append(command)
        else:
            self._core.execute(command)
            self._reconsider()

    def pause(self, paused: bool) -> None:
        """Suspends the worker, or lets it continue. When it continues, it takes the datagrams that
        have arrived meanwhile."""
        if not self.alive or paused == self._paused:
            return
        self._paused = paused
        self._reconsider()
        if paused:
            return
        commands, self._commands = self._commands, []
        self._look(None)
        for command in commands:
            self.command(command)
        self._reconsider()

    def kill(self) -> None:
        """Ends the worker, which loses everything that it held."""
        if self.alive:
            self._end(-SIGKILL)

    def _end(self, status: int) -> None:
        """Ends the endpoint together with its socket. Datagrams that have arrived at the socket are
        never read."""
        stopped = self._core.round is None  # then nobody reads events any more
        stats = {} if stopped else self._core.take_unreported()
        self._state.alive = self._state.driven = 0
        self._throw_away()
        self._core.tell("ended", status=status, stats=stats)

    def _throw_away(self) -> None:
        self._thrown_away += len(self._arrived)
        self._arrived = []

    @property
    def unreported(self) -> dict[str, int]:
        """The counts that no event has reported yet."""
        return self._core.unreported

    def sample(self) -> Sample:
        """Returns a sample of what the agent is doing now (hosts.recording)."""
        return self._core.sample()

    @property
    def in_flight(self) -> int:
        """The number of the agent's packets that wait for an answer."""
        return self._session.endpoint.in_flight

    @property
    def latencies(self) -> NDArray[np.int64]:
        """The latencies of all sessions of the agent, as counts of hosts.histogram."""
        return self._core.latencies

    @property
    def computing_ns(self) -> int:
        """How long the agent computes between two sums of a round."""
        work = self._config.work
        return work.compute_ns if isinstance(work, Sgd) else 0

    @property
    def others(self) -> Others | None:
        """The endpoint's method `others` (hosts.endpoint.Others), if it has one."""
        found: Others | None = getattr(self._session.endpoint, "others", None)
        return found

    @property
    def packets(self) -> NDArray[np.void] | None:
        """The endpoint's property `packets` (hosts.endpoint.Packets), if it has one and if the
        agent's program runs."""
        found: NDArray[np.void] | None = getattr(self._session.endpoint, "packets", None)
        return found if self.alive else None

    @property
    def unread(self) -> int:
        """The number of datagrams that have arrived and that the worker has not read, or will never
        read."""
        return self._thrown_away + len(self._arrived)

    def progress(self) -> Event | None:
        """Returns the progress of the current round; None between rounds."""
        return None if self._core.round is None or not self.alive else self._core.progress()

    # What the core asks for.

    def open(self, system: ModuleType, part: Part) -> VirtualSession:
        """Opens a session with another socket and returns it."""
        self._throw_away()
        endpoint = endpoint_of(system, part)
        self._session = VirtualSession(endpoint, self._inboxes[endpoint.longest_bytes])
        self._is_native, self._state.driven = False, 0
        self._opened(self)
        return self._session

    def begin_round(self, number: int) -> None:
        """Begins a round, which ends as the clock advances."""
        endpoint, core = self._session.endpoint, self._core
        self._started_ns = self._clock.now_ns
        self._share = self._gatherings.begin(
            self._started_ns, endpoint, self._config, number, core.sums_integers
        )
        if self._share is None:
            self._begin_with_arrays(number)
        self._reconsider()
        if self._state.driven:
            self._library.agent_poll(self.address)
        else:
            self._poll()
        self._look(None)

    def _begin_with_arrays(self, number: int) -> None:
        values, work = self._config.inputs(number), self._config.work
        out = values if work.in_place else work.room(values)
        sums = np.empty(out.size, np.int32) if self._core.sums_integers else None
        self._received = Received(out, sums)
        self._session.endpoint.begin(self._started_ns, values, out, sums)

    def leave_round(self) -> None:
        """Does nothing: the progress of a round that the core has left is not used."""

    def stop(self) -> None:
        self._end(int(self._core.failed))

    # A round.

    def receive(self, peer: int, datagram: bytes) -> None:
        """Takes a datagram that has arrived at the agent's socket. If the agent does not read at
        the moment, the datagram stays in the socket."""
        assert self.alive, "a socket ends with its program"
        if not self._looks:
            self._arrived.append((peer, datagram))
            return
        self._session.inbox.fill((datagram,), (peer,))
        self._take()
        self._reconsider()

    @property
    def _looks(self) -> bool:
        """Whether the agent reads the datagrams that arrive at present."""
        return not self._paused and self._in_use and self._clock.now_ns >= self.busy_until_ns

    def kernel_drop(self) -> None:
        """Counts a datagram for the agent's socket that the kernel drops."""
        if self.alive:
            self._session.kernel_drops += 1

    def network_error(self) -> None:
        """Records that an ICMP message about one of the agent's datagrams has arrived. A real
        socket keeps one such error until the next call, but here each error is counted."""
        self._session.network_errors += 1

    def _look(self, _: object) -> None:
        """Takes the datagrams that have gathered in the socket, unless the agent still has a reason
        not to read them."""
        self._take_gathered()
        self._reconsider()

    def _take_gathered(self) -> None:
        if not self._looks:
            return
        arrived, self._arrived = self._arrived, []
        for first in range(0, len(arrived), GATHERED_MAX):
            if not self._in_use:
                self._arrived = arrived[first:]
                return
            part = arrived[first : first + GATHERED_MAX]
            self._session.inbox.fill([datagram for _, datagram in part], [peer for peer, _ in part])
            self._take()
        if self._looks:
            self._poll()

    @property
    def _in_use(self) -> bool:
        """Whether the worker is in a round, or answers other agents between rounds. After a round
        that failed, it does not answer."""
        if not self._state.alive:
            return False
        core = self._core
        if core.round is not None:
            return True
        return self._session.endpoint.listens and not core.broken_off

    def _take(self) -> None:
        session, core = self._session, self._core
        session.endpoint.on_datagrams(self._clock.now_ns, session.inbox)
        if core.slow_s:
            self.busy_until_ns = self._clock.now_ns + round(core.slow_s * NS_PER_S)
            self._clock.at(self.busy_until_ns, self._look, None)
        if core.marks:
            core.after_batch()
        if core.round is not None and session.endpoint.done:
            self._finish()
        if self._in_use:
            self._poll()

    def _poll(self) -> None:
        """Sends what is due, and sets a timer for the next deadline."""
        endpoint = self._session.endpoint
        try:
            rows = endpoint.poll(self._clock.now_ns)
        except AllReduceError as error:
            self._fail(error)
            return
        outbox = endpoint.outbox
        for row in rows.tolist():
            self._tell_repeat(row)
            self._send(outbox.peer(row), outbox.datagram(row))
        if self._core.round is not None and endpoint.done:  # these were the last of the round
            self._finish()
        self._library.agent_wake(self.address, endpoint.deadline_ns)
        self._core.after_answers()

    def _tell_repeat(self, row: int) -> None:
        endpoint = self._session.endpoint
        if repeat := endpoint.repeats(row):
            self._again(endpoint.outbox.peer(row), repeat)

    def _on_timer(self) -> None:
        if self._looks:
            self._poll()
        self._reconsider()

    def _fail(self, error: AllReduceError) -> None:
        self._core.fail(error)
        self._reconsider()

    def _finish(self) -> None:
        number = self._core.round
        assert number is not None
        try:
            self._session.endpoint.finish()
        except AllReduceError as error:
            self._fail(error)
            return
        self._keep(number, self.received())
        self._core.finish(self._started_ns, self._clock.now_ns, 0.0)
        self._reconsider()

    def received(self) -> Received:
        """Returns what the worker has received in the round that it has just completed."""
        presence = self._core.presence
        if self._share is not None:
            return self._share.received(presence)
        return replace(self._received, more=presence)

"""An agent's program in virtual time: an endpoint with hosts.agent's commands and events.

What a real one does with a socket and a control connection happens here at once: a datagram is
taken when it arrives, a command when it is given. Sending and computing take no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agglab.hosts.agent import WAITING_MAX, Config
from agglab.hosts.endpoint import Address, Endpoint, Inbox, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.own_worker import load_module
from agglab.hosts.part import WORKER
from agglab.testbed.received import Received
from agglab.testbed.virtual.clock import Clock

NS_PER_S = 1_000_000_000
NEVER_NS = 2**63 - 1
GATHERED_MAX = 128
SIGKILL = 9

Report = Callable[[dict[str, Any]], None]
Send = Callable[[int, bytes], None]
Keep = Callable[[int, Received], None]
Again = Callable[[int, Repeat], None]
Opened = Callable[["AgentNode"], None]


class AgentNode:
    """One agent of one job. `send(peer, datagram)` puts one on its way; `report(event)` is called
    with every event, `keep(round, received)` with the arrays of a round that ended,
    `again(peer, repeat)` with every packet that is sent again, `opened(agent)` when it has other
    `peers`, at first and with each session."""

    def __init__(
        self,
        clock: Clock,
        configuration: Mapping[str, Any],
        send: Send,
        report: Report,
        keep: Keep,
        again: Again = lambda peer, repeat: None,
        opened: Opened = lambda agent: None,
    ) -> None:
        self._clock, self._config = clock, configuration
        self._send, self._report, self._keep, self._again = send, report, keep, again
        self._opened = opened
        self.rank: int = configuration["rank"]
        self.alive = True
        self._paused = False
        self._slow_ns = 0
        self._busy_until_ns = 0
        self._arrived: list[tuple[int, bytes]] = []
        self._thrown_away = 0
        self._orders: list[Mapping[str, Any]] = []
        self._timer_ns: int | None = None
        self._round: int | None = None
        self._marks: list[int] = []
        self._failed = False
        self._setup = Config(**{**configuration, "control": "", "sums_dir": None})
        self._system = load_module(self._setup.system)
        self._network_errors = self._errors_before = 0
        self._before: Mapping[str, int] = {}
        self._configure(list(range(configuration["workers"])), {})
        self._tell("ready")

    def _configure(self, members: Sequence[int], settings: Mapping[str, Any]) -> None:
        self._throw_away()
        untold = Counter(self._before)
        untold.subtract(self._endpoint.counters if hasattr(self, "_endpoint") else {})
        self._endpoint: Endpoint = self._system.endpoint(self._setup.part(members, settings))
        self._inbox = Inbox(GATHERED_MAX, self._endpoint.longest_bytes)
        self._before = untold
        self._broken_off = False
        self._opened(self)

    @property
    def peers(self) -> Sequence[Address]:
        """Whom it sends to and hears."""
        return self._endpoint.peers

    # Commands.

    def command(self, order: Mapping[str, Any]) -> None:
        """One of hosts.agent's; later, while the worker is paused."""
        if not self.alive:
            return
        if self._paused:
            self._orders.append(order)
        else:
            self._obey(order)

    def _obey(self, order: Mapping[str, Any]) -> None:
        kind = order["command"]
        if kind == "round":
            self._begin(order["round"], order.get("marks", ()))
        elif kind == "abort":
            self._end_badly("aborted")
        elif kind == "configure":
            self._round = None
            self._configure(order["members"], order["settings"])
            self._tell("ready")
        elif kind == "report":
            waiting = self._endpoint.waiting(WAITING_MAX)
            self._tell("served", stats=self._told(), waiting=waiting)
        elif kind == "slow":
            self._slow_ns = round(order["delay_s"] * NS_PER_S)
        else:
            assert kind == "stop", kind
            self._end(int(self._failed))

    def pause(self, paused: bool) -> None:
        """Do nothing from now on; or go on, with what has arrived since."""
        if not self.alive or paused == self._paused:
            return
        self._paused = paused
        if paused:
            return
        orders, self._orders = self._orders, []
        self._look(None)
        for order in orders:
            self.command(order)

    def kill(self) -> None:
        """Gone, with all it held."""
        if self.alive:
            self._end(-SIGKILL)

    def _end(self, status: int) -> None:
        """With its socket: what has arrived there is read by nobody."""
        stopped = self._round is None  # then nobody reads events any more
        stats = {} if stopped else self._told()
        self.alive = False
        self._round = None
        self._throw_away()
        self._tell("ended", status=status, stats=stats)

    def _throw_away(self) -> None:
        self._thrown_away += len(self._arrived)
        self._arrived = []

    @property
    def untold(self) -> dict[str, int]:
        """What was counted and no event has told."""
        return self._stats()

    @property
    def unread(self) -> int:
        """Datagrams that have arrived and that the worker has not read, or never will."""
        return self._thrown_away + len(self._arrived)

    # A round.

    def _begin(self, number: int, marks: Sequence[int]) -> None:
        assert self._round is None, "a round is under way"
        values = self._setup.tensor(number)
        quantises = values.dtype == np.float32 and getattr(self._system, "QUANTISES", False)
        sums = np.empty(values.size, np.int32) if quantises else None
        self._round, self._marks = number, sorted(marks)
        self._received = Received(values, sums)
        self._started_ns = self._clock.now_ns
        self._endpoint.begin(self._started_ns, values, values, sums)
        self._poll()
        self._look(None)

    def receive(self, peer: int, datagram: bytes) -> None:
        """A datagram for the agent's socket has arrived. Where nobody listens it stays there."""
        assert self.alive, "a socket ends with its program"
        if not self._looks:
            self._arrived.append((peer, datagram))
            return
        self._inbox.fill((datagram,), (peer,))
        self._take()

    @property
    def _looks(self) -> bool:
        """Whether it takes what arrives."""
        return self._in_use and not (self._paused or self._clock.now_ns < self._busy_until_ns)

    def network_error(self) -> None:
        """An ICMP message about one of its datagrams has arrived. The socket keeps one such error
        until the next call; here each is counted."""
        self._network_errors += 1

    def _look(self, _: object) -> None:
        """Take what has gathered, unless there is still a reason not to look."""
        if not self._looks:
            return
        arrived, self._arrived = self._arrived, []
        for first in range(0, len(arrived), GATHERED_MAX):
            if not self._awake:
                self._arrived = arrived[first:]
                return
            part = arrived[first : first + GATHERED_MAX]
            self._inbox.fill([datagram for _, datagram in part], [peer for peer, _ in part])
            self._take()
        if self._awake:
            self._on_timer(None)

    @property
    def _awake(self) -> bool:
        return self.alive and self._in_use

    @property
    def _in_use(self) -> bool:
        """In a round, or of use to others between rounds, which it is not after one that failed."""
        return self._round is not None or (self._endpoint.listens and not self._broken_off)

    def _take(self) -> None:
        self._endpoint.on_datagrams(self._clock.now_ns, self._inbox)
        if self._slow_ns:
            self._busy_until_ns = self._clock.now_ns + self._slow_ns
            self._clock.at(self._busy_until_ns, self._look, None)
        self._after_results()

    def _after_results(self) -> None:
        done = self._endpoint.chunks_done
        while self._marks and self._marks[0] <= done:
            self._tell("chunk", round=self._round, chunk=self._marks.pop(0))
        if self._round is not None and self._endpoint.done:
            self._finish()
        elif self._awake:
            self._poll()

    def _poll(self) -> None:
        """Send what is due, and see to it that the next deadline is not missed."""
        endpoint = self._endpoint
        try:
            rows = endpoint.poll(self._clock.now_ns)
        except AllReduceError as error:
            self._fail(error, error.missing if isinstance(error, RoundTimeout) else None)
            return
        outbox = endpoint.outbox
        for row in rows.tolist():
            if repeats := endpoint.repeats(row):
                self._again(outbox.peer(row), repeats)
            self._send(outbox.peer(row), outbox.datagram(row))
        if self._round is not None and endpoint.done:  # these were the last of the round
            self._finish()
        deadline_ns = endpoint.deadline_ns
        if deadline_ns < NEVER_NS and (self._timer_ns is None or deadline_ns < self._timer_ns):
            self._timer_ns = deadline_ns
            self._clock.at(deadline_ns, self._on_timer, deadline_ns)

    def _on_timer(self, due_ns: int | None) -> None:
        """Deadlines mostly move on while a timer runs; then it is set again."""
        if due_ns is not None:
            if due_ns != self._timer_ns:
                return
            self._timer_ns = None
        if self._looks:
            self._poll()

    def progress(self) -> dict[str, Any] | None:
        """How far the round is, as hosts.agent says it; None between rounds."""
        if self._round is None:
            return None
        return {
            "event": "progress",
            "job": self._config["job"],
            "rank": self.rank,
            "round": self._round,
            "chunks": self._endpoint.chunks_done,
            "of": self._endpoint.chunks,
            "retransmitted": self._stats()["retransmitted"],
            "t_ns": self._clock.now_ns,
        }

    def _finish(self) -> None:
        number, self._round = self._round, None
        assert number is not None
        try:
            self._endpoint.finish()
        except AllReduceError as error:
            self._round = number
            self._fail(error, None)
            return
        self._keep(number, self._received)
        self._tell(
            "round",
            round=number,
            start_ns=self._started_ns,
            end_ns=self._clock.now_ns,
            cpu_s=0.0,
            stats=self._told(),
        )

    def _fail(self, error: AllReduceError, missing: Sequence[tuple[int, int]] | None) -> None:
        self._failed = True
        listed = None if missing is None else [list(pair) for pair in missing]
        self._end_badly("failed", error=str(error), missing=listed)

    def _end_badly(self, event: str, **content: Any) -> None:
        """Of a round without a result; an abort between rounds is answered too."""
        waiting: list[list[int]] = []
        known: dict[str, Any] = {"stats": {}}
        if self._round is not None:
            waiting = self._endpoint.waiting(WAITING_MAX)
            known = {"chunks": self._endpoint.chunks_done, "stats": self._told()}
            self._broken_off = True
        number, self._round, self._marks = self._round, None, []
        self._tell(event, round=number, waiting=waiting, **known, **content)

    def _stats(self) -> dict[str, int]:
        """What was counted since the last event that told."""
        counts = Counter(self._endpoint.counters)
        counts.subtract(self._before)
        errors = self._network_errors - self._errors_before
        return {**counts, "kernel_drops": 0, "unsent": 0, "network_errors": errors}

    def _told(self) -> dict[str, int]:
        stats = self._stats()
        self._before, self._errors_before = dict(self._endpoint.counters), self._network_errors
        return stats

    def _tell(self, event: str, **content: Any) -> None:
        self._report(
            {
                "event": event,
                "job": self._config["job"],
                "name": self._config["name"],
                "rank": self.rank,
                **({} if self._setup.role == WORKER else {"role": self._setup.role}),
                **content,
                "t_ns": self._clock.now_ns,
            }
        )

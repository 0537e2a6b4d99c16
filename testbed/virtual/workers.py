"""A worker's program in virtual time: hosts.worker.Worker with hosts.agent's commands and events.

What a real one does with a socket and a control connection happens here at once: a datagram is
taken when it arrives, a command when it is given. Sending and computing take no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agglab.hosts.agent import WAITING_MAX
from agglab.hosts.driver import default_window, first_timeout_s
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.tensors import make_tensor
from agglab.hosts.wire import Batch
from agglab.hosts.worker import Job, Timing, Worker
from agglab.testbed.received import Received
from agglab.testbed.virtual.clock import Clock

NS_PER_S = 1_000_000_000
GATHERED_MAX = 128
SIGKILL = 9

Report = Callable[[dict[str, Any]], None]
Send = Callable[[bytes], None]
Keep = Callable[[int, Received], None]
Again = Callable[[int, int, int], None]


class WorkerNode:
    """One worker of one job. `send(datagram)` puts one on its way to the switch; `report(event)`
    is called with every event, `keep(round, received)` with the arrays of a round that ended,
    `again(slot, tag, first_sent_ns)` with every contribution that is sent again."""

    def __init__(
        self,
        clock: Clock,
        configuration: Mapping[str, Any],
        send: Send,
        report: Report,
        keep: Keep,
        again: Again = lambda slot, tag, first_sent_ns: None,
    ) -> None:
        self._clock, self._config = clock, configuration
        self._send, self._report, self._keep, self._again = send, report, keep, again
        self.rank: int = configuration["rank"]
        self.alive = True
        self._paused = False
        self._slow_ns = 0
        self._busy_until_ns = 0
        self._arrived: list[bytes] = []
        self._thrown_away = 0
        self._orders: list[Mapping[str, Any]] = []
        self._timer_ns: int | None = None
        self._round: int | None = None
        self._marks: list[int] = []
        self._failed = False
        self._network_errors = self._errors_before = 0
        slots, lanes = configuration["slots"], configuration["lanes"]
        rate_bps = configuration["link_rate_bps"]
        window = configuration["window"] or default_window(slots, lanes, rate_bps)
        self._configure(configuration["workers"], slots, window, configuration["first_tag"])
        self._tell("ready")

    def _configure(self, workers: int, slots: int, window: int, first_tag: int) -> None:
        config = self._config
        self._throw_away()
        job = Job(config["job"], workers, config["lanes"], slots, window, first_tag)
        first_s = first_timeout_s(window, config["lanes"], config["link_rate_bps"])
        timing = Timing(
            initial_rto_ns=round(first_s * NS_PER_S),
            give_up_ns=round(config["give_up_s"] * NS_PER_S),
        )
        self._worker = Worker(job, timing)
        self._batch = Batch(1, config["lanes"])

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
            members, slots, window = order["members"], order["slots"], order["window"]
            self._round = None
            self._configure(len(members), slots, window, order["first_tag"])
            self._tell("ready")
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
        stats = {} if self._round is None else self._stats()
        self.alive = False
        self._round = None
        self._throw_away()
        self._tell("ended", status=status, stats=stats)

    def _throw_away(self) -> None:
        self._thrown_away += len(self._arrived)
        self._arrived = []

    @property
    def untold(self) -> dict[str, int]:
        """The counts of a round under way, of which no event has told; empty if there is none."""
        return {} if self._round is None else self._stats()

    @property
    def unread(self) -> int:
        """Datagrams that have arrived and that the worker has not read, or never will."""
        return self._thrown_away + len(self._arrived)

    # A round.

    def _begin(self, number: int, marks: Sequence[int]) -> None:
        config = self._config
        assert self._round is None, "a round is under way"
        key = (config["seed"], config["job"], self.rank, number)
        values = make_tensor(*key, config["elements"], config["dtype"])
        sums = np.empty(values.size, np.int32) if values.dtype == np.float32 else None
        self._round, self._marks = number, sorted(marks)
        self._received = Received(values, sums)
        self._started_ns = self._clock.now_ns
        self._before, self._errors_before = self._worker.counters, self._network_errors
        self._worker.begin(self._started_ns, values, values, sums)
        self._poll()
        self._look(None)

    def receive(self, datagram: bytes) -> None:
        """A datagram for the worker's socket has arrived. Between rounds it stays there."""
        assert self.alive, "a socket ends with its program"
        resting = self._round is None or self._paused
        if resting or self._clock.now_ns < self._busy_until_ns:
            self._arrived.append(datagram)
            return
        batch = self._batch
        batch.fill((datagram,))
        self._take(batch)

    def network_error(self) -> None:
        """An ICMP message about one of its datagrams has arrived. The socket keeps one such error
        until the next call; here each is counted."""
        self._network_errors += 1

    def _look(self, _: object) -> None:
        """Take what has gathered, unless there is still a reason not to look."""
        if self._round is None or self._paused or self._clock.now_ns < self._busy_until_ns:
            return
        arrived, self._arrived = self._arrived, []
        for first in range(0, len(arrived), GATHERED_MAX):
            if self._round is None:
                self._arrived = arrived[first:]
                return
            part = arrived[first : first + GATHERED_MAX]
            self._take(Batch.of(part, self._config["lanes"]))
        if self._round is not None:
            self._on_timer(None)

    def _take(self, batch: Batch) -> None:
        self._worker.on_results(self._clock.now_ns, batch)
        if self._slow_ns:
            self._busy_until_ns = self._clock.now_ns + self._slow_ns
            self._clock.at(self._busy_until_ns, self._look, None)
        self._after_results()

    def _after_results(self) -> None:
        done = self._worker.chunks_done
        while self._marks and self._marks[0] <= done:
            self._tell("chunk", round=self._round, chunk=self._marks.pop(0))
        if self._worker.done:
            self._finish()
        else:
            self._poll()

    def _poll(self) -> None:
        """Send what is due, and see to it that the next deadline is not missed."""
        worker, now_ns = self._worker, self._clock.now_ns
        try:
            queue = worker.poll(now_ns)
        except AllReduceError as error:
            self._fail(error, error.missing if isinstance(error, RoundTimeout) else None)
            return
        slots = worker.slots
        for slot in queue.tolist():
            if slots["attempt"][slot]:
                self._again(slot, int(slots["tag"][slot]), int(slots["first_sent_ns"][slot]))
            self._send(worker.datagram(slot))
        deadline_ns = worker.deadline_ns
        if self._timer_ns is None or deadline_ns < self._timer_ns:
            self._timer_ns = deadline_ns
            self._clock.at(deadline_ns, self._on_timer, deadline_ns)

    def _on_timer(self, due_ns: int | None) -> None:
        """Deadlines mostly move on while a timer runs; then it is set again."""
        if due_ns is not None:
            if due_ns != self._timer_ns:
                return
            self._timer_ns = None
        if self._round is None or self._paused or self._clock.now_ns < self._busy_until_ns:
            return
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
            "chunks": self._worker.chunks_done,
            "of": self._worker.chunks,
            "retransmitted": self._stats()["retransmitted"],
            "t_ns": self._clock.now_ns,
        }

    def _finish(self) -> None:
        number, self._round = self._round, None
        assert number is not None
        try:
            self._worker.finish()
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
            stats=self._stats(),
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
            slots = self._worker.slots
            for slot in np.flatnonzero(slots["waiting"])[:WAITING_MAX].tolist():
                waiting.append([int(slots["chunk"][slot]), slot, int(slots["tag"][slot])])
            known = {"chunks": self._worker.chunks_done, "stats": self._stats()}
        number, self._round = self._round, None
        self._tell(event, round=number, waiting=waiting, **known, **content)

    def _stats(self) -> dict[str, int]:
        now = self._worker.counters
        counts = {name: count - self._before[name] for name, count in now.items()}
        errors = self._network_errors - self._errors_before
        return {**counts, "kernel_drops": 0, "unsent": 0, "network_errors": errors}

    def _tell(self, event: str, **content: Any) -> None:
        self._report(
            {
                "event": event,
                "job": self._config["job"],
                "name": self._config["name"],
                "rank": self.rank,
                **content,
                "t_ns": self._clock.now_ns,
            }
        )

"""Runs generators concurrently on the clock of a backend.

A process is a generator. It yields the time until which it waits. It is then sent the next event
that concerns it, or None when that time has come. It runs only at these moments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from agglab.testbed.base.worker_id import Event

S = 1_000_000_000
FOREVER_NS = 1 << 62

T = TypeVar("T")
Process: TypeAlias = Generator[int, "Event | None", T]


class RunClock:
    """The backend's clock, and the moment from which the scenario's times count. start_ns: this
    moment; None until all agents are ready."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self.start_ns: int | None = None

    def start(self) -> Process[int]:
        """Waits until the scenario's times begin to count, and returns the moment at which they
        did."""
        while self.start_ns is None:
            yield FOREVER_NS
        return self.start_ns

    def sleep_until(self, at_ns: int) -> Process[None]:
        """Waits until this time, whatever events come before it."""
        while self.now_ns() < at_ns:
            yield at_ns

    def after_s(self, seconds: float) -> int:
        """Returns the time this many seconds from now."""
        return self.now_ns() + round(seconds * S)


class Scheduler:
    """The processes by name, and the events that are to be delivered to them."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._processes: dict[object, Process[None]] = {}
        self._jobs: dict[object, int | None] = {}
        self._deadlines: dict[object, int] = {}
        self._pending: deque[Event] = deque()

    def add(self, name: object, process: Process[None], job: int | None = None) -> None:
        """Begins a process. job: the number of the only job whose events it receives, besides
        events without a job. Processes that are due at the same time run in the order in which they
        were added."""
        self._processes[name], self._jobs[name] = process, job
        self._advance(name, None)

    def runs(self, name: object) -> bool:
        """Returns whether the process with that name is still running."""
        return name in self._processes

    @property
    def until_ns(self) -> int:
        """The time at which the next process is due if no event comes before this time."""
        return min(self._deadlines.values(), default=FOREVER_NS)

    def post(self, event: Event) -> None:
        """Queues an event for `deliver`."""
        self._pending.append(event)

    def deliver(self) -> None:
        """Delivers all queued events. Events that they cause are delivered after them."""
        while self._pending:
            event = self._pending.popleft()
            for name in list(self._processes):
                if self._jobs[name] is None or event.get("job") in (None, self._jobs[name]):
                    self._advance(name, event)

    def expire(self) -> None:
        """Wakes the processes that waited until a time that has come."""
        now_ns = self._now_ns()
        for name in [name for name, due_ns in self._deadlines.items() if due_ns <= now_ns]:
            self.wake(name)

    def wake(self, name: object) -> None:
        """Wakes a process as if the time until which it waits had come."""
        self._advance(name, None)

    def _advance(self, name: object, event: Event | None) -> None:
        process = self._processes.get(name)
        if process is None:
            return
        try:
            self._deadlines[name] = process.send(event)
        except StopIteration:
            del self._processes[name]
            self._deadlines.pop(name, None)

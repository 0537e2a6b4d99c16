"""Runs generators side by side on one clock.

A process is a generator: it says until when it waits, and is sent the next event that concerns it,
or None when that time has come. It is given no other time to do anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from agglab.testbed.worker_id import Event

S = 1_000_000_000
FOREVER_NS = 1 << 62

T = TypeVar("T")
Process: TypeAlias = Generator[int, "Event | None", T]


class RunClock:
    """The backend's clock, and from when the times of a scenario count. start_ns: None until all
    agents are ready."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self.start_ns: int | None = None

    def start(self) -> Process[int]:
        """Wait until times count; since when they do."""
        while self.start_ns is None:
            yield FOREVER_NS
        return self.start_ns

    def sleep_until(self, at_ns: int) -> Process[None]:
        """Whatever happens meanwhile."""
        while self.now_ns() < at_ns:
            yield at_ns

    def after_s(self, seconds: float) -> int:
        """The time so many seconds from now."""
        return self.now_ns() + round(seconds * S)


class Scheduler:
    """Processes by name, and events on their way to them."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._processes: dict[object, Process[None]] = {}
        self._jobs: dict[object, int | None] = {}
        self._deadlines: dict[object, int] = {}
        self._pending: deque[Event] = deque()

    def add(self, name: object, process: Process[None], job: int | None = None) -> None:
        """Begin a process. job: the number of the only job whose events concern it, beside those of
        no job. What is due at one time is done in the order in which processes were added."""
        self._processes[name], self._jobs[name] = process, job
        self._advance(name, None)

    def runs(self, name: object) -> bool:
        """Whether that process has not ended."""
        return name in self._processes

    @property
    def until_ns(self) -> int:
        """When the next process is due, if no event comes before."""
        return min(self._deadlines.values(), default=FOREVER_NS)

    def post(self, event: Event) -> None:
        """An event that `deliver` will deliver."""
        self._pending.append(event)

    def deliver(self) -> None:
        """All events that wait; what comes of one is delivered after those before it."""
        while self._pending:
            event = self._pending.popleft()
            for name in list(self._processes):
                if self._jobs[name] is None or event.get("job") in (None, self._jobs[name]):
                    self._advance(name, event)

    def expire(self) -> None:
        """Wake whose time has come."""
        now_ns = self._now_ns()
        for name in [name for name, due_ns in self._deadlines.items() if due_ns <= now_ns]:
            self.wake(name)

    def wake(self, name: object) -> None:
        """As if its time had come."""
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

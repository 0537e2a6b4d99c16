"""Tells other parts whenever a round of any job begins or ends, and measures processor time and
carried bytes between these moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agglab.testbed.base import processor_time
from agglab.testbed.base.processor_time import Usage
from agglab.testbed.run.journal import Journal
from agglab.testbed.run.outcome import JobResult, Round, Span
from agglab.testbed.run.verifier import Verifier


class Counters(Protocol):
    """The methods of a backend from which a Meter reads."""

    def now_ns(self) -> int: ...

    def usage(self) -> Usage: ...

    def carried_bytes(self) -> dict[str, int]: ...


class Meter:
    """Measures processor time and carried bytes in the periods in which rounds of any job run.

    usage: the processor time in these periods so far. spans: the periods that have ended.
    """

    def __init__(self, counters: Counters) -> None:
        self.usage = processor_time.NOTHING
        self.spans: list[Span] = []
        self._counters = counters
        self._under_way = 0
        self._before = processor_time.NOTHING
        self._since: tuple[int, Mapping[str, int]] | None = None

    def begin(self) -> None:
        """Notes that a round of some job begins."""
        if self._under_way == 0:
            self._before = self._counters.usage()
        if self._since is None:
            self._since = (self._counters.now_ns(), self._counters.carried_bytes())
        self._under_way += 1

    def over(self, broken_off: bool) -> None:
        """Notes that a round has ended. broken_off: whether it was aborted. An aborted round leaves
        frames in queues, so its period continues."""
        self._under_way -= 1
        if self._under_way:
            return
        self.usage = self.usage + self._counters.usage().since(self._before)
        if not broken_off:
            self.finish()

    def finish(self) -> None:
        """Ends the current period, if there is one. The clock is read after the counters. Therefore
        the period is never too short for the bytes that were carried in it."""
        if self._since is None:
            return
        (begin_ns, before), self._since = self._since, None
        now = self._counters.carried_bytes()
        carried = {name: count - before[name] for name, count in now.items()}
        self.spans.append(Span(begin_ns, self._counters.now_ns(), carried))


class Rounds:
    """Notifies every part that needs to know when rounds begin and end."""

    def __init__(self, counters: Counters, meter: Meter, journal: Journal, verifier: Verifier):
        self._counters, self._meter = counters, meter
        self._journal, self._verifier = journal, verifier

    def begins(self, result: JobResult, number: int, members: Sequence[int]) -> None:
        """Notes that an attempt at a round begins."""
        self._meter.begin()
        self._journal.round_begins(result.job, number, members, self._counters.now_ns())

    def over(self, result: JobResult, done: Round) -> None:
        """Notes that a round was completed."""
        result.rounds.append(done)
        self._meter.over(broken_off=False)
        self._journal.round_over(result.job, done)
        self._verifier.round_over(result, done)

    def broken_off(self, result: JobResult) -> None:
        """Notes that an attempt will not be completed. After the members have left the round,
        `left` collects what they have received."""
        self._meter.over(broken_off=True)
        self._journal.tell("round_broken_off", of=result.job.name)

    def left(self, result: JobResult, number: int, members: Sequence[int]) -> None:
        """Notes that members have left an aborted round. Some of them may have received its
        result."""
        self._verifier.broken_off(result, number, members)

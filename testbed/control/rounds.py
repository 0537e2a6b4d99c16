"""What is done whenever a round of any job begins or is over, and what is measured meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agglab.testbed import usage
from agglab.testbed.control.journal import Journal
from agglab.testbed.control.outcome import JobResult, Round, Span
from agglab.testbed.control.verifier import Verifier
from agglab.testbed.usage import Usage


class Counters(Protocol):
    """What a meter reads of a backend."""

    def now_ns(self) -> int: ...

    def usage(self) -> Usage: ...

    def carried_bytes(self) -> dict[str, int]: ...


class Meter:
    """Processor time and carried bytes of the times in which rounds of any job are under way.

    usage: so far; spans: those that are over.
    """

    def __init__(self, counters: Counters) -> None:
        self.usage = usage.NOTHING
        self.spans: list[Span] = []
        self._counters = counters
        self._under_way = 0
        self._before = usage.NOTHING
        self._since: tuple[int, Mapping[str, int]] | None = None

    def begin(self) -> None:
        """A round of some job."""
        if self._under_way == 0:
            self._before = self._counters.usage()
        if self._since is None:
            self._since = (self._counters.now_ns(), self._counters.carried_bytes())
        self._under_way += 1

    def over(self, broken_off: bool) -> None:
        """A round is over. One that was broken off leaves frames in queues: its span goes on."""
        self._under_way -= 1
        if self._under_way:
            return
        self.usage = self.usage + self._counters.usage().since(self._before)
        if not broken_off:
            self.finish()

    def finish(self) -> None:
        """The span is over, if there is one. The clock is read outside the counters, so that it is
        never too short for what was carried."""
        if self._since is None:
            return
        (begin_ns, before), self._since = self._since, None
        now = self._counters.carried_bytes()
        carried = {name: count - before[name] for name, count in now.items()}
        self.spans.append(Span(begin_ns, self._counters.now_ns(), carried))


class Rounds:
    """Tells everybody whom rounds concern."""

    def __init__(self, counters: Counters, meter: Meter, journal: Journal, verifier: Verifier):
        self._counters, self._meter = counters, meter
        self._journal, self._verifier = journal, verifier

    def begins(self, result: JobResult, number: int, members: Sequence[int]) -> None:
        """An attempt at a round begins."""
        self._meter.begin()
        self._journal.round_begins(result.job, number, members, self._counters.now_ns())

    def over(self, result: JobResult, done: Round) -> None:
        """A round has ended."""
        result.rounds.append(done)
        self._meter.over(broken_off=False)
        self._journal.round_over(result.job, done)
        self._verifier.round_over(result, done)

    def broken_off(self, result: JobResult) -> None:
        """An attempt will not end; what members have received of it is asked for when they have
        left it (`left`)."""
        self._meter.over(broken_off=True)
        self._journal.tell("round_broken_off", of=result.job.name)

    def left(self, result: JobResult, number: int, members: Sequence[int]) -> None:
        """Members have left a round that was broken off, some perhaps with its result."""
        self._verifier.broken_off(result, number, members)

"""Runs a job's controller: calls it before each round and at its deadlines, and writes the entries
that it returns to the switches."""

from __future__ import annotations

from collections.abc import Callable

from agglab.testbed.run.outcome import ControlCounts, JobResult
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.scheduler import FOREVER_NS, Process, RunClock
from agglab.testbed.run.table_writer import TableWriter
from agglab.testbed.systems.base import Changes, Controller, Readings


class ControllerRunner:
    """Runs the controller of one job. switches: reads from the switches what the controller is
    shown. tell: a function that is called with an event before each round, whenever entries have
    changed, and when a deadline was missed. The event before a round tells `steps` that there may
    be a new deadline."""

    def __init__(
        self,
        result: JobResult,
        controller: Controller,
        switches: Readings,
        clock: RunClock,
        roster: Roster,
        table_writer: TableWriter,
        tell: Callable[..., None],
    ) -> None:
        self._job, self._controller = result.job, controller
        self._switches, self._clock, self._roster = switches, clock, roster
        self._table_writer, self._tell = table_writer, tell
        self._counts = result.control = ControlCounts()

    def begin_round(self, number: int) -> None:
        """Calls the controller before an attempt at a round begins."""
        active = self._roster.active(self._job)
        now_ns = self._now_ns()
        changes = self._controller.begin_round(now_ns, number, active, self._switches)
        self._apply(changes, None, round=number)

    def steps(self) -> Process[None]:
        """Calls the controller at its deadlines until the job ends."""
        yield from self._clock.start()
        while True:
            event = yield self._due_ns()
            if event and event["event"] == "job_end" and event["of"] == self._job.name:
                return
            due_ns = self._controller.deadline_ns
            # Only when its time has come, not within the delivery of events: others take turns.
            if event is None and self._now_ns() >= due_ns:
                changes = self._controller.step(self._now_ns(), self._switches)
                assert self._controller.deadline_ns > due_ns, (
                    "the controller's next deadline is not later than its last one"
                )
                self._apply(changes, due_ns)

    def _apply(self, changes: Changes | None, due_ns: int | None, **content: int) -> None:
        counts = self._counts
        differing = self._table_writer.control(self._job.number, changes) if changes else {}
        counts.steps += 1
        counts.entries += sum(differing.values())
        missed = False
        if due_ns is not None:
            late_ns = content["late_ns"] = self._now_ns() - due_ns
            missed = late_ns > self._controller.patience_ns
            counts.deadlines += 1
            counts.missed += missed
            counts.latest_ns = max(counts.latest_ns, late_ns)
        if due_ns is None or differing or missed:
            self._tell("controlled", of=self._job.name, entries=differing, **content)

    def _now_ns(self) -> int:
        """Returns the nanoseconds since the scenario's times began to count."""
        assert self._clock.start_ns is not None, "rounds can only begin after the start"
        return self._clock.now_ns() - self._clock.start_ns

    def _due_ns(self) -> int:
        deadline_ns = self._controller.deadline_ns
        start_ns = self._clock.start_ns
        assert start_ns is not None
        return min(FOREVER_NS, start_ns + deadline_ns)

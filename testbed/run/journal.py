"""Passes on what happens during a run: to the log, to the screen, and to parts that wait for
events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agglab.testbed.base.worker_id import Event
from agglab.testbed.run.outcome import Round
from agglab.testbed.run.progress import Progress
from agglab.testbed.run.result_folder import EventLog
from agglab.testbed.schema.jobs import Job


class Journal:
    """Writes what happens during a run to the log and the screen. chunks: number of chunks of a
    round, by the job's number. post: a function that receives every event for which some part may
    wait."""

    def __init__(
        self,
        log: EventLog,
        progress: Progress,
        chunks: Mapping[int, int],
        post: Callable[[Event], None],
    ) -> None:
        self._log, self._progress = log, progress
        self._chunks, self._post = chunks, post

    def note(self, event: str, **content: Any) -> None:
        """Writes an event to the log only."""
        self._log.add(event, **content)

    def tell(self, event: str, **content: Any) -> None:
        """Logs an event of the testbed itself and passes it to all parts."""
        self._log.add(event, **content)
        self._post({"event": event, **content})

    def heard(self, event: Event) -> None:
        """Handles an event of an agent."""
        fields = {k: v for k, v in event.items() if k not in ("event", "t_ns", "report")}
        if "t_ns" in event:
            fields["agent_ns"] = event["t_ns"]
        if event["event"] == "round":
            fields["chunks"] = self._chunks[event["job"]]
        self._log.add(event["event"], **fields)
        if event["event"] in ("progress", "round"):
            self._progress.event(event)
        if event["event"] == "trained":
            self._progress.trained(event)
        self._post(event)

    def round_begins(self, job: Job, number: int, members: Sequence[int], now_ns: int) -> None:
        ranks = list(members)
        self._log.add("round_begin", of=job.name, job=job.number, round=number, ranks=ranks)
        self._progress.begin_round(job.number, number, now_ns)

    def round_over(self, job: Job, done: Round) -> None:
        self._progress.end_round(job.number, done.time_s)

    def draw(self, asked: Callable[[], Sequence[Event]]) -> None:
        """Draws the progress of the run on the screen, if it is time to do so. asked: a function
        that returns the progress of agents that do not report it themselves."""
        if self._progress.due():
            for event in asked():
                self._progress.event(event)
            self._progress.draw()

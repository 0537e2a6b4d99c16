"""What is said of a run while it goes on: to the log, the screen, and whoever waits for events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agglab.testbed.control.outcome import Round
from agglab.testbed.progress import Progress
from agglab.testbed.record import EventLog
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.worker_id import Event


class Journal:
    """chunks: of a round, by the number of the job. post: gets every event that somebody may wait
    for."""

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
        """For the record alone."""
        self._log.add(event, **content)

    def tell(self, event: str, **content: Any) -> None:
        """Record an event of the testbed's own and let everybody know."""
        self._log.add(event, **content)
        self._post({"event": event, **content})

    def heard(self, event: Event) -> None:
        """An event of an agent."""
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
        """Draw the screen, if it is time to. asked: how far agents are that do not say it."""
        if self._progress.due():
            for event in asked():
                self._progress.event(event)
            self._progress.draw()

"""Reads what has happened in a run from its log, from the logs of its switches and from the
counters of its links."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agglab.testbed.base.worker_id import Event
from agglab.testbed.experiment.single_run import EVENTS
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import ResolvedScenario

LINES_MAX = 400
"""The largest number of lines of a trace that is shown at a time."""


class Tail:
    """The end of a file to which somebody writes lines."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def new(self) -> list[str]:
        """Returns the complete lines that are new since the last call."""
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            whole = file.read().rpartition(b"\n")[0]
        self._at += len(whole) + bool(whole)
        return whole.decode(errors="replace").splitlines() if whole else []


class News:
    """What has happened since it was last told."""

    def __init__(
        self,
        folder: RunFolder,
        backend: Backend,
        resolved: ResolvedScenario,
        place: Callable[[int], str],
    ) -> None:
        """place: returns where the fault with a number is."""
        self._backend, self._is_virtual, self._place = backend, resolved.virtual, place
        self._events = Tail(folder.path / EVENTS)
        names = [switch.name for switch in resolved.graph.switches]
        self._traces = {name: Tail(folder.logs / f"switch-{name}.log") for name in names}
        self._lost = self._losses()

    def forget(self) -> None:
        """Treats everything that has happened so far as told."""
        for tail in (self._events, *self._traces.values()):
            tail.new()
        self._lost = self._losses()

    def lines(self, traced: bool, packet: str = "") -> list[str]:
        """Returns lines for people. traced: whether to include what the switches' programs did with
        each packet. packet: a line about the packet that has just arrived, for its place among the
        others."""
        events = [json.loads(line) for line in self._events.new()]
        now_ns = self._backend.now_ns()
        before = [event for event in events if event["t_ns"] < now_ns]
        return [
            *self._told(before),
            *([packet] if packet else ()),
            *self._steps(traced),
            *self._told(events[len(before) :]),
            *self._newly_lost(),
        ]

    def _steps(self, traced: bool) -> Iterator[str]:
        steps = [f"{name} {line}" for name, t in self._traces.items() for line in t.new()]
        if traced:
            yield from steps[:LINES_MAX]
            if len(steps) > LINES_MAX:
                yield f"... and {len(steps) - LINES_MAX} more lines of the trace"

    def _told(self, events: Iterable[Event]) -> Iterator[str]:
        """Yields lines about events. On real links times count since the machine's start, so they
        are left out."""
        for event in events:
            if words := self._words(event):
                yield f"{event['t_ns'] / 1e6:.3f} ms  {words}" if self._is_virtual else words

    def _newly_lost(self) -> Iterator[str]:
        lost = self._losses()
        for direction, frames in lost.items():
            if new := frames - self._lost[direction]:
                yield f"{direction}: {new} frame{'s' * (new > 1)} lost"
        self._lost = lost

    def _losses(self) -> dict[str, int]:
        """Returns by direction how many frames have been lost."""
        return {way.direction: way.lost for way in self._backend.statistics().directions}

    def _words(self, event: Event) -> str:
        """Returns a line about an event; empty if it means nothing to people."""
        if event["event"] in ("fault", "fault_end"):
            does = "begins" if event["event"] == "fault" else "ends"
            place = self._place(event["number"])
            return f"fault {event['number']}, {event['fault']} of {place}, {does}"
        return _words(event)


def _words(event: Event) -> str:
    """Returns a line about an event of a job or an agent; empty if it means nothing to people."""
    kind = event["event"]
    if kind == "round_begin":
        return f"round {event['round']} of {event['of']} begins"
    if kind == "verified":
        is_right = event["wrong_results"] == event["wrong_sums"] == 0
        wrong = f"WRONG: {event['wrong_sums']} sums, {event['wrong_results']} results"
        return f"round {event['round']} of {event['of']}: {'right' if is_right else wrong}"
    if kind == "round":
        again = event["stats"]["retransmitted"]
        return f"{event['name']} has the result of round {event['round']}; {again} sent again"
    if kind == "failed":
        return f"{event['name']}: {event['error']}"
    if kind == "ended":
        return f"{event['name']}: its program ended with status {event['status']}"
    plain = {"round_broken_off": "the round is broken off", "job_end": "the job has ended"}
    return f"{event['of']}: {plain[kind]}" if kind in plain else ""

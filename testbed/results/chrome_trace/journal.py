"""Adds rounds, faults and what else events.jsonl says to a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agglab.testbed.results.chrome_trace.writer import Lane, TraceWriter

Event = Mapping[str, Any]
PROGRESS = Lane("run", "events")
SILENT = ("progress", "chunk", "ready", "round_begin", "started")
"""Events that are not marked: what they say is drawn otherwise."""


def add_events(writer: TraceWriter, events: Sequence[Event]) -> int:
    """Adds all events, and returns the time from which a trace counts, as events.jsonl has it: the
    moment when all agents were ready."""
    starts = (int(e["at_ns"]) for e in events if e["event"] == "started")
    start_ns = next(starts, int(events[0]["t_ns"]))
    reader = _Journal(writer, start_ns)
    for event in events:
        reader.take(event)
    reader.end(int(events[-1]["t_ns"]))
    return start_ns


class _Journal:
    def __init__(self, writer: TraceWriter, start_ns: int) -> None:
        self._writer, self._start_ns = writer, start_ns
        self._faults: dict[int, Event] = {}
        self._takes: dict[str, Callable[[Event], None]] = {
            "round": self._round,
            "fault": self._fault,
            "fault_end": self._fault_end,
        }

    def take(self, event: Event) -> None:
        kind = str(event["event"])
        if kind in self._takes:
            self._takes[kind](event)
        elif kind not in SILENT:
            self._writer.mark(PROGRESS, kind, self._since(event["t_ns"]), "run", _told(event))

    def end(self, t_ns: int) -> None:
        """Ends the faults that last until the end."""
        for fault in list(self._faults.values()):
            self._fault_end({**fault, "t_ns": t_ns})

    def _round(self, event: Event) -> None:
        self._writer.slice(
            Lane(str(event["name"]), f"job {event['job']} rank {event['rank']}"),
            f"round {event['round']}",
            self._since(event["start_ns"]),
            self._since(event["end_ns"]),
            "round",
            event["stats"],
        )

    def _fault(self, event: Event) -> None:
        self._faults[int(event["number"])] = event

    def _fault_end(self, event: Event) -> None:
        begun = self._faults.pop(int(event["number"]), event)
        lane = Lane(PROGRESS.process, f"fault {event['number']}")  # faults may overlap
        name = f"{event['fault']} {event['target']}"
        begin_ns, end_ns = self._since(begun["t_ns"]), self._since(event["t_ns"])
        self._writer.slice(lane, name, begin_ns, end_ns, "fault", {})

    def _since(self, t_ns: Any) -> int:
        return int(t_ns) - self._start_ns


def _told(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in ("event", "t_ns", "stats")}

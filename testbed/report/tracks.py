"""Extracts from events.jsonl how many chunks were done over time. Only measured points are
connected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agglab.testbed.report.chart import Piece

Event = Mapping[str, Any]
Who = tuple[int, int]
"""The number of a job and the rank of one of its workers."""
NS_PER_S = 1e9


def tracks(events: Sequence[Event], begin_ns: int) -> dict[Who, list[Piece]]:
    """Returns for each worker the pieces of a line, one for each attempt at a round. A point has
    the seconds since `begin_ns` and the number of chunks done since the first round began."""
    reader = _Reader(events, begin_ns)
    for event in events:
        reader.take(event)
    return reader.pieces()


class _Reader:
    """Collects the points of current attempts, and the pieces of those that are over."""

    def __init__(self, events: Sequence[Event], begin_ns: int) -> None:
        self._begin_ns = begin_ns
        self._chunks = _chunks_of_rounds(events)
        self._open: dict[Who, list[tuple[float, float]]] = {}
        self._done: dict[Who, list[Piece]] = {}

    def pieces(self) -> dict[Who, list[Piece]]:
        for who in list(self._open):
            self._close(who, dashed=True)
        return self._done

    def take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "round_begin":
            for rank in event["ranks"]:
                who = (event["job"], rank)
                self._close(who, dashed=True)
                self._open[who] = [self._point(event["t_ns"], event, 0)]
        elif kind == "progress":
            self._add(event, _agent_ns(event), event["chunks"])
        elif kind == "chunk":
            self._add(event, _agent_ns(event), event["chunk"])
        elif kind == "round":
            self._round(event)
        elif kind in ("failed", "aborted") and event.get("round") is not None:
            if "chunks" in event:
                self._add(event, _agent_ns(event), event["chunks"])
            self._close((event["job"], event["rank"]), dashed=True)
        elif kind == "ended":
            self._close((event["job"], event["rank"]), dashed=True)

    def _round(self, event: Event) -> None:
        who = (event["job"], event["rank"])
        if who not in self._open:
            self._open[who] = [self._point(event["start_ns"], event, 0)]
        self._add(event, event["end_ns"], event["chunks"])
        self._close(who, dashed=False)

    def _add(self, event: Event, at_ns: int, chunks: int) -> None:
        who = (event["job"], event["rank"])
        self._open.setdefault(who, []).append(self._point(at_ns, event, chunks))

    def _point(self, at_ns: int, event: Event, chunks: int) -> tuple[float, float]:
        before = event["round"] * self._chunks.get(event["job"], 0)
        return (at_ns - self._begin_ns) / NS_PER_S, before + chunks

    def _close(self, who: Who, dashed: bool) -> None:
        points = self._open.pop(who, [])
        if len(points) > 1:
            self._done.setdefault(who, []).append(Piece(points, dashed))


def _agent_ns(event: Event) -> int:
    """Returns when the event happened. This may be earlier than when the testbed received it."""
    return int(event.get("agent_ns", event["t_ns"]))


def _chunks_of_rounds(events: Sequence[Event]) -> dict[int, int]:
    """Returns for each job how many chunks each of its rounds has."""
    found: dict[int, int] = {}
    for event in events:
        if event["event"] == "progress" and "of" in event:
            found[event["job"]] = event["of"]
        elif event["event"] == "round":
            found[event["job"]] = event["chunks"]
    return found

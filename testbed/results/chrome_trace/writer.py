"""Writes trace events in the JSON object format of "Trace Event Format" (Google, 2016). A process
stands for a node or for a kind of thing, and a thread for what happens there one after another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

NS_PER_US = 1000
SHORTEST_NS = 1
"""The length of what takes no time: slices without length cannot be clicked on."""
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Span:
    """A part of a run, in ns since its start; to_ns is not included."""

    from_ns: int = 0
    to_ns: int = 2**63 - 1

    def overlaps(self, begin_ns: int, end_ns: int) -> bool:
        return begin_ns < self.to_ns and end_ns >= self.from_ns


@dataclass(frozen=True)
class Lane:
    """A line of the picture: a thread of a process, by their names."""

    process: str
    thread: str


class TraceWriter:
    """Writes events one after another. All times are in ns since the start of the run. Events
    outside the span are left out. `close` must be called at the end."""

    def __init__(self, out: TextIO, span: Span, bytes_max: int) -> None:
        self.span = span
        self.events = 0
        """How many events have been written, without names of processes and threads."""
        self._out, self._bytes_max, self._bytes = out, bytes_max, 0
        self._processes: dict[str, int] = {}
        self._threads: dict[Lane, int] = {}
        self._arrows = 0
        self._separator = '{"displayTimeUnit": "ns", "traceEvents": [\n'

    @property
    def is_full(self) -> bool:
        """Whether the file has its greatest length. Events that are added all the same are
        written."""
        return self._bytes >= self._bytes_max

    def slice(
        self, lane: Lane, name: str, begin_ns: int, end_ns: int, category: str, args: Arguments
    ) -> None:
        """Adds something that lasts. Slices of one lane must not overlap."""
        if self.span.overlaps(begin_ns, end_ns):
            length_ns = max(end_ns - begin_ns, SHORTEST_NS)
            self._add(lane, "X", name, begin_ns, dur=length_ns / NS_PER_US, cat=category, args=args)

    def mark(self, lane: Lane, name: str, at_ns: int, category: str, args: Arguments) -> None:
        """Adds something that happened at a moment."""
        if self.span.overlaps(at_ns, at_ns):
            self._add(lane, "i", name, at_ns, s="t", cat=category, args=args)

    def count(self, process: str, name: str, at_ns: int, value: float) -> None:
        """Adds the value that a number has from a moment on."""
        if self.span.overlaps(at_ns, at_ns):
            self._add(Lane(process, ""), "C", name, at_ns, args={"value": value})

    def arrow(self, begin: Lane, begin_ns: int, end: Lane, end_ns: int) -> None:
        """Adds an arrow from the slice that begins at begin_ns to the one that begins at end_ns."""
        if self.span.overlaps(begin_ns, end_ns):
            self._arrows += 1
            told = {"cat": "way", "id": self._arrows}
            self._add(begin, "s", "way", begin_ns, **told)
            self._add(end, "f", "way", max(begin_ns, end_ns), bp="e", **told)

    def close(self, about: Arguments) -> None:
        """Ends the file. about: facts about the whole trace."""
        if not self._bytes:
            self._write_text(self._separator)
        self._write_text(f'\n], "otherData": {json.dumps(about)}}}\n')

    def _add(self, lane: Lane, phase: str, name: str, at_ns: int, **more: Any) -> None:
        pid, tid = self._process(lane.process), self._thread(lane)
        self.events += 1
        self._write(
            {"ph": phase, "name": name, "pid": pid, "tid": tid, "ts": at_ns / NS_PER_US, **more}
        )

    def _process(self, name: str) -> int:
        if name not in self._processes:
            pid = self._processes[name] = len(self._processes) + 1
            told = {"ph": "M", "pid": pid, "tid": 0}
            self._write({**told, "name": "process_name", "args": {"name": name}})
            self._write({**told, "name": "process_sort_index", "args": {"sort_index": pid}})
        return self._processes[name]

    def _thread(self, lane: Lane) -> int:
        if not lane.thread:
            return 0
        if lane not in self._threads:
            tid = self._threads[lane] = len(self._threads) + 1
            told = {"ph": "M", "pid": self._process(lane.process), "tid": tid}
            self._write({**told, "name": "thread_name", "args": {"name": lane.thread}})
            self._write({**told, "name": "thread_sort_index", "args": {"sort_index": tid}})
        return self._threads[lane]

    def _write(self, event: Mapping[str, Any]) -> None:
        self._write_text(self._separator + json.dumps(event, separators=(",", ":")))
        self._separator = ",\n"

    def _write_text(self, text: str) -> None:
        self._bytes += len(text)  # json.dumps writes ASCII
        self._out.write(text)

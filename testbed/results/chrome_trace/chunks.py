"""Draws which chunks a host has under way: from the first packet that it sends about a chunk to the
first answer."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from agglab.hosts.endpoint import NEVER_NS
from agglab.testbed.results.chrome_trace.writer import Lane, TraceWriter


@dataclass
class _UnderWay:
    words: str
    begin_ns: int
    row: int
    packets: int = 1


class ChunksUnderWay:
    """The chunks of one host. Those that are under way at the same time have different lanes, and
    the lowest free lane is taken, so that the number of lanes is the host's window."""

    def __init__(self, writer: TraceWriter, host: str) -> None:
        self._writer, self._host = writer, host
        self._chunks: dict[Hashable, _UnderWay] = {}
        self._free_ns: list[int] = []
        """From when on each lane is free; NEVER_NS while a chunk has it."""

    def sent(self, key: Hashable, words: str, at_ns: int) -> None:
        """key: tells the chunk apart from all others that are under way. words: its name."""
        if chunk := self._chunks.get(key):
            chunk.packets += 1
            return
        self._chunks[key] = _UnderWay(words, at_ns, self._take_row(at_ns))

    def answered(self, key: Hashable, at_ns: int) -> None:
        """An answer came. Further answers are not drawn."""
        if key in self._chunks:
            self._draw(self._chunks.pop(key), at_ns, True)

    def end(self, at_ns: int) -> None:
        """Draws the chunks that were never answered."""
        for chunk in self._chunks.values():
            self._draw(chunk, at_ns, False)
        self._chunks.clear()

    def _take_row(self, at_ns: int) -> int:
        free = (row for row, free_ns in enumerate(self._free_ns) if free_ns <= at_ns)
        row = next(free, len(self._free_ns))
        self._free_ns[row : row + 1] = [NEVER_NS]
        return row

    def _draw(self, chunk: _UnderWay, at_ns: int, answered: bool) -> None:
        self._free_ns[chunk.row] = at_ns
        lane = Lane(self._host, f"under way {chunk.row}")
        args = {"packets_sent": chunk.packets, "answered": answered}
        self._writer.slice(lane, chunk.words, chunk.begin_ns, at_ns, "chunk", args)

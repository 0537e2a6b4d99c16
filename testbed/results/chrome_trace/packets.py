"""Adds the packets of a run's captures to a trace.

Each port of a switch has a lane for the frames that the switch received there, and one for those
that it sent. A frame takes as long as the link needs for it. Arrows lead from a frame to those that
the switch sent because of it, and along links between switches. Hosts have no captures, so what a
host has under way (chunks.py) is drawn as the link shows it, without waiting in the host's queue.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed.results.captures.reading import (
    CapturedFrame,
    Port,
    captured_frames,
    captured_ports,
)
from agglab.testbed.results.chrome_trace.chunks import ChunksUnderWay
from agglab.testbed.results.chrome_trace.datagrams import Datagram, datagram_of
from agglab.testbed.results.chrome_trace.writer import Lane, TraceWriter
from agglab.testbed.systems.messages import Message, Messages

NS_PER_S, BITS = 1_000_000_000, 8
FRAME_BYTES_MAX = 1 << 16


def add_packets(
    writer: TraceWriter, captures: Path, messages: Messages | None, start_ns: int
) -> int | None:
    """Adds the packets, and returns the time from which on they are missing because the trace is
    full; None if none is missing. start_ns: the start of the run on the captures' clock. Raises
    NoResults for a file that Agglab did not write."""
    ports = captured_ports(captures)
    picture = _Picture(writer, messages, ports)
    end_ns = writer.span.to_ns + max(map(_longest_ns, ports), default=0)
    missing_ns = None
    for frame in captured_frames(captures):
        at_ns = frame.time_ns - start_ns
        if writer.is_full:
            missing_ns = at_ns
        if writer.is_full or at_ns >= end_ns:
            break
        picture.add(frame, at_ns)
    picture.end()
    return missing_ns


@dataclass(frozen=True)
class _Slice:
    """A frame in the picture."""

    lane: Lane
    begin_ns: int
    end_ns: int


class _Picture:
    def __init__(self, writer: TraceWriter, messages: Messages | None, ports: list[Port]) -> None:
        self._writer, self._messages = writer, messages
        self._switches = {_switch(port) for port in ports}
        self._hosts: dict[str, ChunksUnderWay] = {}
        self._free_ns: dict[Lane, int] = {}
        self._received: dict[tuple[str, object], _Slice] = {}
        self._on_links: defaultdict[tuple[str, str, int], deque[_Slice]] = defaultdict(deque)
        self._last_ns = 0

    def add(self, frame: CapturedFrame, at_ns: int) -> None:
        self._last_ns = at_ns
        datagram = datagram_of(frame.data)
        message = self._read(datagram)
        drawn = self._draw(frame, at_ns, message)
        self._along_link(frame, drawn)
        if datagram is not None and message is not None:
            self._through_switch(frame, datagram, message, drawn)
            self._at_host(frame, datagram, message, drawn)

    def end(self) -> None:
        for chunks in self._hosts.values():
            chunks.end(self._last_ns)

    def _read(self, datagram: Datagram | None) -> Message | None:
        if datagram is None or self._messages is None:
            return None
        return self._messages.read(datagram.payload)

    def _draw(self, frame: CapturedFrame, at_ns: int, message: Message | None) -> _Slice:
        way = "in" if frame.is_inbound else "out"
        lane = Lane(_switch(frame.port), f"{frame.port.name} {way}")
        begin_ns, end_ns = self._time_on_link(frame, lane, at_ns)
        name, category, args = self._told(frame, message)
        self._writer.slice(lane, name, begin_ns, end_ns, category, args)
        if frame.comment:
            self._writer.mark(lane, frame.comment, at_ns, "loss", {})
        return _Slice(lane, begin_ns, end_ns)

    def _time_on_link(self, frame: CapturedFrame, lane: Lane, at_ns: int) -> tuple[int, int]:
        """Returns when a frame's first and last bit are on the link. A frame is captured when its
        last bit has come, or when the switch sends it; then it may have to wait in the queue."""
        length_ns, free_ns = _length_ns(frame.port, len(frame.data)), self._free_ns.get(lane, 0)
        if frame.is_inbound:
            begin_ns, end_ns = min(max(free_ns, at_ns - length_ns), at_ns), at_ns
        else:
            begin_ns = max(free_ns, at_ns)
            end_ns = begin_ns + length_ns
        self._free_ns[lane] = end_ns
        return begin_ns, end_ns

    def _told(
        self, frame: CapturedFrame, message: Message | None
    ) -> tuple[str, str, dict[str, int]]:
        """Returns a frame's name, its category, and what is shown when it is clicked on."""
        size = {"frame_bytes": len(frame.data)}
        if message is None or self._messages is None:
            return "frame", "frame", size
        name = f"{message.kind} {self._messages.words(message)}"
        again = message.attempt > 0
        category = "packet,again" if again else "packet"
        return f"{name} again" if again else name, category, {**message.fields, **size}

    def _along_link(self, frame: CapturedFrame, drawn: _Slice) -> None:
        """Draws an arrow from where a frame has left another switch."""
        switch, neighbour, content = _switch(frame.port), frame.port.neighbour, hash(frame.data)
        if neighbour not in self._switches:
            return
        if not frame.is_inbound:
            self._on_links[switch, neighbour, content].append(drawn)
        elif left := self._on_links.get((neighbour, switch, content)):
            self._arrow(left.popleft(), drawn)

    def _through_switch(
        self, frame: CapturedFrame, datagram: Datagram, message: Message, drawn: _Slice
    ) -> None:
        """Draws an arrow from the frame because of which the switch sent this one: that which it
        has forwarded, or else the last about the same chunk."""
        switch = _switch(frame.port)
        same = (switch, (datagram.receiver, hash(datagram.payload)))
        about = (switch, message.chunk)
        if frame.is_inbound:
            self._received[same] = self._received[about] = drawn
        elif came := self._received.get(same) or self._received.get(about):
            self._arrow(came, drawn)

    def _at_host(
        self, frame: CapturedFrame, datagram: Datagram, message: Message, drawn: _Slice
    ) -> None:
        name = frame.port.neighbour
        is_host = name and name not in self._switches
        if not is_host or self._messages is None or not self._messages.answers:
            return
        if name not in self._hosts:
            self._hosts[name] = ChunksUnderWay(self._writer, name)
        host = self._hosts[name]
        if frame.is_inbound and not message.is_answer:
            words = self._messages.words(message)
            host.sent((datagram.receiver, message.chunk), words, drawn.begin_ns)
        elif not frame.is_inbound and message.is_answer:
            host.answered((datagram.sender, message.chunk), drawn.end_ns)

    def _arrow(self, begin: _Slice, end: _Slice) -> None:
        self._writer.arrow(begin.lane, begin.begin_ns, end.lane, end.begin_ns)


def _switch(port: Port) -> str:
    """Returns the switch that has a port: interfaces are called `s1-eth2`."""
    return port.name.rpartition("-")[0]


def _length_ns(port: Port, size: int) -> int:
    """Returns how long a link needs for so many bytes."""
    return size * BITS * NS_PER_S // port.rate_bps if port.rate_bps else 0


def _longest_ns(port: Port) -> int:
    return _length_ns(port, FRAME_BYTES_MAX)

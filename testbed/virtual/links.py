"""One way of a link in virtual time: a queue, a rate, a delay, and what impairments do at its end.

A frame is begun to be sent when the one before it has been sent whole; it arrives when its own last
bit has been sent and the delay is over. The queue in front holds frames that are not begun yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from testbed.impairments import Decider, Fate, deciders, flip
from testbed.statistics import DirectionStatistics
from testbed.virtual.clock import Clock
from topologies import Direction
from topologies.graph import DEFAULT_QUEUE_PACKETS

NS_PER_S, NS_PER_US, BITS = 1_000_000_000, 1000, 8
NUMBERS_KEPT = 65536  # as the kernel's twin keeps


class Sending:
    """One frame from when it is taken to when it arrives; `frame` is None once it has been taken
    back. cuts: how often the link had gone down before."""

    __slots__ = ("begin_ns", "cuts", "frame")

    def __init__(self, begin_ns: int, frame: bytes, cuts: int) -> None:
        self.begin_ns = begin_ns
        self.frame: bytes | None = frame
        self.cuts = cuts


class Way:
    """One direction. `deliver(frame)` is called at its far end."""

    def __init__(
        self,
        clock: Clock,
        seed: int,
        link: str,
        name: str,
        direction: Direction,
        deliver: Callable[[bytes], None],
    ) -> None:
        self.link, self.name = link, name
        self._clock, self._direction, self._deliver = clock, direction, deliver
        self._rate_bps = direction.rate_bps
        self._delay_ns = direction.delay_us * NS_PER_US
        self._constant = deciders(direction.impairments, seed, link, name)
        self._begun: dict[int, Decider] = {}
        self._deciders = self._constant
        self._down = self._cuts = 0
        self._free_ns = 0
        self._sending: deque[Sending] = deque()
        self._waiting_bytes = 0
        self._packets = self._bytes = self._seen = self._refused = 0
        self._dropped = 0
        self._dropped_numbers: list[int] = []

    def send(self, frame: bytes) -> None:
        """Put a frame at the end of the queue, or lose it: queue full, or link down."""
        if self._down:
            self._dropped += 1
            return
        self._forget_begun()
        if self._free_ns > self._clock.now_ns and self._full(len(frame)):
            self._refused += 1
            return
        self._packets += 1
        self._bytes += len(frame)
        self._append(frame)

    def _append(self, frame: bytes) -> None:
        """Behind everything that is being sent. The nanosecond of the last bit is used whole."""
        begin_ns = max(self._clock.now_ns, self._free_ns)
        self._free_ns = begin_ns
        if self._rate_bps is not None:
            self._free_ns += -(-len(frame) * BITS * NS_PER_S // self._rate_bps)
        sending = Sending(begin_ns, frame, self._cuts)
        self._sending.append(sending)
        self._waiting_bytes += len(frame)
        self._clock.at(self._free_ns + self._delay_ns, self._arrive, sending)

    def _forget_begun(self) -> None:
        """Leave in `_sending` only what waits."""
        sending, now_ns = self._sending, self._clock.now_ns
        while sending and sending[0].begin_ns <= now_ns:
            frame = sending.popleft().frame
            assert frame is not None
            self._waiting_bytes -= len(frame)

    def _full(self, size: int) -> bool:
        if self._direction.queue_bytes is not None:
            return self._waiting_bytes + size > self._direction.queue_bytes
        return len(self._sending) >= (self._direction.queue_packets or DEFAULT_QUEUE_PACKETS)

    def _arrive(self, sending: Sending) -> None:
        frame = sending.frame
        if frame is None:
            return
        if sending.cuts != self._cuts:
            self._dropped += 1
            return
        k = self._seen
        self._seen += 1
        if not self._deciders:
            self._deliver(frame)
            return
        fate = Fate()
        for decide in self._deciders:
            decide(k, len(frame), fate)
        if fate.dropped:
            self._dropped += 1
            if len(self._dropped_numbers) < NUMBERS_KEPT:
                self._dropped_numbers.append(k)
            return
        for bit in fate.flipped:
            frame = flip(frame, bit)
        self._after(fate.late_ns, frame)
        for behind_ns in fate.copies_ns:
            self._after(fate.late_ns + behind_ns, frame)

    def _after(self, delay_ns: int, frame: bytes) -> None:
        if delay_ns:
            self._clock.at(self._clock.now_ns + delay_ns, self._deliver, frame)
        else:
            self._deliver(frame)

    def take_down(self) -> None:
        """Nothing is sent any more, and what waits or is under way is lost."""
        self._down += 1
        self._cuts += 1
        self._sending.clear()
        self._waiting_bytes = 0
        self._free_ns = self._clock.now_ns

    def bring_up(self) -> None:
        """Frames that are sent from now on arrive."""
        self._down -= 1

    def change_rate(self, rate_bps: int | None) -> None:
        """For frames that are not begun; the one that is being sent keeps its rate. None: the
        link's own."""
        self._rate_bps = self._direction.rate_bps if rate_bps is None else rate_bps
        self._forget_begun()
        waiting = list(self._sending)
        if waiting:
            self._free_ns = waiting[0].begin_ns
        self._sending.clear()
        self._waiting_bytes = 0
        for sending in waiting:
            assert sending.frame is not None
            self._append(sending.frame)
            sending.frame = None

    def impair(self, number: int, decider: Decider) -> None:
        """One more impairment, of the fault with this number; the lower number decides first."""
        self._begun[number] = decider
        self._reconsider()

    def relieve(self, number: int) -> None:
        """Without that fault's impairment again."""
        del self._begun[number]
        self._reconsider()

    def _reconsider(self) -> None:
        self._deciders = self._constant + [self._begun[n] for n in sorted(self._begun)]

    def statistics(self) -> DirectionStatistics:
        """What was counted so far. Frames that a link lost while down count as injected drops."""
        return DirectionStatistics(
            link=self.link,
            direction=self.name,
            packets=self._packets,
            bytes=self._bytes,
            seen=self._seen,
            dropped_injected=self._dropped,
            dropped_by_queue=self._refused,
            dropped_numbers=tuple(self._dropped_numbers),
        )

"""One direction of a link in virtual time: a queue, a rate, a delay, and what impairments do at
its end.

A frame is begun to be sent when the one before it has been sent whole; it arrives when its own last
bit has been sent and the delay is over. The queue in front holds frames that are not begun yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from agglab.testbed.impairments import Decider, FrameDecision, deciders, flip
from agglab.testbed.series.tracks import Row
from agglab.testbed.statistics import DirectionStatistics
from agglab.testbed.virtual.clock import Clock
from agglab.topologies import Direction
from agglab.topologies.graph import DEFAULT_QUEUE_PACKETS

NS_PER_S, NS_PER_US, BITS = 1_000_000_000, 1000, 8
NUMBERS_KEPT = 65536  # as the kernel's twin keeps


Flight = tuple[int, int, bytes]
"""When a frame's first bit is sent, when its last one arrives, and the frame."""


class LinkDirection:
    """One direction of a link. `deliver(frame)` is called at its far end, `hit(frame)` with each
    frame that is lost, changed or held up."""

    def __init__(
        self,
        clock: Clock,
        seed: int,
        link: str,
        name: str,
        direction: Direction,
        deliver: Callable[[bytes], None],
        hit: Callable[[bytes], None] = lambda frame: None,
    ) -> None:
        self.link, self.name = link, name
        self._clock, self._direction, self._deliver = clock, direction, deliver
        self._hit = hit
        self._rate_bps = direction.rate_bps
        self._delay_ns = direction.delay_us * NS_PER_US
        self._constant = deciders(direction.impairments, seed, link, name)
        self._begun: dict[int, Decider] = {}
        self._deciders = self._constant
        self._down = 0
        self._free_ns = 0
        # Waiting, being sent and under way, in order. Only the first has an action at the clock,
        # with the number of the schedule it belongs to: a new schedule voids the old one's.
        self._flying: deque[Flight] = deque()
        self._flying_bytes = 0
        self._schedule = 0
        self._packets = self._bytes = self._seen = self._refused = 0
        self._dropped = self._corrupted = self._lost = self._copied = 0
        self._held = self._handed_over = 0
        self._dropped_numbers: list[int] = []

    def send(self, frame: bytes) -> None:
        """Put a frame at the end of the queue, or lose it if that is full."""
        if self._full(len(frame)):
            self._refused += 1
            self._hit(frame)
            return
        self._packets += 1
        self._bytes += len(frame)
        self._append(frame)
        if len(self._flying) == 1:
            self._clock.at(self._flying[0][1], self._arrive, self._schedule)

    def _append(self, frame: bytes) -> None:
        """Behind everything that is being sent. The nanosecond of the last bit is used whole."""
        begin_ns = end_ns = max(self._clock.now_ns, self._free_ns)
        if self._rate_bps is not None:
            end_ns += -(-len(frame) * BITS * NS_PER_S // self._rate_bps)
        self._free_ns = end_ns
        self._flying.append((begin_ns, end_ns + self._delay_ns, frame))
        self._flying_bytes += len(frame)

    def _full(self, size: int) -> bool:
        """Whether the queue has no room. All that flies is more than what waits, and soon asked."""
        now_ns = self._clock.now_ns
        if self._rate_bps is None or self._free_ns <= now_ns:
            return False
        limit_bytes = self._direction.queue_bytes
        if limit_bytes is not None:
            if self._flying_bytes + size <= limit_bytes:
                return False
            waiting = sum(len(frame) for begin, _, frame in self._flying if begin > now_ns)
            return waiting + size > limit_bytes
        limit = self._direction.queue_packets or DEFAULT_QUEUE_PACKETS
        if len(self._flying) < limit:
            return False
        return sum(begin > now_ns for begin, _, _ in self._flying) >= limit

    def _arrive(self, schedule: int) -> None:
        if schedule != self._schedule:
            return
        frame = self._flying.popleft()[2]
        self._flying_bytes -= len(frame)
        if self._flying:
            self._clock.at(self._flying[0][1], self._arrive, schedule)
        k = self._seen
        self._seen += 1
        if self._down:
            self._lost += 1
            self._hit(frame)
            return
        if not self._deciders:
            self._hand_over(frame)
            return
        decision = FrameDecision()
        for decide in self._deciders:
            decide(k, len(frame), decision)
        if decision.dropped or decision.flipped or decision.late_ns:
            self._hit(frame)
        if decision.dropped:
            self._dropped += 1
            if len(self._dropped_numbers) < NUMBERS_KEPT:
                self._dropped_numbers.append(k)
            return
        if decision.flipped:
            self._corrupted += 1
        for bit in decision.flipped:
            frame = flip(frame, bit)
        self._after(decision.late_ns, frame)
        self._copied += len(decision.copies_ns)
        for behind_ns in decision.copies_ns:
            self._after(decision.late_ns + behind_ns, frame)

    def _after(self, delay_ns: int, frame: bytes) -> None:
        if delay_ns:
            self._held += 1
            self._clock.at(self._clock.now_ns + delay_ns, self._let_go, frame)
        else:
            self._hand_over(frame)

    def _let_go(self, frame: bytes) -> None:
        self._held -= 1
        self._hand_over(frame)

    def _hand_over(self, frame: bytes) -> None:
        self._handed_over += 1
        self._deliver(frame)

    def take_down(self) -> None:
        """Nothing arrives until `bring_up`. What is sent uses the link's time all the same."""
        self._down += 1

    def bring_up(self) -> None:
        """As before."""
        self._down -= 1

    def change_rate(self, rate_bps: int | None) -> None:
        """For frames that are not begun; the one that is being sent keeps its rate. None: the
        link's own."""
        self._rate_bps = self._direction.rate_bps if rate_bps is None else rate_bps
        now_ns = self._clock.now_ns
        waiting = [flight for flight in self._flying if flight[0] > now_ns]
        if waiting:
            self._free_ns = waiting[0][0]
        self._flying = deque(flight for flight in self._flying if flight[0] <= now_ns)
        self._flying_bytes = sum(len(frame) for _, _, frame in self._flying)
        for _, _, frame in waiting:
            self._append(frame)
        self._schedule += 1
        if self._flying:
            self._clock.at(self._flying[0][1], self._arrive, self._schedule)

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

    def carried_bytes(self) -> int:
        """Of the frames that have been sent whole."""
        now_ns = self._clock.now_ns
        waiting = sum(len(f) for _, end_ns, f in self._flying if end_ns - self._delay_ns > now_ns)
        return self._bytes - waiting

    def look(self) -> Row:
        """A row of series.tracks.LINK: so far, and of what waits now."""
        now_ns = self._clock.now_ns
        packets = waiting = begun = 0
        if self._free_ns > now_ns:  # those that wait are behind all others
            for begin_ns, end_ns, frame in reversed(self._flying):
                if begin_ns <= now_ns:
                    begun = len(frame) if end_ns - self._delay_ns > now_ns else 0
                    break
                packets += 1
                waiting += len(frame)
        return now_ns, self._bytes - waiting - begun, self._refused, packets, waiting

    def statistics(self) -> DirectionStatistics:
        """What was counted so far."""
        return DirectionStatistics(
            link=self.link,
            direction=self.name,
            packets=self._packets,
            bytes=self._bytes,
            seen=self._seen,
            dropped_injected=self._dropped,
            dropped_by_queue=self._refused,
            dropped_numbers=tuple(self._dropped_numbers),
            corrupted=self._corrupted,
            lost_link_down=self._lost,
            duplicated=self._copied,
            in_flight=len(self._flying),
            held=self._held,
            handed_over=self._handed_over,
        )

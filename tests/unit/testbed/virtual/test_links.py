"""Clock and links against timings computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.testbed.run.impairments import decider
from agglab.testbed.virtual.clock import Clock, NeverEnds
from agglab.testbed.virtual.links import LinkDirection
from agglab.topologies import Direction
from agglab.topologies.graph import DropList, Duplicate, Reorder

S = 1_000_000_000
FOREVER = 1 << 62


class Line:
    """One way with a record of what arrives: (time, first byte, length)."""

    def __init__(self, direction: Direction) -> None:
        self.clock = Clock()
        self.arrived: list[tuple[int, int, int]] = []
        self.way = LinkDirection(self.clock, 1, "h1-s1", "h1->s1", direction, self._take)

    def _take(self, frame: bytes) -> None:
        self.arrived.append((self.clock.now_ns, frame[0], len(frame)))

    def send(self, *sizes: int, first: int = 0) -> None:
        for number, size in enumerate(sizes, start=first):
            self.way.send(bytes([number]) + bytes(size - 1))

    def until(self, time_ns: int) -> None:
        self.clock.run(time_ns, lambda: False)

    def end(self) -> list[tuple[int, int, int]]:
        self.clock.run(10 * S, lambda: False)
        return self.arrived


def test_what_is_due_together_happens_in_the_order_asked_for() -> None:
    clock = Clock()
    said: list[str] = []
    for time_ns, word in [(5, "c"), (3, "a"), (5, "d"), (3, "b"), (9, "e")]:
        clock.at(time_ns, said.append, word)
    assert clock.run(5, lambda: False) is False
    assert (said, clock.now_ns) == (["a", "b", "c", "d"], 5)
    assert clock.run(20, lambda: True) is True
    assert (said[-1], clock.now_ns, clock.idle) == ("e", 9, True)


def test_time_that_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline that is past and set again, for ever; while time goes on, that may be so."""
    most = 10_000
    monkeypatch.setattr("agglab.testbed.virtual.clock.AT_ONCE_MAX", most)
    clock = Clock()

    def again(step_ns: int) -> None:
        clock.at(clock.now_ns + step_ns, again, step_ns)

    clock.at(7, again, 1)
    assert clock.run(7 + 2 * most, lambda: False) is False
    clock.at(clock.now_ns, again, 0)
    with pytest.raises(NeverEnds, match=r"virtual time stands still at 2\.0007e-05 s"):
        clock.run(3 * most, lambda: False)


def test_frames_follow_each_other_at_the_rate() -> None:
    """8 Mbit/s is a byte a microsecond."""
    line = Line(Direction(rate_bps=8_000_000, delay_us=50))
    line.send(100, 300, 60)
    assert line.end() == [(150_000, 0, 100), (450_000, 1, 300), (510_000, 2, 60)]


def test_an_idle_link_saves_nothing_up() -> None:
    line = Line(Direction(rate_bps=8_000_000))
    line.send(100)
    line.until(1_000_000)
    line.send(100, 100, first=1)
    assert [at for at, _, _ in line.end()] == [100_000, 1_100_000, 1_200_000]


def test_begun_nanoseconds_are_used_whole() -> None:
    """100 bytes at 3 bit/s more than 1 Gbit/s take 799.9999976 ns."""
    line = Line(Direction(rate_bps=1_000_000_003))
    line.send(100, 100)
    assert [at for at, _, _ in line.end()] == [800, 1600]


def test_the_queue_holds_what_is_not_begun() -> None:
    line = Line(Direction(rate_bps=8_000_000, queue_packets=2))
    line.send(100, 100, 100, 100)  # one is being sent, two wait, the fourth finds the queue full
    line.until(100_000)  # the second is begun
    line.send(100, 100, first=4)
    assert [number for _, number, _ in line.end()] == [0, 1, 2, 4]
    statistics = line.way.statistics()
    assert (statistics.packets, statistics.bytes, statistics.seen) == (4, 400, 4)
    assert (statistics.dropped_by_queue, statistics.dropped_injected) == (2, 0)


def test_a_queue_in_bytes_has_room_for_small_frames_still() -> None:
    line = Line(Direction(rate_bps=8_000_000, queue_bytes=2000))
    line.send(1500, 1500, 600, 500)
    assert [number for _, number, _ in line.end()] == [0, 1, 3]


def test_a_link_that_is_down_delivers_nothing() -> None:
    """Frames arrive 1.1, 1.2 and 1.3 ms after the first was sent; they count as seen."""
    line = Line(Direction(rate_bps=8_000_000, delay_us=1000))
    line.send(100, 100, 100)
    line.until(1_150_000)
    line.way.take_down()
    line.until(1_250_000)
    line.way.bring_up()
    assert [number for _, number, _ in line.end()] == [0, 2]
    statistics = line.way.statistics()
    assert (statistics.seen, statistics.lost_link_down, statistics.dropped_injected) == (3, 1, 0)


def test_another_rate_is_for_frames_not_begun() -> None:
    line = Line(Direction(rate_bps=8_000_000))
    line.send(100, 100, 100)
    line.until(150_000)  # in the middle of the second
    line.way.change_rate(800_000)
    line.until(500_000)  # 0.3 of the third
    line.way.change_rate(None)
    line.send(100, first=3)
    assert [at for at, _, _ in line.end()] == [100_000, 200_000, 1_200_000, 1_300_000]
    assert line.way.statistics().packets == 4


def test_impairments_act_on_arrival_and_count_from_the_start() -> None:
    drops, twice = DropList((1, 4)), Duplicate(1.0, delay_us=30)
    line = Line(Direction(rate_bps=8_000_000, impairments=(drops,)))
    line.send(100, 100)
    line.until(200_000)
    line.way.impair(7, decider(twice, 1))
    line.send(100, first=2)
    line.until(300_000)
    line.way.end_impairment(7)
    line.send(100, 100, first=3)
    arrived = [(at, number) for at, number, _ in line.end()]
    assert arrived == [(100_000, 0), (300_000, 2), (330_000, 2), (400_000, 3)]
    assert line.way.statistics().dropped_numbers == (1, 4)


def test_a_frame_held_back_is_overtaken() -> None:
    line = Line(Direction(rate_bps=8_000_000))
    line.way.impair(0, decider(Reorder(1.0, delay_us=150), 1))
    line.send(100)
    line.until(100_000)
    line.way.end_impairment(0)
    line.send(100, 100, first=1)
    assert [(at, n) for at, n, _ in line.end()] == [(200_000, 1), (250_000, 0), (300_000, 2)]


@given(
    st.lists(st.tuples(st.integers(0, 300_000), st.integers(60, 1500)), min_size=1, max_size=40),
    st.integers(1_000_000, 10_000_000_000),
    st.integers(0, 2000),
)
def test_departures_are_those_of_one_server(
    frames: Sequence[tuple[int, int]], rate_bps: int, delay_us: int
) -> None:
    """Lindley's recursion: a frame is begun when it is there and the one before it is gone."""
    line = Line(Direction(rate_bps=rate_bps, delay_us=delay_us))
    now_ns = free_ns = 0
    expected = []
    for pause_ns, size in frames:
        now_ns += pause_ns
        line.until(now_ns)
        line.send(size)
        free_ns = max(now_ns, free_ns) + -(-size * 8 * S // rate_bps)
        expected.append((free_ns + delay_us * 1000, 0, size))
    assert line.end() == expected


@given(
    st.lists(st.tuples(st.integers(0, 400_000), st.integers(60, 1500)), max_size=30),
    st.integers(0, 300),
    st.lists(st.integers(0, 12_000_000), max_size=8),
)
def test_a_look_sees_what_waits_and_what_has_been_sent(
    frames: list[tuple[int, int]], delay_us: int, looks: list[int]
) -> None:
    """By the timings of a queue that is served at 8 Mbit/s, a byte a microsecond."""
    line = Line(Direction(rate_bps=8_000_000, delay_us=delay_us))
    served: list[tuple[int, int, int]] = []
    free_ns = at_ns = 0
    for gap_ns, size in frames:
        at_ns += gap_ns
        begin_ns = max(at_ns, free_ns)
        free_ns = begin_ns + size * 1000
        served.append((at_ns, begin_ns, size))
        line.clock.at(at_ns, lambda size: line.send(size), size)
    for look_ns in sorted(looks):
        line.until(look_ns)
        waiting = [size for at, begin, size in served if at <= look_ns < begin]
        sent = sum(size for _, begin, size in served if begin + size * 1000 <= look_ns)
        assert line.way.look() == (look_ns, sent, 0, len(waiting), sum(waiting))
        assert line.way.carried_bytes() == sent


def test_a_queue_that_grows_keeps_its_order() -> None:
    """More frames than there was room for, when some have arrived already."""
    line = Line(Direction(rate_bps=8_000_000))
    line.send(*[100] * 12)
    line.until(1_000_000)
    line.send(*[100] * 60, first=12)
    assert [(at, n) for at, n, _ in line.end()] == [(100_000 * (n + 1), n) for n in range(72)]

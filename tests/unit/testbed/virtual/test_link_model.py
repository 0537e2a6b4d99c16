"""Links in C against a model of one server with a queue, in plain Python."""

from __future__ import annotations

import heapq
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impairment_model import decision_on

from agglab.testbed.run.impairments import direction_key, flip
from agglab.testbed.virtual.clock import Clock
from agglab.testbed.virtual.links import LinkDirection
from agglab.topologies import Direction
from agglab.topologies.graph import (
    DEFAULT_QUEUE_PACKETS,
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Impairment,
    Jitter,
    PeriodicDrop,
    Reorder,
)

S = 1_000_000_000
SEED, LINK, WAY = 5, "h1-s1", "h1->s1"


@dataclass
class Model:
    """sends: (time, frame), ascending. counts: by the names of DirectionStatistics."""

    direction: Direction
    sends: list[tuple[int, bytes]]
    counts: Counter[str] = field(default_factory=Counter)
    dropped: list[int] = field(default_factory=list)

    def arrivals(self) -> list[tuple[int, bytes]]:
        """What is delivered, and when; frames of one moment in any order."""
        found: list[tuple[int, bytes]] = []
        for k, (time_ns, frame) in enumerate(self._carried()):
            found += self._impaired(k, time_ns, frame)
        return sorted(found)

    def _carried(self) -> list[tuple[int, bytes]]:
        """Frames in the order in which their last bits arrive."""
        free_ns, carried, begins = 0, [], list[tuple[int, int]]()
        for now_ns, frame in self.sends:
            waiting = [size for begin_ns, size in begins if begin_ns > now_ns]
            if free_ns > now_ns and self._is_full(waiting, len(frame)):
                self.counts["dropped_by_queue"] += 1
                continue
            begin_ns = max(now_ns, free_ns)
            rate_bps = self.direction.rate_bps
            free_ns = begin_ns + (-(-len(frame) * 8 * S // rate_bps) if rate_bps else 0)
            begins.append((begin_ns, len(frame)))
            carried.append((free_ns + 1000 * self.direction.delay_us, frame))
        self.counts.update(seen=len(carried), packets=len(carried))
        return carried

    def _is_full(self, waiting: list[int], size: int) -> bool:
        if self.direction.rate_bps is None:
            return False
        if self.direction.queue_bytes is not None:
            return sum(waiting) + size > self.direction.queue_bytes
        return len(waiting) >= (self.direction.queue_packets or DEFAULT_QUEUE_PACKETS)

    def _impaired(self, k: int, time_ns: int, frame: bytes) -> list[tuple[int, bytes]]:
        parts = ["", *(str(n) for n in range(1, len(self.direction.impairments)))]
        keys = [direction_key(SEED, LINK, WAY, part) for part in parts]
        pairs = list(zip(self.direction.impairments, keys, strict=False))
        decision = decision_on(pairs, k, len(frame))
        if decision.dropped:
            self.counts["dropped_injected"] += 1
            self.dropped.append(k)
            return []
        self.counts["corrupted"] += bool(decision.flipped)
        self.counts["duplicated"] += len(decision.copies_ns)
        for bit in decision.flipped:
            frame = flip(frame, bit)
        times = [0, *decision.copies_ns]
        self.counts["handed_over"] += len(times)
        return [(time_ns + decision.late_ns + behind_ns, frame) for behind_ns in times]


CHANCE = st.floats(0, 1)
IMPAIRMENTS: st.SearchStrategy[Impairment] = st.one_of(
    st.builds(Drop, CHANCE),
    st.builds(GilbertElliott, CHANCE, CHANCE, CHANCE, CHANCE),
    st.builds(
        lambda period, count, offset: PeriodicDrop(period + count, count, offset),
        st.integers(0, 5),
        st.integers(1, 4),
        st.integers(0, 9),
    ),
    st.builds(lambda numbers: DropList(tuple(sorted(numbers))), st.sets(st.integers(0, 40))),
    st.builds(Corrupt, CHANCE),
    st.builds(Duplicate, CHANCE, st.integers(0, 50)),
    st.builds(Reorder, CHANCE, st.integers(1, 50)),
    st.builds(Jitter, st.integers(1, 50)),
)
QUEUES = st.one_of(
    st.just({}),
    st.builds(lambda packets: {"queue_packets": packets}, st.integers(1, 5)),
    st.builds(lambda size: {"queue_bytes": size}, st.integers(60, 3000)),
)
DIRECTIONS = st.builds(
    lambda rate_bps, delay_us, queue, impairments: Direction(
        rate_bps=rate_bps, delay_us=delay_us, impairments=tuple(impairments), **queue
    ),
    st.none() | st.integers(1_000_000, 10_000_000_000),
    st.integers(0, 100),
    QUEUES,
    st.lists(IMPAIRMENTS, max_size=4, unique_by=type),
)


@given(
    DIRECTIONS,
    st.lists(st.tuples(st.integers(0, 30_000), st.integers(60, 1500)), min_size=1, max_size=50),
)
def test_a_direction_is_its_model(direction: Direction, gaps: list[tuple[int, int]]) -> None:
    clock, now_ns, sends = Clock(), 0, list[tuple[int, bytes]]()
    found: list[tuple[int, bytes]] = []
    way = LinkDirection(
        clock, SEED, LINK, WAY, direction, lambda frame: found.append((clock.now_ns, frame))
    )
    for number, (gap_ns, size) in enumerate(gaps):
        now_ns += gap_ns
        sends.append((now_ns, bytes([number]) * size))
        clock.at(now_ns, way.send, sends[-1][1])
    clock.run(100 * S, lambda: False)
    model = Model(direction, sends)
    assert sorted(found) == model.arrivals()
    assert [time_ns for time_ns, _ in found] == sorted(time_ns for time_ns, _ in found)
    statistics = way.statistics()
    names = ("packets", "seen", "dropped_injected", "dropped_by_queue", "corrupted", "duplicated")
    for name in (*names, "handed_over"):
        assert getattr(statistics, name) == model.counts[name], name
    assert statistics.dropped_numbers == tuple(model.dropped)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=80))
def test_the_clock_is_a_sorted_list(asked: list[tuple[int, int]]) -> None:
    """Actions that ask for others, against heapq with a sequence number."""
    clock, happened, expected = Clock(), list[tuple[int, int]](), list[tuple[int, int]]()

    def act(what: tuple[int, int]) -> None:
        name, more = what
        happened.append((clock.now_ns, name))
        if more:
            clock.at(clock.now_ns + more, act, (name, more - 1))

    for name, (time_ns, more) in enumerate(asked):
        clock.at(time_ns, act, (name, more))
    waiting = [(time_ns, n, n, more) for n, (time_ns, more) in enumerate(asked)]
    heapq.heapify(waiting)
    sequence = len(waiting)
    while waiting:
        time_ns, _, name, more = heapq.heappop(waiting)
        expected.append((time_ns, name))
        if more:
            sequence += 1
            heapq.heappush(waiting, (time_ns + more, sequence, name, more - 1))
    clock.run(1000, lambda: False)
    assert (happened, clock.happened) == (expected, len(expected))


@pytest.mark.long
@pytest.mark.skipif("P4NATIVE_SANITIZE" in os.environ, reason="this is the process it starts")
def test_under_the_sanitizers() -> None:
    """These tests, those of links, and small runs with faults again, in a process whose C has both
    sanitizers."""
    here = Path(__file__).parent
    asan = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    environment = dict(
        os.environ,
        P4NATIVE_SANITIZE="1",
        LD_PRELOAD=asan.stdout.strip(),
        ASAN_OPTIONS="detect_leaks=0",
    )
    files = [here / name for name in (Path(__file__).name, "test_links.py")]
    files += [here / f"test_{name}.py" for name in ("backend", "frames", "gathered")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, files)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

"""Delay, jitter and reordering of real links, where the kernel has netem."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import needs
import pytest
from network_case import case

from agglab.topologies import Direction, Jitter, Reorder

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    needs.mark("a kernel with netem"),
]
LATE_US = 20_000
"""A busy machine adds to any frame's way, but hardly so much to the quickest of many."""


def parts(tmp_path: Path, way: Direction, fault: object, frames: int, gap_s: float) -> Any:
    """Before, during and after the fault: (number, microseconds on the way) as they came."""
    words = {"way": repr(way), "fault": repr(fault), "frames": frames, "gap_s": gap_s}
    got = case(tmp_path, "delays", **words)
    assert got["lost"] == 0
    for part in got["parts"]:
        assert sorted(number for number, _ in part) == list(range(frames))
    return got["parts"]


def overtaken(part: list[tuple[int, float]]) -> int:
    """Frames that came after one sent later."""
    highest, count = -1, 0
    for number, _ in part:
        count += number < highest
        highest = max(highest, number)
    return count


def test_a_delay_and_jitter_for_a_time(tmp_path: Path) -> None:
    """No frame is early; while jitter is on some are hardly late, some nearly as late as can be."""
    way = Direction(delay_us=LATE_US)
    before, during, after = parts(tmp_path, way, Jitter(4 * LATE_US), 100, 0.002)
    for part in (before, after):
        assert overtaken(part) == 0
        assert min(us for _, us in part) >= LATE_US
        assert min(us for _, us in part) < 1.5 * LATE_US
    took = sorted(us for _, us in during)
    assert LATE_US <= took[0] < 1.5 * LATE_US
    assert median(took) > 2 * LATE_US
    assert took[-1] > 4 * LATE_US
    assert overtaken(during) > 30


def test_jitter_for_the_whole_run_and_reordering_for_a_time(tmp_path: Path) -> None:
    way = Direction(impairments=(Jitter(1000),))
    before, during, after = parts(tmp_path, way, Reorder(0.3, LATE_US), 200, 0.001)
    for part in (before, after):
        assert min(us for _, us in part) < LATE_US
    late = [number for number, us in during if us >= LATE_US]
    assert 30 < len(late) < 170, "about 60, and more on a machine that is slow itself"
    assert overtaken(during) > 10


def test_reordering_keeps_the_order_of_the_others_at_a_rate(tmp_path: Path) -> None:
    """Frames wait for the rate: those that are not late still come one after the other."""
    way = Direction(rate_bps=1_000_000, impairments=(Reorder(0.2, LATE_US),))
    first, _, _ = parts(tmp_path, way, Jitter(1), 200, 0.0)
    assert 0 < overtaken(first) < 70, "about a fifth of them"


def test_a_delay_is_behind_the_queue_not_part_of_it(tmp_path: Path) -> None:
    """40 frames of a millisecond each, and 30 ms more for each of them, the last one too."""
    first, last = case(tmp_path, "delay_behind_a_queue", delay_us=30_000, frames=40)["ms"]
    assert first >= 30
    assert last >= 30 + 37, "but for the bucket's two milliseconds"

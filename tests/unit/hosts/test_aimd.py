"""The window that follows marks: by itself, and two flows over a link that a P4 program watches."""

from __future__ import annotations

import heapq
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agglab.hosts.aimd import AimdWindow
from p4native.switch import Pipeline

ROOT = Path(__file__).resolve().parents[3]
FRAME_BYTES, NS_PER_BYTE = 1000, 80
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
#include "include/phantom_queue.p4"
header data_t { bit<64> wait; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    PhantomQueue() queue;
    apply {
        queue.apply(7, s.ingress_global_timestamp, s.packet_length, 32w80, h.d.wait);
        s.egress_spec = 7;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
"""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Pipeline]:
    source, output = tmp_path / "watched.p4", tmp_path / "watched.json"
    source.write_text(PROGRAM)
    folders = ["-I", str(ROOT / "toolchain/tests/packets"), "-I", str(ROOT / "p4")]
    command = [sys.executable, "-m", "p4native.compiler", *folders, str(source), "-o", str(output)]
    subprocess.run(command, cwd=ROOT, check=True)
    with Pipeline.load(output) as pipeline:
        yield pipeline


def wait_ns(pipeline: Pipeline, now_us: int) -> int:
    ((_, out),) = pipeline.process(1, bytes(FRAME_BYTES), now_us)
    return int.from_bytes(out[:8], "big")


def answers(window: AimdWindow, count: int, marks: frozenset[int] = frozenset()) -> list[int]:
    found = []
    for number in range(count):
        window.answered(number in marks)
        found.append(window.window)
    return found


def test_it_grows_by_one_a_round_trip_and_halves_once_for_any_marks() -> None:
    window = AimdWindow(4, 1, 100)
    assert answers(window, 9) == [4] * 3 + [5] * 5 + [6]
    assert answers(window, 6, frozenset({0, 1, 5})) == [6] * 5 + [3]
    assert answers(window, 6, frozenset(range(6))) == [3] * 6, "of the same queue"
    assert answers(window, 3) == [3, 3, 4] and window.halved == 1
    assert answers(window, 4, frozenset({3}))[-1] == 2 and window.halved == 2


def test_a_loss_is_a_mark_and_limits_hold() -> None:
    window = AimdWindow(2, 2, 3)
    assert answers(window, 8)[-1] == 3
    window.lost()
    assert answers(window, 6)[-1] == 2
    window.lost()
    assert answers(window, 2)[-1] == 2 and window.halved == 2
    for numbers in ((0, 0, 3), (4, 1, 3), (1, 2, 3)):
        with pytest.raises(ValueError):
            AimdWindow(*numbers)


def test_the_phantom_queue_is_the_time_that_bytes_before_take(watched: Pipeline) -> None:
    size_ns = FRAME_BYTES * NS_PER_BYTE
    assert [wait_ns(watched, 10) for _ in range(3)] == [0, size_ns, 2 * size_ns]
    assert wait_ns(watched, 90) == 3 * size_ns - 80_000
    assert wait_ns(watched, 10_000) == 0, "an empty link keeps nothing"


def test_two_flows_share_a_link_that_marks(watched: Pipeline) -> None:
    """Each marked answer comes after the queue and 1 ms of way: both flows have half of the link,
    which hardly idles, as half a window fills it, and the queue stays near the threshold."""
    way_ns, threshold_ns = 1_000_000, 1_500_000
    windows = [AimdWindow(start, 1, 500) for start in (1, 40)]
    in_flight, served, waits = [0, 0], [0, 0], []
    events: list[tuple[int, int, bool]] = []
    now_ns = 0
    for _ in range(40_000):
        for flow in (0, 1):
            while in_flight[flow] < windows[flow].window:
                waited = wait_ns(watched, now_ns // 1000)
                in_flight[flow] += 1
                done_ns = now_ns + waited + FRAME_BYTES * NS_PER_BYTE + way_ns
                heapq.heappush(events, (done_ns, flow, waited > threshold_ns))
                waits.append(waited)
        now_ns, flow, marked = heapq.heappop(events)
        windows[flow].answered(marked)
        in_flight[flow], served[flow] = in_flight[flow] - 1, served[flow] + 1
    busy = sum(served) * FRAME_BYTES * NS_PER_BYTE / now_ns
    assert busy > 0.95 and 0.8 < served[0] / served[1] < 1.25
    late = waits[len(waits) // 2 :]
    assert max(late) < 2 * threshold_ns and all(window.halved > 20 for window in windows)

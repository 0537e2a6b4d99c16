"""Loss recovery (native/recovery.c) called by itself."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from agglab.hosts import library
from agglab.hosts.recovery import PENDING, Recovery, Timing

SENT = 2
MS = 1_000_000


def repeated(recovery: Recovery, packets: np.ndarray, now_ns: int) -> list[int]:
    """Which of the packets recovery_repeat sends again; deadline_ns is when the next is due."""
    recovery.deadline_ns = 2**63 - 1
    queue = np.zeros(len(packets), np.uint32)
    count = library.load().recovery_repeat(
        ctypes.byref(recovery),
        ctypes.c_void_p(packets.ctypes.data),
        ctypes.c_uint64(packets.itemsize),
        ctypes.c_uint32(len(packets)),
        ctypes.c_int64(now_ns),
        ctypes.c_void_p(queue.ctypes.data),
    )
    return queue[:count].tolist()


def test_what_the_first_gap_makes_due_is_due_now() -> None:
    """The second packet was overtaken, which tells that the path loses packets; so the first one,
    looked at before, waits for a short silence only, which is over already."""
    recovery = Recovery.of(Timing())
    recovery.rto_ns, recovery.srtt_ns, recovery.sampled = 10 * MS, MS // 10, 1
    recovery.answered_order, recovery.in_flight = 5, 2
    packets = np.zeros(2, np.dtype(PENDING))
    packets["waiting"], packets["order"] = SENT, [6, 1]
    assert repeated(recovery, packets, 5 * MS) == [1]
    assert recovery.deadline_ns == 5 * MS
    assert repeated(recovery, packets, 5 * MS) == [0]
    assert recovery.deadline_ns > 5 * MS


def test_the_first_gap_makes_silences_shorter_at_once() -> None:
    """Here the first packet was overtaken. The second one, looked at after it, waits for a short
    silence only, and is sent again at the same time."""
    recovery = Recovery.of(Timing())
    recovery.rto_ns, recovery.srtt_ns, recovery.sampled = 10 * MS, MS // 10, 1
    recovery.answered_order, recovery.in_flight = 5, 2
    packets = np.zeros(2, np.dtype(PENDING))
    packets["waiting"], packets["order"] = SENT, [1, 6]
    assert repeated(recovery, packets, 5 * MS) == [0, 1]


@pytest.mark.parametrize(
    ("waiting", "prompt_share", "due_ms"),
    [
        (8, 1.0, 1.25),  # the last of a round may all be lost
        (9, 1.0, 20),  # nine are not lost at once on a path that answers each
        (9, 0.9, 1.25),
        (64, 0.1, 1.25),  # where hardly any packet is answered at once, many may be lost
        (64, 0.2, 20),
    ],
)
def test_a_silence_among_many_packets_means_that_answers_are_late(
    waiting: int, prompt_share: float, due_ms: float
) -> None:
    """A round trip takes 1 ms, has taken 20 ms when queues were full, and packets have been
    lost."""
    recovery = Recovery.of(Timing())
    recovery.rto_ns, recovery.srtt_ns, recovery.longest_ns = 10 * MS, MS, 20 * MS
    recovery.sampled = recovery.lossy = 1
    recovery.in_flight, recovery.prompt_share = waiting, round(prompt_share * 2**16)
    packets = np.zeros(waiting, np.dtype(PENDING))
    packets["waiting"], packets["order"] = SENT, np.arange(1, waiting + 1)
    assert repeated(recovery, packets, 0) == []
    assert recovery.deadline_ns == due_ms * MS


def test_the_longest_round_trip_is_forgotten_slowly() -> None:
    recovery, sample = Recovery.of(Timing()), library.load().recovery_sample
    for rtt_ns in (MS, 20 * MS, *[MS] * 64):
        sample(ctypes.byref(recovery), ctypes.c_int64(rtt_ns))
    assert 15 * MS < recovery.longest_ns < 16 * MS

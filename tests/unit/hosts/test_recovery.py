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
    packets = np.zeros(2, PENDING)
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
    packets = np.zeros(2, PENDING)
    packets["waiting"], packets["order"] = SENT, [1, 6]
    assert repeated(recovery, packets, 5 * MS) == [0, 1]


def packets_sent(count: int, **fields: int) -> np.ndarray:
    """Packets that wait for their answers since time 0, in the order of their sending."""
    packets = np.zeros(count, PENDING)
    packets["waiting"] = SENT
    packets["order"] = packets["first_order"] = np.arange(1, count + 1)
    for name, value in fields.items():
        packets[name] = value
    return packets


def answered(recovery: Recovery, packet: np.ndarray, attempt: int, now_ns: int) -> int:
    """Tells recovery that the first of these packets was answered. Returns the measured round trip
    in nanoseconds, or -1."""
    call = library.load().recovery_answered
    call.restype = ctypes.c_int64
    found: int = call(
        ctypes.byref(recovery),
        ctypes.c_void_p(packet.ctypes.data),
        ctypes.c_int(attempt),
        ctypes.c_int64(now_ns),
    )
    return found


def measured(**fields: int) -> Recovery:
    """Recovery that knows round trips of 1 ms."""
    recovery = Recovery.of(Timing())
    recovery.srtt_ns, recovery.sampled, recovery.in_flight = MS, 1, 100
    for name, value in fields.items():
        setattr(recovery, name, value)
    return recovery


def test_of_many_silent_packets_only_those_sent_again_count_as_timeouts() -> None:
    recovery = measured(rto_ns=10 * MS)
    assert repeated(recovery, packets_sent(20), 10 * MS) == list(range(8))
    assert (recovery.timeouts, recovery.retransmitted) == (8, 8)


def test_each_silence_doubles_the_timeout_up_to_sixteen_times() -> None:
    recovery, packets, now_ns = measured(rto_ns=10 * MS), packets_sent(1), 0
    waits_ms = []
    for _ in range(6):
        assert repeated(recovery, packets, now_ns) == []
        waits_ms.append((recovery.deadline_ns - now_ns) // MS)
        now_ns = recovery.deadline_ns
        assert repeated(recovery, packets, now_ns) == [0]
    assert waits_ms == [10, 20, 40, 80, 160, 160]


def test_requests_to_a_peer_that_answers_late_are_repeated_up_to_sixteen_times_apart() -> None:
    recovery, packets, now_ns = measured(ask_ns=8 * MS), packets_sent(1, weight=1), 0
    recovery.rto_ns = recovery.initial_rto_ns = recovery.max_rto_ns
    recovery.sampled, waits_ms = 0, []
    for _ in range(7):
        recovery.progress_ns = now_ns  # other packets are answered, so there is no silence
        assert repeated(recovery, packets, now_ns) == []
        waits_ms.append((recovery.deadline_ns - now_ns) // MS)
        now_ns = recovery.deadline_ns
        recovery.progress_ns = now_ns
        assert repeated(recovery, packets, now_ns) == [0]
    assert waits_ms == [9, 16, 32, 64, 128, 128, 128]
    assert (recovery.asked, recovery.timeouts) == (7, 0)


def test_a_request_that_nobody_answers_before_all_have_sent_it_is_not_repeated_early() -> None:
    """Such a packet, which opens a round, has weight 0. The other one brings values."""
    recovery, packets = measured(ask_ns=8 * MS), packets_sent(2)
    packets["weight"] = 0, 1
    recovery.rto_ns = recovery.max_rto_ns
    recovery.progress_ns = 20 * MS  # others are answered
    assert repeated(recovery, packets, 20 * MS) == [1]
    assert (recovery.asked, recovery.timeouts) == (1, 0)


@pytest.mark.parametrize(("arrives_ms", "late_ms"), [(1.5, 0.5), (2, 1), (10, 1)])
def test_lateness_is_believed_up_to_a_round_trip(arrives_ms: float, late_ms: float) -> None:
    recovery = measured(answered_order=5)
    assert answered(recovery, packets_sent(1), 0, round(arrives_ms * MS)) == -1
    assert recovery.late_ns == late_ms * MS


@pytest.mark.parametrize(("attempt", "late_ns"), [(0, 1600), (1, 1500)])
def test_only_a_loss_makes_lateness_be_forgotten(attempt: int, late_ns: int) -> None:
    recovery = measured(late_ns=1600)
    answered(recovery, packets_sent(1, attempt=attempt), attempt, MS)
    assert recovery.late_ns == late_ns


def test_an_answer_ends_the_silence() -> None:
    recovery = measured(backoff=3, loss_probes=5)
    answered(recovery, packets_sent(1), 0, 7 * MS)
    assert (recovery.backoff, recovery.loss_probes, recovery.progress_ns) == (0, 0, 7 * MS)


def test_a_packet_that_need_not_be_answered_any_more_ends_the_silence() -> None:
    recovery, packets = measured(backoff=3), packets_sent(1)
    library.load().recovery_skipped(
        ctypes.byref(recovery), ctypes.c_void_p(packets.ctypes.data), ctypes.c_int64(7 * MS)
    )
    assert (recovery.backoff, recovery.progress_ns, recovery.in_flight) == (0, 7 * MS, 99)


def test_round_trips_are_those_of_the_largest_packets() -> None:
    recovery = measured(weight=2)
    assert answered(recovery, packets_sent(1, weight=1), 0, 3 * MS) == -1
    assert (recovery.sampled, recovery.weight) == (1, 2)
    assert answered(recovery, packets_sent(1, weight=3), 0, 3 * MS) == 3 * MS
    assert (recovery.sampled, recovery.weight) == (0, 3), "those of smaller ones are forgotten"


@pytest.mark.parametrize(("weight", "due_ms"), [(2, 10), (3, 10.5), (6, 12)])
@pytest.mark.parametrize("lossy", [0, 1])
def test_a_larger_packet_waits_longer_in_proportion(weight: int, due_ms: float, lossy: int) -> None:
    """Round trips of 1 ms are known of packets of weight 2, and openings are not all that was
    answered: nothing is sent sooner as a loss probe."""
    recovery = measured(weight=2, rto_ns=10 * MS, lossy=lossy, min_gap_ns=10 * MS)
    assert repeated(recovery, packets_sent(1, weight=weight), 0) == []
    assert recovery.deadline_ns == due_ms * MS


def test_an_overtaken_larger_packet_waits_longer_in_proportion() -> None:
    recovery = measured(weight=2, rto_ns=10 * MS, answered_order=5)
    assert repeated(recovery, packets_sent(1, weight=6), 0) == []
    assert recovery.deadline_ns == 12 * MS


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
    packets = np.zeros(waiting, PENDING)
    packets["waiting"], packets["order"] = SENT, np.arange(1, waiting + 1)
    assert repeated(recovery, packets, 0) == []
    assert recovery.deadline_ns == due_ms * MS


@pytest.mark.parametrize(("lossy", "due_ms"), [(0, 10 + 3 * 2), (1, 1.25)])
def test_others_may_use_the_links_as_much_as_this_one(lossy: int, due_ms: float) -> None:
    """As long as nothing was lost; then losses are more likely than late answers."""
    recovery = Recovery.of(Timing(others_ns=2 * MS))
    recovery.rto_ns, recovery.srtt_ns, recovery.sampled = 10 * MS, MS, 1
    recovery.in_flight, recovery.lossy = 3, lossy
    assert repeated(recovery, packets_sent(3), 0) == []
    assert recovery.deadline_ns == due_ms * MS


def test_the_longest_round_trip_is_forgotten_slowly() -> None:
    recovery, sample = Recovery.of(Timing()), library.load().recovery_sample
    for rtt_ns in (MS, 20 * MS, *[MS] * 64):
        sample(ctypes.byref(recovery), ctypes.c_int64(rtt_ns))
    assert 15 * MS < recovery.longest_ns < 16 * MS

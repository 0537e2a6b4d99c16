"""What explains that a packet is sent again, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest

from agglab.hosts.endpoint import Repeat
from agglab.hosts.recovery import PENDING, QUEUED
from agglab.hosts.wire import LOWER_HEADER_BYTES, Chunk, Kind
from agglab.testbed.virtual.causes import AGGREGATOR, Causes
from agglab.testbed.virtual.clock import Clock

HERE = frozenset((b"\x0a\0\0\1", b"\x0a\0\0\2"))
"""Addresses between which the packets of these tests travel."""


ANSWERED, SENT = 0, 2
"""Values of the field `waiting` of a packet (native/recovery.h)."""


def frame(job: int, slot: int, tag: int) -> bytes:
    return bytes(LOWER_HEADER_BYTES) + Chunk(Kind.INT32, job, slot, tag).emit()


def after(clock: Clock, time_ns: int) -> None:
    clock.run(time_ns, lambda: False)


@pytest.mark.parametrize(
    ("hit", "hit_ns", "kind"),
    [
        ((1, 3, 7), 0, "explained"),  # the chunk itself
        ((1, 3, 6), 0, "explained"),  # the one before it on the slot
        ((1, 3, 8), 0, "unexplained"),
        ((1, 4, 7), 699, "unexplained"),
        ((1, 4, 7), 700, "consequences"),  # another, not longer before than this one has waited
        ((1, 4, 7), 900, "consequences"),
        ((2, 4, 7), 900, "unexplained"),  # of another job
    ],
)
def test_what_was_hit_and_when(hit: tuple[int, int, int], hit_ns: int, kind: str) -> None:
    """Sent at 800 ns, again at 900: hits of other chunks count from 700."""
    clock = Clock()
    causes = Causes(clock)
    after(clock, hit_ns)
    causes.hit(frame(*hit))
    after(clock, 900)
    causes.retransmitted("h1", 1, Repeat(3, 7, 800), HERE)
    found = causes.repeats()
    counts = {name: getattr(found, name) for name in ("explained", "consequences", "unexplained")}
    assert counts == {name: {(1, "h1"): 1} if name == kind else {} for name in counts}
    assert len(found.examples) == (kind == "unexplained")


@pytest.mark.parametrize(
    ("tag", "kind"), [(4, "explained"), (6, "consequences"), (3, "consequences")]
)
def test_which_chunk_comes_before_is_up_to_the_system(tag: int, kind: str) -> None:
    """Chunk 7 follows chunk 4, which has another slot."""
    causes = Causes(Clock())
    causes.hit(frame(1, 5 if tag == 4 else 3, tag))
    causes.retransmitted("h1", 1, Repeat(3, 7, 0, before=(5, 4)), HERE)
    assert getattr(causes.repeats(), kind) == {(1, "h1"): 1}


@pytest.mark.parametrize(("first_sent_ns", "kind"), [(300, "explained"), (301, "unexplained")])
def test_the_effect_of_a_fault_may_outlast_it(first_sent_ns: int, kind: str) -> None:
    clock = Clock()
    causes = Causes(clock)
    disturbance = causes.begin(1)
    after(clock, 100)
    causes.end(disturbance, until_ns=300)
    after(clock, 400)
    causes.retransmitted("h1", 1, Repeat(3, 7, first_sent_ns), HERE)
    assert getattr(causes.repeats(), kind) == {(1, "h1"): 1}


def test_who_asks_again_because_of_a_fault_keeps_others_waiting() -> None:
    """h1 has sent its packet after the fault, but waits for h2."""
    clock = Clock()
    causes = Causes(clock)
    causes.end(causes.begin(None))
    after(clock, 100)
    causes.retransmitted("h2", 1, Repeat(3, 6, 0), HERE)
    causes.retransmitted("h1", 1, Repeat(3, 7, 50), HERE)
    assert causes.repeats().consequences == {(1, "h1"): 1}


@pytest.mark.parametrize(("job", "kind"), [(1, "explained"), (2, "consequences")])
def test_a_lost_datagram_may_carry_several_chunks(job: int, kind: str) -> None:
    """Slot 5 follows the header in datagrams of job 1, but not in those of job 2."""
    asked = []

    def others(datagram: bytes) -> list[tuple[int, int]]:
        asked.append(datagram)
        return [(5, 9)]

    clock = Clock()
    causes = Causes(clock)
    causes.agent(b"\x0a\0\0\1", 9, 1, 0, others)
    lost = frame(job, 3, 7)
    causes.hit(lost)
    causes.retransmitted("h1", job, Repeat(5, 9, 0), HERE)
    assert getattr(causes.repeats(), kind) == {(job, "h1"): 1}
    assert asked == ([lost[LOWER_HEADER_BYTES:]] if job == 1 else [])


@pytest.mark.parametrize(("tag", "kind"), [(7, "consequences"), (8, "unexplained")])
def test_who_mends_a_loss_may_keep_others_waiting(tag: int, kind: str) -> None:
    """A chunk lost at 100 ns is sent again at 850, in vain once more or, as tag 8, for no reason;
    another chunk, sent at 800, is sent again at 900."""
    clock = Clock()
    causes = Causes(clock)
    after(clock, 100)
    causes.hit(frame(1, 4, 6))
    after(clock, 850)
    causes.retransmitted("h2", 1, Repeat(4, tag, 600), HERE)
    after(clock, 900)
    causes.retransmitted("h1", 1, Repeat(3, 7, 800), HERE)
    assert getattr(causes.repeats(), kind)[1, "h1"] == 1


@pytest.mark.parametrize(
    ("tag", "waiting", "first_sent_ns", "kind"),
    [
        (6, SENT, 700, "explained"),  # that worker waits for the chunk before
        (7, QUEUED, 700, "explained"),
        (7, SENT, 851, "explained"),
        (7, SENT, 850, "consequences"),
        (7, ANSWERED, 700, "consequences"),
        (8, QUEUED, 700, "consequences"),
        (2**31 + 6, SENT, 700, "consequences"),
        (2**31 + 8, SENT, 700, "explained"),
    ],
)
def test_a_worker_may_have_waited_for_one_that_a_loss_held_up(
    tag: int, waiting: int, first_sent_ns: int, kind: str
) -> None:
    """Slot 1, sent at 800 ns, again at 900, after a loss of another chunk; of another worker's
    packet on the same slot the tag, the state and the time are known."""
    packets = np.zeros(2, [*PENDING.descr, ("tag", "u4")])
    fields = ["tag", "waiting", "first_sent_ns"]
    packets[fields][1] = (tag, waiting, first_sent_ns)
    clock = Clock()
    causes = Causes(clock)
    causes.agent(b"\x0a\0\0\2", 9, 1, packets=lambda: packets)
    after(clock, 850)
    causes.hit(frame(1, 4, 7))
    after(clock, 900)
    causes.retransmitted("h1", 1, Repeat(1, 7, 800), HERE)
    assert getattr(causes.repeats(), kind) == {(1, "h1"): 1}


def test_without_a_loss_no_worker_is_held_up() -> None:
    packets = np.zeros(2, [*PENDING.descr, ("tag", "u4")])
    clock = Clock()
    causes = Causes(clock)
    causes.agent(b"\x0a\0\0\2", 9, 1, packets=lambda: packets)
    after(clock, 900)
    causes.retransmitted("h1", 1, Repeat(1, 7, 800), HERE)
    assert causes.repeats().unexplained == {(1, "h1"): 1}


@pytest.mark.parametrize(
    ("meets", "fault_ns", "tag", "kind"),
    [
        (True, 0, 6, "explained"),  # the other worker has not come yet
        (True, 0, 7, "unexplained"),
        (False, 0, 6, "unexplained"),
        (False, 700, 6, "explained"),  # a fault held the other one up
        (False, 699, 6, "unexplained"),
        (False, 700, 7, "unexplained"),
    ],
)
def test_a_worker_that_has_not_come_keeps_others_waiting(
    meets: bool, fault_ns: int, tag: int, kind: str
) -> None:
    """Slot 1, sent at 800 ns, again at 900; the other worker has sent this tag at 700."""
    packets = np.zeros(2, [*PENDING.descr, ("tag", "u4")])
    packets[["tag", "waiting", "first_sent_ns"]][1] = (tag, SENT, 700)
    clock = Clock()
    causes = Causes(clock)
    causes.agent(b"\x0a\0\0\2", 9, 1, packets=lambda: packets)
    if fault_ns:
        after(clock, fault_ns)
        causes.end(causes.begin(None))
    after(clock, 900)
    causes.retransmitted("h1", 1, Repeat(1, 7, 800, meets=meets), HERE)
    assert getattr(causes.repeats(), kind) == {(1, "h1"): 1}


def test_tags_wrap_around() -> None:
    causes = Causes(Clock())
    causes.hit(frame(1, 3, 2**32 - 1))
    causes.retransmitted("h1", 1, Repeat(3, 0, 0), HERE)
    assert causes.repeats().explained == {(1, "h1"): 1}


def test_thousands_of_hit_chunks_are_told_apart() -> None:
    causes = Causes(Clock())
    for number in range(3000):
        causes.hit(frame(1 + number % 3, number % 64, 10 * number))
        causes.hit(frame(0, 0, 10 * number))
    for number in range(3000):
        for tag in (10 * number, 10 * number + 2):
            repeat = Repeat(number % 64, tag, 1 << 61)
            causes.retransmitted("h1", 1 + number % 3, repeat, HERE)
    found = causes.repeats()
    assert found.explained == {(job, "h1"): 1000 for job in (1, 2, 3)}
    assert found.unexplained == found.explained


def test_a_fault_explains_what_was_under_way_while_it_lasted() -> None:
    clock = Clock()
    causes = Causes(clock)
    after(clock, 100)
    pause = causes.begin(job=1)
    after(clock, 200)
    causes.end(pause)
    after(clock, 300)
    for job, first_sent_ns in ((1, 201), (1, 200), (2, 150)):
        causes.retransmitted("h1", job, Repeat(3, 7, first_sent_ns), HERE)
    found = causes.repeats()
    assert found.explained == {(1, "h1"): 1}
    assert found.unexplained == {(1, "h1"): 1, (2, "h1"): 1}


def test_what_is_no_packet_of_ours_explains_nothing() -> None:
    causes = Causes(Clock())
    causes.hit(b"\0" * 20)
    causes.retransmitted("h1", 0, Repeat(0, 0, 0), HERE)
    assert causes.repeats().unexplained == {(0, "h1"): 1}


@pytest.mark.parametrize(("hit_ns", "explained"), [(799, 0), (800, 1), (900, 1)])
def test_between_hosts_what_was_lost_between_the_two_explains(hit_ns: int, explained: int) -> None:
    """Sent at 800 ns, again at 900; whatever was lost between two others explains nothing."""
    clock = Clock()
    causes = Causes(clock)
    after(clock, hit_ns)
    there = bytes(26) + b"\x0a\0\0\2" + b"\x0a\0\0\1" + frame(1, 0, 0)[34:]
    causes.hit(there)
    after(clock, 900)
    elsewhere = frozenset((b"\x0a\0\0\1", b"\x0a\0\0\3"))
    for between in (HERE, elsewhere):
        causes.retransmitted("h1", 1, Repeat(None, 5, 800), between)
    assert causes.repeats().explained.get((1, "h1"), 0) == explained


@pytest.mark.parametrize(("hit_ns", "explained"), [(699, 0), (700, 1), (900, 1)])
def test_what_any_agent_lost_explains_who_waits_for_all(hit_ns: int, explained: int) -> None:
    """Sent at 800 ns, again at 900; the loss is another's, of the same job."""
    clock = Clock()
    causes = Causes(clock)
    after(clock, hit_ns)
    causes.hit(bytes(26) + b"\x0a\0\0\2" + b"\x0a\0\0\1" + frame(1, 0, 0)[34:])
    after(clock, 900)
    elsewhere = frozenset((b"\x0a\0\0\1", b"\x0a\0\0\3"))
    causes.retransmitted("h1", 1, Repeat(None, 5, 800, gathered=True), elsewhere)
    causes.retransmitted("h1", 2, Repeat(None, 5, 800, gathered=True), elsewhere)
    assert causes.repeats().explained == ({(1, "h1"): 1} if explained else {})
    assert causes.repeats().unexplained.get((2, "h1")) == 1


@pytest.mark.parametrize(("answered", "explained"), [(b"\x0a\0\0\1", 1), (b"\x0a\0\0\3", 0)])
def test_what_was_asked_of_the_aggregator_anybody_may_answer(
    answered: bytes, explained: int
) -> None:
    """Host 1 has sent a request to the aggregator's address. The answer of host 2 is lost."""
    causes = Causes(Clock())
    causes.hit(bytes(26) + b"\x0a\0\0\2" + answered + frame(1, 0, 0)[34:])
    causes.retransmitted("h1", 1, Repeat(None, 5, 0), frozenset((b"\x0a\0\0\1", AGGREGATOR)))
    assert causes.repeats().explained.get((1, "h1"), 0) == explained

"""The parts of MLfabric's endpoints by themselves."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from agglab.hosts.endpoint import Inbox
from agglab.hosts.recovery import Timing
from agglab.hosts.workloads import AsyncSgd, InputKey
from agglab.hosts.workloads.async_sgd import norm_of
from agglab.systems.mlfabric import server, wire
from agglab.systems.mlfabric.channel import NEVER_NS, WINDOW, Channel
from agglab.systems.mlfabric.group import Grant, GroupSum, Member
from agglab.systems.mlfabric.policy import Policy, Waiting
from agglab.systems.mlfabric.scheduler import Scheduler, SchedulerJob
from agglab.systems.mlfabric.server import Server, ServerJob, numbers
from agglab.systems.mlfabric.store import Assembly, Store
from agglab.systems.mlfabric.transport import Message, Transport
from agglab.systems.mlfabric.wire import Kind, Reason
from agglab.testbed.scenario.workloads.async_sgd import loss_of, update_of, word_counts

MS, LANES = 1_000_000, 8


def test_a_channel_delivers_each_packet_once() -> None:
    near, far = Channel(Timing()), Channel(Timing())
    for number in range(3 * WINDOW):
        near.put(bytes([number]))
    heard: list[int] = []
    chance, now_ns = random.Random(1), 0
    while len(heard) < 3 * WINDOW:
        now_ns += 20 * MS
        for number, attempt, _, payload in near.due(now_ns):
            assert near.in_flight <= WINDOW
            if chance.random() < 0.7:
                if far.hears(number):
                    heard.append(payload[0])
                if chance.random() < 0.7:
                    near.answered(now_ns, number, attempt)
    assert sorted(heard) == list(range(3 * WINDOW)) and near.retransmitted > 0


def test_a_silence_that_others_may_cause_is_no_loss() -> None:
    """Also after a loss has shown how short a round trip can be."""
    for hold_ms, again in ((0, True), (40, False)):
        near, now_ns, lost, attempts = Channel(Timing(), hold_ms * MS), 0, WINDOW // 2, 0
        for number in range(WINDOW):
            near.put(bytes([number]))
            for sent, attempt, _, _ in near.due(now_ns):
                attempts = attempt if sent == lost else attempts
            now_ns += MS
            if number != lost:
                near.answered(now_ns, number, 0)
        assert attempts > 0, "what others have overtaken is sent again soon"
        near.answered(now_ns, lost, attempts)
        near.put(b"last")
        near.due(now_ns + MS)
        assert bool(near.due(now_ns + 20 * MS)) is again
        assert near.due(now_ns + 120 * MS), "nobody ever hears of it"


def test_an_answer_makes_room_for_the_next_packet_at_once() -> None:
    near = Channel(Timing())
    for number in range(WINDOW + 1):
        near.put(bytes([number]))
    assert len(near.due(0)) == WINDOW and not near.due(1)
    near.answered(2, 3, 0)  # not the oldest
    assert not near.due(2)
    near.answered(3, 0, 0)
    assert [(number, payload) for number, _, _, payload in near.due(3)] == [
        (WINDOW, bytes([WINDOW]))
    ]


def test_a_transport_sends_more_packets_at_once_than_its_outbox_had_rows() -> None:
    transport = Transport(1, 1, LANES, [("a", 1), ("b", 1)], Timing())
    for rounds in (1, 40, 2):
        sent = [(number % 2, bytes([number]) * (1 + number % 9)) for number in range(5 * rounds)]
        for peer, body in sent:
            transport.send_once(peer, Kind.NEED, body)
        rows = transport.poll(0).tolist()
        outbox = transport.outbox
        got = [(outbox.peer(row), outbox.datagram(row)[wire.HEADER_BYTES :]) for row in rows]
        assert got == sent
    assert transport.counters["sent"] == 5 * 43


def test_only_the_rows_of_this_poll_hold_repeated_packets() -> None:
    transport = Transport(1, 1, LANES, [("a", 1)], Timing())
    transport.send(0, Kind.NEED)
    (first,) = transport.poll(0).tolist()
    assert transport.repeats(first) is None
    (again,) = transport.poll(200 * MS).tolist()
    assert (repeat := transport.repeats(again)) and repeat.first_sent_ns == 0
    transport.send_once(0, Kind.NEED, b"new")
    (new,) = transport.poll(200 * MS).tolist()
    assert new == again and transport.repeats(new) is None


def test_an_acknowledgement_names_the_attempt_that_came() -> None:
    near, far = (Transport(1, 1, LANES, [("a", 1)], Timing()) for _ in range(2))
    near.send(0, Kind.NEED, bytes(wire.NEED.itemsize))
    for now_ns, attempt in ((0, 0), (200 * MS, 1), (500 * MS, 2)):
        (row,) = near.poll(now_ns).tolist()
        inbox = Inbox(1, far.longest_bytes)
        inbox.fill([near.outbox.datagram(row)])
        assert len(list(far.on_datagrams(now_ns, inbox))) == (attempt == 0)
        (row,) = far.poll(now_ns).tolist()
        acknowledgement = np.frombuffer(far.outbox.datagram(row), wire.HEADER, 1)
        assert (acknowledgement["kind"], acknowledgement["attempt"]) == (Kind.ACK, attempt)


def test_a_commit_that_a_later_one_overtook_is_late_and_no_stranger_s() -> None:
    transport = Transport(1, 1, LANES, [("w", 1), ("s", 1)], Timing())
    job = SchedulerJob(1, 1, 4, updates=9, time_ns=0, silence_ns=MS, first_group=5)
    scheduler = Scheduler(job, Policy("fifo", 0, 1, 0), transport)
    transport.run = 1
    for step in range(3):
        asked = replace(member(0), step=step).request
        scheduler.take(0, Message(0, Kind.REQUEST, 1, 0, asked))
    assert [group for group, *_ in scheduler.waiting(9)] == [5, 6]
    for group, version in ((6, 2), (5, 1)):
        scheduler.take(0, Message(1, Kind.COMMIT, 1, 0, numbers(group, version)))
    assert [group for group, *_ in scheduler.waiting(9)] == [7]
    assert transport.counters["malformed"] == 0
    for group in (4, 8):
        scheduler.take(0, Message(1, Kind.COMMIT, 1, 0, numbers(group, 3)))
    assert transport.counters["malformed"] == 2
    assert [group for group, *_ in scheduler.waiting(9)] == [7]


def test_a_time_limit_counts_from_the_first_request() -> None:
    transport = Transport(1, 1, LANES, [("w", 1), ("s", 1)], Timing())
    job = SchedulerJob(1, 1, 4, updates=9, time_ns=MS, silence_ns=MS, first_group=5)
    scheduler = Scheduler(job, Policy("fifo", 0, 1, 0), transport)
    scheduler.tick(9 * MS)
    assert not transport.poll(9 * MS).size and scheduler.deadline_ns == NEVER_NS
    transport.run = 1
    scheduler.start_run(9 * MS)
    assert scheduler.deadline_ns == 10 * MS
    scheduler.tick(10 * MS)
    assert transport.poll(10 * MS).size == 1, "the end"


def test_whoever_asks_after_the_end_is_told_again() -> None:
    transport = Transport(1, 1, LANES, [("w", 1), ("v", 1), ("s", 1)], Timing())
    job = SchedulerJob(2, 1, 4, updates=1, time_ns=0, silence_ns=MS, first_group=5)
    scheduler = Scheduler(job, Policy("fifo", 0, 1, 0), transport)
    transport.run = 1

    def sent() -> list[tuple[int, int]]:
        """(peer, kind)."""
        return [
            (transport.outbox.peer(row), transport.outbox.datagram(row)[1])
            for row in transport.poll(0)
        ]

    scheduler.take(0, Message(0, Kind.REQUEST, 1, 0, member(0).request))
    scheduler.take(0, Message(2, Kind.COMMIT, 1, 0, numbers(5, 1)))
    assert (1, Kind.OVER) in sent()
    scheduler.take(0, Message(1, Kind.REQUEST, 1, 0, member(1).request))
    assert sent() == [(1, Kind.OVER)]
    scheduler.take(0, Message(1, Kind.IDLE, 1, 0, b""))
    assert sent() == [(1, Kind.OVER)]


def test_what_was_computed_from_a_version_that_the_replica_has_is_not_lost() -> None:
    """Requests that wait when the replica takes over, and those of workers that have not heard."""
    peers = [("w", 1), ("v", 1), ("server", 1), ("replica", 1)]
    transport = Transport(1, 1, LANES, peers, Timing())
    job = SchedulerJob(2, 2, 4, updates=9, time_ns=0, silence_ns=MS, first_group=5)
    scheduler = Scheduler(job, Policy("fifo", 0, 1, 0), transport)
    transport.run = 1

    def ask(rank: int, step: int, read: int) -> None:
        asked = replace(member(rank), step=step, read=read).request
        scheduler.take(0, Message(rank, Kind.REQUEST, 1, 0, asked))

    for step in range(2):
        ask(0, step, 0)  # granted
    for step, read in enumerate((1, 2, 3)):
        ask(1, step, read)
    scheduler.tick(MS)
    assert scheduler.counters["takeovers"] == 1 and scheduler.counters["lost"] == 0
    scheduler.take(MS, Message(3, Kind.PROMOTED, 1, 1, numbers(0, 2)))
    assert scheduler.counters["lost"] == 1
    for step, read in enumerate((1, 2, 3)):
        ask(0, 2 + step, read)
    assert scheduler.counters["lost"] == 2
    assert scheduler.counters["requests"] == 8


def test_as_many_early_pushes_are_kept_again_when_their_grant_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "EARLY_MAX", 3)
    transport = Transport(1, 1, LANES, [("u", 1), ("v", 1), ("w", 1), ("scheduler", 1)], Timing())
    job = ServerJob(0, 1, 3, LANES, LANES, 0, silence_ns=MS, first_group=5, in_flight=9)
    role = Server(job, transport)
    transport.run = 1
    members = tuple(member(rank, (0,)) for rank in range(3))
    for turn in range(3):
        for rank in range(3):
            role.take(0, Message(rank, Kind.PUSH, 1, 0, push(5 + turn, rank)))
        role.take(0, Message(0, Kind.PUSH, 1, 0, push(6 + turn, 0)))
        assert transport.counters["malformed"] == turn + 1, "a fourth early one"
        role.take(0, Message(3, Kind.GRANT, 1, 0, Grant(5 + turn, 3 * turn, 0, members).body))
    assert role.counters["committed"] == 9
    assert role.store.model.tolist() == [3 * (1 + 2 + 3)] * LANES


def push(group: int, rank: int) -> bytes:
    """Of a group of three workers. Worker `rank` adds rank + 1."""
    head = np.zeros(1, wire.PUSH)
    head["group"], head["members"], head["present"] = group, 0b111, 1 << rank
    return head.tobytes() + np.full(LANES, rank + 1, ">i4").tobytes()


def test_a_channel_refuses_what_is_beyond_its_window() -> None:
    far = Channel(Timing())
    assert far.hears(WINDOW) is None and far.hears(WINDOW - 1) is True
    assert far.hears(WINDOW - 1) is False and far.hears(0) is True and far.hears(WINDOW) is True


def member(rank: int, chunks: tuple[int, ...] = (0, 1), read: int = 0, norm: int = 5) -> Member:
    return Member(rank, 3, read, norm, chunks)


def test_a_grant_survives_the_wire() -> None:
    grant = Grant(70, 9, 1, (member(0), member(2, (1, 255), 7, 2**40)))
    assert Grant.of(grant.body, 3, 256) == grant and grant.version == 11
    assert Grant.of(grant.body, 2, 256) is None  # no such worker
    assert Grant.of(grant.body, 3, 255) is None  # no such chunk
    twice = Grant(70, 9, 1, (member(0), member(0)))
    assert Grant.of(twice.body, 3, 256) is None


def test_a_chunk_is_complete_however_its_values_come() -> None:
    ones = np.ones(LANES, np.int32)
    for order in ([0b011, 0b100], [0b100, 0b111], [0b001, 0b010, 0b001, 0b100], [0b111, 0b001]):
        group_sum = GroupSum(Grant(1, 0, 0, (member(0), member(1), member(2, (0,)))), LANES)
        for present in order:
            if group_sum.wants(0, present, present):
                group_sum.take(0, present, ones * present.bit_count())
        assert group_sum.sums[0].tolist() == [3] * LANES
        assert not group_sum.is_complete and group_sum.missing_of(member(0)) == [1]
        assert group_sum.wants(0, 0b1000, 0b1000) is group_sum.wants(9, 1, 1) is None
        group_sum.take(1, 0b011, ones)
        assert group_sum.is_complete


def test_a_sum_that_has_some_of_what_is_there_is_not_taken() -> None:
    group_sum = GroupSum(Grant(1, 0, 0, (member(0), member(1), member(2))), LANES)
    group_sum.take(0, 0b001, np.ones(LANES, np.int32))
    assert group_sum.wants(0, 0b011, 0b011) is False


POLICY = Policy("shortest", 4, 3, 12)


def test_who_sends_next() -> None:
    waiting = [
        Waiting(member(0, (0, 1, 2)), 1),
        Waiting(member(1, (5,)), 2),
        Waiting(member(1, (6,)), 3),
        Waiting(member(2, (0, 1)), 4),
    ]
    assert [one.order for one in POLICY.choose(waiting, 9)] == [2, 4]  # 15 is beyond 12
    assert [one.order for one in POLICY.choose(waiting, 1)] == [2]
    assert [one.order for one in replace(POLICY, order="fifo").choose(waiting, 9)] == [1, 2]
    assert [one.order for one in replace(POLICY, divergence=0).choose(waiting, 9)] == [2, 4, 1]


def test_what_must_not_be_sent() -> None:
    assert POLICY.refused(member(0, read=6), 10) is None
    assert POLICY.refused(member(0, read=5), 10) == Reason.STALE
    assert replace(POLICY, bound=0).refused(member(0, read=5), 10) is None
    assert POLICY.refused(member(0, norm=13), 0) == Reason.LARGE


def test_a_store_brings_another_to_its_version() -> None:
    store, other = Store(20, LANES), Store(20, LANES)
    record = np.zeros(1, wire.RECORD)[0]
    for version in range(1, 4):
        store.add({version - 1: np.full(LANES, version, np.int32)}, [record])
    for since, chunks in ((0, 3), (2, 1), (3, 0)):
        parts = store.parts(5, since, None)
        assert [kind for kind, _ in parts].count(Kind.STATE) == chunks
    parts = store.parts(5, 0, 0)
    assembly = Assembly.of(parts[0][1])
    for kind, body in reversed(parts):
        assert not assembly.is_whole and assembly.take(kind, body, store.chunks)
    assert other.fits(assembly)
    other.adopt(assembly)
    assert other.version == 3 and (other.values == store.values).all() and len(other.log) == 3
    assert not other.fits(assembly)


def test_a_post_counts_what_it_refuses() -> None:
    transport = Transport(1, 1, LANES, [("a", 1)], Timing())
    inbox = Inbox(1, transport.longest_bytes)
    inbox.fill([b"\0" * 19])
    assert list(transport.on_datagrams(0, inbox)) == [] and transport.counters["malformed"] == 1


def test_a_norm_is_rounded_up() -> None:
    assert norm_of(np.array([3, -4], np.int32)) == 5
    assert norm_of(np.array([1, 1], np.int32)) == 2
    assert norm_of(np.full(4, 2**31 - 1, np.int32)) == 2**32 - 2


@pytest.mark.parametrize("rate", [1, 700, 90_000])
def test_the_judge_computes_the_same_updates(rate: int) -> None:
    work = AsyncSgd(40, 5, 24, 3, rate, MS, 8)
    documents = work.inputs(InputKey(3, 1, 0, 0))
    model = np.zeros(work.elements, np.int32)
    moved = 0
    for step in range(12):
        update = work.update(model, work.rows_of(documents, step))
        own = update_of(work, model.astype(np.int64), work.rows_of(documents, step))
        assert (update == own).all()
        model += update
        moved += bool(update.any())
    assert moved > 3


def test_training_lowers_the_loss() -> None:
    work = AsyncSgd(128, 8, 512, 4, 1300, MS, 8)
    documents, model = work.inputs(InputKey(3, 1, 0, 0)), np.zeros(work.elements, np.int32)
    for step in range(400):
        model += work.update(model, work.rows_of(documents, step))
    documents = work.held_out(3, 1)
    counts = word_counts(work, documents)
    assert loss_of(work, model.astype(np.int64), documents, counts) < 0.9

"""The endpoints of README.md by name of rule: what a server adds, and a worker's window."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from agglab.hosts.agreement import OPERATIONS, Agreement
from agglab.hosts.aimd import AimdWindow
from agglab.hosts.endpoint import Inbox
from agglab.hosts.errors import ShapeMismatch
from agglab.hosts.native_structures import AimdState
from agglab.hosts.part import WORKER, Part
from agglab.hosts.wire import AGGREGATOR, RESULT
from agglab.hosts.workloads.dense import Dense
from agglab.systems.pooling import wire
from agglab.systems.pooling.endpoint import endpoint
from agglab.systems.pooling.hashed_slots import hashed_slots
from agglab.systems.pooling.job import PoolingJob
from agglab.systems.pooling.server import PoolingServer
from agglab.systems.pooling.state import LIBRARY
from agglab.systems.pooling.wire import Flag, Kind
from agglab.systems.pooling.worker import PoolingWorker

LANES, WINDOW = 3, 4
JOB = PoolingJob(job=2, workers=3, lanes=LANES, window=WINDOW, session=1, slots=8, scale_log2=0)
ALL = 7


def deliver(endpoint, now_ns, *payloads):
    inbox = Inbox(max(1, len(payloads)), endpoint.longest_bytes)
    inbox.fill(list(payloads))
    return endpoint.on_datagrams(now_ns, inbox)


def sent(endpoint, now_ns):
    return [endpoint.outbox.datagram(row) for row in endpoint.poll(now_ns).tolist()]


def header(payload):
    return np.frombuffer(payload, wire.HEADER, 1)[0]


def values(payload, dtype=">i4"):
    return np.frombuffer(payload, dtype, -1, wire.HEADER_BYTES).tolist()


def changed(payload, data=None, **fields):
    record = np.frombuffer(payload, wire.HEADER, 1).copy()
    for name, value in fields.items():
        record[name] = value
    body = payload[wire.HEADER_BYTES :] if data is None else np.array(data, ">i4").tobytes()
    return record.tobytes() + body


@pytest.fixture
def part():
    """Of a chunk: whose values, and what they come to."""
    worker = PoolingWorker(JOB, 0)
    tensor = np.arange(LANES * 20, dtype=np.int32)
    worker.begin(0, tensor, tensor.copy())
    (first, *_) = sent(worker, 0)

    def made(members, value, tag=0, **fields):
        return changed(first, [value] * LANES, members=members, tag=tag, **fields)

    return made


def test_a_whole_sum_is_the_result(part):
    server = PoolingServer(JOB)
    assert deliver(server, 0, part(ALL, 6)) == 1
    (result,) = sent(server, 0)
    assert header(result)["kind"] == Kind.INT32 | RESULT and header(result)["members"] == ALL
    assert values(result) == [6] * LANES
    assert server.counters["whole"] == server.counters["summed_ever"] == 1


def test_parts_are_added_once_each(part):
    server = PoolingServer(JOB)
    deliver(server, 0, part(1, 10), part(1, 10), part(6, 5))
    assert [values(result) for result in sent(server, 0)] == [[15] * LANES]
    counters = server.counters
    assert (counters["parts"], counters["duplicates"], counters["whole"]) == (2, 1, 0)


def test_a_part_that_overlaps_changes_nothing(part):
    server = PoolingServer(JOB)
    assert deliver(server, 0, part(3, 10), part(6, 1000)) == 1
    assert server.counters["overlapping"] == 1 and sent(server, 0) == []
    deliver(server, 0, part(4, 1))
    assert values(sent(server, 0)[0]) == [11] * LANES


@pytest.mark.parametrize("flag", [Flag.OVERFLOW, Flag.CONGESTED])
@pytest.mark.parametrize("flagged", range(3))
def test_what_one_part_says_is_said_of_the_sum(part, flagged, flag):
    server = PoolingServer(JOB)
    flags = [flag if rank == flagged else 0 for rank in range(3)]
    parts = [part(1 << rank, 5, kind=Kind.SCALED, flags=flags[rank]) for rank in range(3)]
    deliver(server, 0, *parts)
    (result,) = sent(server, 0)
    assert header(result)["flags"] == flag
    assert values(result) == [0 if flag == Flag.OVERFLOW else 15] * LANES


@pytest.mark.parametrize("flagged", range(3))
def test_congestion_of_one_workers_floats_is_said_of_their_sum(part, flagged):
    server = PoolingServer(JOB)
    scaled = [part(1 << rank, 5, kind=Kind.SCALED, flags=Flag.OVERFLOW) for rank in range(3)]
    deliver(server, 0, *scaled)
    sent(server, 0)
    flags = [Flag.CONGESTED if rank == flagged else 0 for rank in range(3)]
    floats = [part(1 << rank, 0, kind=Kind.FLOAT32, flags=flags[rank]) for rank in range(3)]
    deliver(server, 0, *floats)
    (result,) = sent(server, 0)
    assert header(result)["kind"] == Kind.FLOAT32 | RESULT
    assert header(result)["flags"] == Flag.CONGESTED


def test_a_whole_sum_takes_the_place_of_parts(part):
    server = PoolingServer(JOB)
    deliver(server, 0, part(1, 1), part(ALL, 6))
    assert values(sent(server, 0)[0]) == [6] * LANES
    assert server.counters["whole"] == 1


def test_who_asks_again_is_answered_alone(part):
    server = PoolingServer(JOB)
    deliver(server, 0, part(ALL, 6))
    sent(server, 0)
    deliver(server, 0, part(2, 1))
    assert sent(server, 0) == [], "a copy, whose sender waits for no second answer"
    deliver(server, 0, part(2, 1), part(2, 1, flags=Flag.RESEND, attempt=3))
    (result,) = sent(server, 0)
    assert (header(result)["members"], header(result)["attempt"]) == (2, 3)
    assert values(result) == [6] * LANES and server.counters["answered_again"] == 1


def test_the_chunk_before_is_remembered_and_older_ones_are_late(part):
    server = PoolingServer(JOB)
    for round_of_positions in range(3):
        deliver(server, 0, part(ALL, round_of_positions, tag=round_of_positions * WINDOW))
        sent(server, 0)
    deliver(server, 0, part(1, 9, tag=WINDOW, flags=Flag.RESEND))
    assert values(sent(server, 0)[0]) == [1] * LANES
    deliver(server, 0, part(1, 9, tag=0, flags=Flag.RESEND))
    assert sent(server, 0) == [] and server.counters["late"] == 1


@pytest.fixture
def nearly_wrapped(part):
    """A server that has summed the last but one tag of position 0 before tags begin again at 0."""
    server = PoolingServer(JOB)
    deliver(server, 0, part(ALL, 6))
    sent(server, 0)
    server._cells["tag"][0] = 2**32 - 2 * WINDOW
    return server


def test_after_the_largest_tag_comes_0(part, nearly_wrapped):
    for tag in (2**32 - WINDOW, 0):
        assert deliver(nearly_wrapped, 0, part(ALL, 7, tag=tag)) == 1
        assert [header(result)["tag"] for result in sent(nearly_wrapped, 0)] == [tag]
    deliver(nearly_wrapped, 0, part(1, 9, tag=2**32 - 2 * WINDOW))
    counters = nearly_wrapped.counters
    assert (counters["late"], counters["malformed"]) == (1, 0)


def test_whoever_contributes_after_a_disagreement_at_the_largest_tag_is_told(part, nearly_wrapped):
    last = 2**32 - WINDOW
    deliver(nearly_wrapped, 0, part(1, 10, tag=last), part(2, 10, tag=last, digest=77))
    sent(nearly_wrapped, 0)
    assert deliver(nearly_wrapped, 0, part(4, 10, tag=1)) == 0
    (mismatch,) = sent(nearly_wrapped, 0)
    assert header(mismatch)["kind"] == Kind.MISMATCH | RESULT


REFUSED = {
    "members": ({"members": 8}, "malformed"),
    "nobody": ({"members": 0}, "malformed"),
    "beyond": ({"tag": WINDOW + 1}, "malformed"),
    "version": ({"version": 2}, "malformed"),
    "kind": ({"kind": Kind.MISMATCH}, "malformed"),
    "floats": ({"kind": Kind.FLOAT32}, "malformed"),
    "result": ({"kind": Kind.INT32 | RESULT}, "malformed"),
    "job": ({"job": 3}, "malformed"),
    "zero": ({"zero": 1}, "malformed"),
    "exponent": ({"exponent": 1}, "malformed"),
    "session": ({"session": 2}, "late"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_server_refuses_what_no_switch_can_have_sent(part, what):
    fields, counter = REFUSED[what]
    server = PoolingServer(JOB)
    assert deliver(server, 0, changed(part(1, 10), **fields)) == 0
    assert server.counters[counter] == 1 and sent(server, 0) == [] and server.waiting(9) == []


@pytest.mark.parametrize("cut", [0, 11, 31, 33, -1])
def test_another_length_is_malformed(part, cut):
    server = PoolingServer(JOB)
    assert deliver(server, 0, part(1, 10)[:cut]) == 0
    assert server.counters["malformed"] == 1


def test_workers_with_another_operation_name_both(part):
    server, worker = PoolingServer(JOB), PoolingWorker(JOB, 1)
    tensor, average = np.arange(LANES * 20, dtype=np.int32), Agreement(OPERATIONS.index("AVG"))
    deliver(server, 0, part(1, 10), part(2, 10, digest=JOB.digest(tensor.size, False, average)))
    (told,) = sent(server, 0)
    worker.begin(0, tensor, tensor.copy())
    sent(worker, 0)
    deliver(worker, 1, told)
    with pytest.raises(ShapeMismatch) as caught:
        worker.poll(2)
    assert "operation SUM" in str(caught.value)
    assert "another the same with operation AVG" in str(caught.value)


def test_workers_of_different_shapes_are_told(part):
    server = PoolingServer(JOB)
    deliver(server, 0, part(1, 10), part(2, 10, digest=77))
    (told,) = sent(server, 0)
    assert header(told)["kind"] == Kind.MISMATCH | RESULT and header(told)["oldest"] == 77
    worker = PoolingWorker(JOB, 1)
    tensor = np.arange(LANES * 20, dtype=np.int32)
    worker.begin(0, tensor, tensor.copy())
    sent(worker, 0)
    deliver(worker, 1, told)
    with pytest.raises(Exception, match="have to reduce alike"):
        worker.poll(2)


def test_what_does_not_fit_is_sent_as_floats():
    server, workers = PoolingServer(JOB), [PoolingWorker(JOB, rank) for rank in range(3)]
    inputs = [np.float32(2 * LANES * [value] + LANES * [1]) for value in (1e9, 1.0, -1e9)]
    outs = [np.zeros(3 * LANES, np.float32) for _ in workers]
    for worker, x, out in zip(workers, inputs, outs, strict=True):
        worker.begin(0, x, out, np.ones(3 * LANES, np.int32))
    for _ in range(2):
        packets = [
            changed(payload, members=1 << rank)
            for rank, worker in enumerate(workers)
            for payload in sent(worker, 0)
        ]
        deliver(server, 0, *packets[::-1])
        for result in sent(server, 0):
            for worker in workers:
                deliver(worker, 1, result)
    assert all(worker.done for worker in workers)
    sums = 2 * LANES * [0.0] + LANES * [3.0]  # (1e9 + 1) - 1e9, and 1 + 1 + 1
    assert [out.tolist() for out in outs] == [sums] * 3
    assert [worker.counters["overflown"] for worker in workers] == [2, 2, 2]


def test_a_worker_sends_no_more_than_a_window_beyond_its_oldest(part):
    worker = PoolingWorker(JOB, 0)
    tensor = np.arange(LANES * 20, dtype=np.int32)
    worker.begin(0, tensor, tensor.copy())
    assert [int(header(p)["tag"]) for p in sent(worker, 0)] == [0, 1, 2, 3]
    answer = [part(ALL, 5, tag=t, kind=Kind.INT32 | RESULT) for t in range(4)]
    deliver(worker, 1, answer[2])
    assert sent(worker, 1) == []
    deliver(worker, 2, answer[0])
    (following,) = sent(worker, 2)
    assert (header(following)["tag"], header(following)["oldest"]) == (4, 1)


STRANGE = {
    "not sent yet": ({"tag": WINDOW}, "malformed"),
    "digest": ({"digest": 77}, "malformed"),
    "kind": ({"kind": Kind.SCALED | RESULT}, "malformed"),
    "contribution": ({"kind": Kind.INT32}, "malformed"),
    "session": ({"session": 2}, "late"),
    "before the round": ({"tag": 2**32 - 1}, "late"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_worker_refuses_what_it_does_not_await(part, what):
    fields, counter = STRANGE[what]
    worker = PoolingWorker(JOB, 0)
    worker.begin(0, np.arange(LANES * 20, dtype=np.int32), np.zeros(LANES * 20, np.int32))
    sent(worker, 0)
    answer = part(ALL, 5, tag=1, kind=Kind.INT32 | RESULT)
    assert deliver(worker, 1, answer) == 1
    assert deliver(worker, 2, answer) == 0 and worker.counters["duplicates"] == 1
    assert deliver(worker, 2, changed(answer, **fields)) == 0
    assert worker.counters[counter] == 1 and worker.chunks_done == 1


MS = 10**6
LONG = PoolingJob(job=2, workers=3, lanes=LANES, window=16, session=1, slots=16, scale_log2=0)


@pytest.fixture
def mending():
    """A worker of 16 chunks in flight that has sent the first again, 10 ms after the others, and
    how to answer."""
    worker = PoolingWorker(LONG, 0)
    tensor = np.arange(LANES * 60, dtype=np.int32)
    worker.begin(0, tensor, tensor.copy())
    like = sent(worker, 0)[0]

    def answered(now_ns, tag, attempt=0):
        fields = {"kind": Kind.INT32 | RESULT, "members": ALL}
        return deliver(worker, now_ns, changed(like, tag=tag, attempt=attempt, **fields))

    for tag in (1, 2, 3):
        assert answered(MS, tag) == 1
    assert sent(worker, MS) == []
    (again,) = sent(worker, worker.deadline_ns)
    return worker, again, answered


def test_what_is_sent_again_says_so(mending):
    _, again, _ = mending
    assert (header(again)["tag"], header(again)["attempt"]) == (0, 1)
    assert header(again)["flags"] == Flag.RESEND


def test_an_answer_to_what_was_sent_again_makes_nothing_else_late(mending):
    """What waits in slots may wait for others; only that the next was answered tells of a loss."""
    worker, _, answered = mending
    later = 10 * MS
    assert answered(later, 0, attempt=1) == 1
    assert {int(header(p)["tag"]) for p in sent(worker, later)} == {16, 17, 18, 19}
    assert answered(later, 6) == 1
    again = [p for p in sent(worker, later) if header(p)["attempt"]]
    assert {int(header(p)["tag"]) for p in again} == {4, 5}


def test_an_answer_to_what_was_sent_again_tells_of_what_was_before(mending):
    worker, _, answered = mending
    answered(10 * MS, 6)
    now_ns = 10 * MS
    assert {int(header(p)["tag"]) for p in sent(worker, now_ns) if header(p)["attempt"]} >= {4, 5}
    now_ns += MS
    answered(now_ns, 5, attempt=1)
    again = [int(header(p)["tag"]) for p in sent(worker, now_ns) if header(p)["attempt"]]
    assert 0 in again


def test_the_window_in_c_is_that_of_python():
    native, chance = LIBRARY.load(), random.Random(1)
    for _ in range(200):
        least = chance.randint(1, 5)
        most = least + chance.randint(0, 40)
        start = chance.randint(least, most)
        there = AimdState(window=start, least=least, most=most, left=start)
        here = AimdWindow(start, least, most)
        for _ in range(400):
            if chance.random() < 0.02:
                here.lost()
                native.pooling_aimd(ctypes.addressof(there), 0, 1)
            else:
                marked = chance.random() < 0.05
                here.answered(marked)
                native.pooling_aimd(ctypes.addressof(there), marked, 0)
            assert (there.window, there.halved) == (here.window, here.halved)


@pytest.mark.parametrize(("window", "slots"), [(1, 1), (8, 8), (60, 58), (115, 512), (500, 3)])
def test_a_jobs_places_are_different(window, slots):
    found = hashed_slots(7, window, 100, slots).tolist()
    assert len(set(found)) == len(found) == min(window, slots)
    assert all(100 <= place < 100 + slots for place in found)
    assert found == hashed_slots(7, window, 100, slots).tolist()
    if slots > 100:
        assert found != hashed_slots(8, window, 100, slots).tolist()


def test_a_silence_lasts_until_all_workers_have_repaired_a_chunk():
    """Answers may wait behind what all workers send again on the server's link."""
    settings = {"lanes": 256, "window": 4, "session": 1, "slots": 8, "first_slot": 0}
    settings |= {"scale_log2": 0, "priority": 0, "congestion_control": True}
    settings |= {"peers": [list(AGGREGATOR)]}
    due = {}
    for rate_bps in (None, 1e9, 1e8):
        where = ("127.0.0.1", 0)
        work = Dense(256, "int32")
        part = Part(1, WORKER, 0, 16, where, rate_bps, work, 10.0, settings, first_timeout_s=0.1)
        worker = endpoint(part)
        worker.begin(0, np.zeros(256, np.int32), np.zeros(256, np.int32))
        assert len(sent(worker, 0)) == 1
        due[rate_bps] = worker.deadline_ns
    bits = 16 * 8 * (74 + 4 * 256)
    assert due == {None: 100 * MS, 1e9: 100 * MS + bits, 1e8: 100 * MS + 10 * bits}

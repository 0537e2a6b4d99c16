"""Workers of a job with a deadline, at a model of the switch: docs/partial-sums.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from deadline_model import DeadlineModel, Packet
from numpy.typing import NDArray

from agglab.hosts import AllReducer
from agglab.hosts.bfloat16 import BFLOAT16
from agglab.hosts.endpoint import Inbox
from agglab.hosts.errors import NotFinite, RoundTimeout
from agglab.hosts.slots import Job
from agglab.hosts.wire import RESULT, Chunk, Kind
from agglab.systems.switchml.worker import Timing, Worker

LANES, WINDOW, DEADLINE_NS = 3, 2, 2_000_000
TICK_NS = 100_000


def packet_of(chunk: Chunk) -> Packet:
    shapes = tuple(int.from_bytes(shape.emit(), "big") for shape in chunk.shapes)
    values = tuple(value % 2**32 for value in chunk.values)
    return Packet(chunk.slot, chunk.tag, int(chunk.kind), chunk.exponent, values, shapes)


def result_of(chunk: Chunk, packet: Packet) -> bytes:
    """The result that answers the contribution `chunk`."""
    bits = sum(1 << rank for rank in packet.present)
    signed = tuple(value - 2**32 if value >= 2**31 else value for value in packet.values)
    shapes = tuple(chunk.shapes[0].parse(s.to_bytes(18, "big")) for s in packet.shapes)
    kind, head = Kind(packet.kind), (chunk.job, packet.slot, packet.tag)
    own = Chunk(kind, *head, packet.exponent, signed, shapes, True, chunk.attempt, bits)
    return own.emit()


def worker_of(workers: int, give_up_ns: int = 10**11) -> Worker:
    timing = Timing(initial_rto_ns=5_000_000, give_up_ns=give_up_ns)
    return Worker(Job(3, workers, LANES, WINDOW, WINDOW, deadline_ns=DEADLINE_NS), timing)


@dataclass
class Rack:
    """Workers at one switch. asleep: for each worker how likely it does nothing in a tick; what
    arrives meanwhile waits in its socket, which holds `room` datagrams."""

    chance: Random
    sets: int
    asleep: list[float]
    losses: float
    room: int = 1000
    now_ns: int = 0
    workers: list[Worker] = field(default_factory=list)
    sockets: list[list[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.asleep)
        self.workers = [worker_of(count) for _ in range(count)]
        self.sockets = [[] for _ in range(count)]
        self.model = DeadlineModel(count, self.sets, DEADLINE_NS // 1000)

    def reduce(self, inputs: list[NDArray]) -> list[tuple[NDArray, NDArray[np.int32], NDArray]]:
        """Results, integer sums and who is in each chunk, of every worker."""
        rooms = [(np.zeros_like(x), np.zeros(x.size, np.int32)) for x in inputs]
        for worker, x, (out, sums) in zip(self.workers, inputs, rooms, strict=True):
            worker.begin(self.now_ns, x, out, sums)
        for _ in range(60_000):
            if all(worker.done for worker in self.workers):
                break
            self._tick()
        assert all(worker.done for worker in self.workers), "the round ends"
        for worker in self.workers:
            worker.finish()
        presence = [worker.presence for worker in self.workers]
        assert all(p is not None for p in presence)
        return [(*room, p) for room, p in zip(rooms, presence, strict=True)]

    def _tick(self) -> None:
        self.now_ns += TICK_NS
        for rank in self.chance.sample(range(len(self.workers)), len(self.workers)):
            if self.chance.random() >= self.asleep[rank] and not self.workers[rank].done:
                self._step(rank)

    def _step(self, rank: int) -> None:
        worker = self.workers[rank]
        came, self.sockets[rank] = self.sockets[rank], []
        inbox = Inbox(max(1, len(came)), worker.longest_bytes)
        inbox.fill(came)
        worker.on_datagrams(self.now_ns, inbox)
        for slot in worker.poll(self.now_ns).tolist():
            if self.chance.random() >= self.losses:
                self._give(rank, worker.datagram(slot))

    def _give(self, rank: int, datagram: bytes) -> None:
        chunk = Chunk.parse(datagram, LANES)
        assert chunk is not None and chunk.present == 0 and not chunk.result
        answer = self.model.receive(rank, packet_of(chunk), self.now_ns // 1000)
        for to in sorted(answer[0] if answer else ()):
            assert answer is not None
            if self.chance.random() >= self.losses and len(self.sockets[to]) < self.room:
                self.sockets[to].append(result_of(chunk, answer[1]))


def right(inputs: list[NDArray], presence: NDArray[np.uint64]) -> tuple[NDArray, NDArray[np.int32]]:
    """The results and sums of docs/partial-sums.md, one element at a time."""
    workers, size = len(inputs), inputs[0].size
    out, sums = np.zeros_like(inputs[0]), np.zeros(size, np.int32)
    bits = 31 - int(np.ceil(np.log2(workers)))
    for i in range(size):
        chunk = i // LANES
        present = [r for r in range(workers) if int(presence[chunk]) >> r & 1]
        if inputs[0].dtype == np.int32:
            total = sum(int(inputs[r][i]) for r in present) % 2**32
            out[i] = sums[i] = total - 2**32 if total >= 2**31 else total
            continue
        column = [j for j in range(size) if j // LANES % WINDOW == chunk % WINDOW]
        largest = max(1, *(int(x.view(np.uint32)[j]) >> 23 & 255 for x in inputs for j in column))
        scale = 2.0 ** (bits - (largest - 126))
        limit = 2**bits - 1
        scaled = [round(float(inputs[r][i]) * scale) for r in present]
        sums[i] = sum(max(-limit, min(limit, each)) for each in scaled)
        out[i] = np.float32(float(sums[i]) / scale * workers / len(present))
    return out, sums


def tensors(chance: Random, workers: int, size: int, dtype: str) -> list[NDArray]:
    source = np.random.default_rng(chance.getrandbits(32))
    if dtype == "int32":
        return [source.integers(-(2**31), 2**31, size, dtype=np.int32) for _ in range(workers)]
    powers = [source.integers(-20, 20, size) for _ in range(workers)]
    return [np.ldexp(source.normal(size=size), p).astype(np.float32) for p in powers]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("seed", range(12))
def test_random_schedules(dtype: str, seed: int) -> None:
    """Every worker has the same sums: those of exactly the workers that are said to be in them."""
    chance = Random(f"{dtype} {seed}")
    asleep = [0.0, 0.1, chance.choice((0.5, 0.9, 0.98))]
    losses, room = chance.choice((0, 0.05, 0.3)), chance.choice((2, 1000))
    rack = Rack(chance, chance.choice((2, 4, 8)), asleep, losses, room)
    for size in (chance.randrange(1, 60), 0, 61):
        inputs = tensors(chance, 3, size, dtype)
        found = rack.reduce(inputs)
        out, sums = right(inputs, found[0][2])
        for own_out, own_sums, presence in found:
            assert presence.tolist() == found[0][2].tolist()
            assert own_out.tobytes() == out.tobytes()
            assert own_sums.tobytes() == sums.tobytes()
    assert all(worker.counters["malformed"] == 0 for worker in rack.workers)


def test_a_sleeper_is_left_out_and_does_not_send_what_is_summed() -> None:
    rack = Rack(Random(5), 8, [0.0, 0.0, 0.97], 0.0)
    inputs = tensors(rack.chance, 3, 90, "float32")
    found = rack.reduce(inputs)
    lacking = sum(int(bits) != 0b111 for bits in found[0][2])
    counters = [worker.counters for worker in rack.workers]
    assert lacking == rack.model.counts["closed_early"] > 5
    assert all(own["partial"] == own["absent"] == lacking for own in counters)
    assert counters[2]["skipped"] and counters[0]["asked"] and not counters[0]["skipped"]
    assert counters[2]["sent"] - counters[2]["retransmitted"] + counters[2]["skipped"] == 30 + 2


def test_each_worker_that_is_missing_from_a_sum_is_counted() -> None:
    rack = Rack(Random(9), 8, [0.0, 0.0, 0.97, 0.97], 0.0)
    found = rack.reduce(tensors(rack.chance, 4, 90, "int32"))
    missing = [4 - int(bits).bit_count() for bits in found[0][2]]
    assert max(missing) == 2
    assert all(worker.counters["absent"] == sum(missing) for worker in rack.workers)


def test_every_slot_begins_a_round_of_integers_with_an_opening() -> None:
    worker = worker_of(3)
    x = np.ones(90, np.int32)
    worker.begin(0, x, np.zeros_like(x), None)
    sent = [Chunk.parse(worker.datagram(slot), LANES) for slot in worker.poll(0).tolist()]
    assert [chunk and chunk.kind for chunk in sent] == [Kind.OPENING] * WINDOW


def test_sums_of_all_sets_may_wait_for_a_worker() -> None:
    plain = Worker(Job(3, 3, LANES, WINDOW, WINDOW))
    assert (plain.outbox.answers, worker_of(3).outbox.answers) == (1, Job.sets)


def test_everybody_is_in_the_sums_when_nobody_is_late() -> None:
    rack = Rack(Random(6), 8, [0.0, 0.0, 0.0], 0.0)
    found = rack.reduce(tensors(rack.chance, 3, 90, "float32"))
    assert set(found[0][2].tolist()) == {0b111}
    assert all(worker.counters["asked"] == 0 for worker in rack.workers)


def test_a_worker_that_is_gone_ends_the_round_with_an_error() -> None:
    rack = Rack(Random(7), 4, [0.0, 0.0, 0.0], 0.0)
    inputs = tensors(rack.chance, 3, 300, "float32")
    rack.workers = [worker_of(3, 10**9) for _ in range(3)]
    for worker, x in zip(rack.workers, inputs, strict=True):
        worker.begin(rack.now_ns, x, np.zeros_like(x), None)
    for _ in range(20):
        rack._tick()
    rack.asleep[2] = 1.0
    with pytest.raises(RoundTimeout, match="no result for chunk"):
        for _ in range(60_000):
            rack._tick()
    assert rack.model.counts["held"], "more than the sets hold is not closed without it"


def test_inf_at_a_worker_is_everybodys_error() -> None:
    rack = Rack(Random(8), 8, [0.0, 0.5, 0.9], 0.0)
    inputs = tensors(rack.chance, 3, 30, "float32")
    inputs[2][29] = np.inf
    with pytest.raises(NotFinite, match="Inf or NaN"):
        rack.reduce(inputs)
    for worker in rack.workers:
        with pytest.raises(NotFinite, match="Inf or NaN"):
            worker.finish()


def answers(worker: Worker, present: int, tag_ahead: int = 0, kind: Kind = Kind.INT32) -> None:
    contribution = Chunk.parse(worker.datagram(0), LANES)
    assert contribution is not None
    tag = contribution.tag + tag_ahead
    result = Chunk(kind, 3, 0, tag, 0, (1,) * LANES, (), True, 0, present)
    inbox = Inbox(1, worker.longest_bytes)
    inbox.fill([result.emit()])
    worker.on_datagrams(1, inbox)


def opened_worker() -> Worker:
    worker = worker_of(2)
    values = np.ones(LANES * 4, np.int32)
    worker.begin(0, values, np.zeros_like(values), None)
    worker.poll(0)
    opening = Chunk.parse(worker.datagram(0), LANES)
    assert opening is not None and opening.kind == Kind.OPENING
    inbox = Inbox(1, worker.longest_bytes)
    own = opening.emit()
    inbox.fill([own[:1] + bytes([own[1] | RESULT]) + own[2:19] + b"\3" + own[20:]])
    worker.on_datagrams(1, inbox)
    return worker


def test_results_that_cannot_be() -> None:
    """Of nobody, of more workers than there are, and of a chunk after the next is not taken."""
    worker = opened_worker()
    worker.poll(2)
    for present in (0, 0b111):
        answers(worker, present)
    assert (worker.chunks_done, worker.counters["malformed"]) == (0, 2)
    answers(worker, 0b01, tag_ahead=1)
    assert (worker.chunks_done, worker.counters["ahead"]) == (0, 1)
    answers(worker, 0b10)
    assert (worker.chunks_done, worker.counters["partial"]) == (1, 1)


def test_a_sum_that_comes_before_the_contribution_is_taken() -> None:
    worker = opened_worker()
    answers(worker, 0b10)
    assert (worker.chunks_done, worker.counters["skipped"]) == (1, 1)
    assert worker.counters["sent"] == 2, "the openings"
    assert 0 in worker.poll(2), "the chunk after it"


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16])
def test_floats_of_16_bits_are_refused(dtype: np.dtype) -> None:
    """The switch would refuse each of their packets."""
    bind = "127.0.0.1", 0
    with (
        AllReducer(3, 0, 2, LANES, WINDOW, bind, bind, deadline_s=0.001) as reducer,
        pytest.raises(TypeError, match="float16: convert to int32 or float32"),
    ):
        reducer.all_reduce(np.zeros(4, dtype))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"deadline_ns": 0}, "deadline_ns is 0; it must be at least 1"),
        ({"deadline_ns": -1}, "deadline_ns is -1"),
        ({"deadline_ns": 1, "wire_bits": 8}, "wire_bits cannot"),
        ({"deadline_ns": 1, "workers": 65}, "workers"),
    ],
)
def test_what_a_job_with_a_deadline_cannot_have(more: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Job(**{"job": 1, "workers": 2, "lanes": 4, "slots": 2, "window": 2, **more})

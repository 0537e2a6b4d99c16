"""Workers whose floats travel as integers of few bits, byte by byte against whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import narrow_model
import numpy as np
import pytest
import quantise_model
from hypothesis import given
from hypothesis import strategies as st

from agglab.hosts import wire
from agglab.hosts.errors import NotFinite
from agglab.hosts.wire import Batch, Chunk, Kind
from agglab.systems.switchml.fixed_point import FixedPoint
from agglab.systems.switchml.worker import Job, Worker

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
NEAR_ONE = st.floats(-4, 4, width=32)
KINDS = {16: Kind.NARROW16, 8: Kind.NARROW8, 4: Kind.NARROW4}


def made(lanes: int, bits: int, workers: int, window: int = 2) -> list[Worker]:
    job = Job(1, workers, lanes, 4, window, wire_bits=bits)
    return [Worker(job, floats=FixedPoint(bits=bits)) for _ in range(workers)]


class Rack:
    """Workers, and a switch that answers what the model says. bodies: of each chunk, what each
    worker sent for it."""

    def __init__(self, lanes: int, bits: int, tensors: list[list[float]]) -> None:
        self.lanes, self.bits = lanes, bits
        self.workers = made(lanes, bits, len(tensors))
        self.results = [np.zeros(len(tensor), np.float32) for tensor in tensors]
        self.sums = [np.zeros(len(tensor), np.int32) for tensor in tensors]
        self.bodies: list[tuple[bytes, ...]] = []
        arrays = [np.array(tensor, np.float32) for tensor in tensors]
        for worker, *mine in zip(self.workers, arrays, self.results, self.sums, strict=True):
            worker.begin(0, *mine)
        while not all(worker.done for worker in self.workers):
            self._answer()

    def _answer(self) -> None:
        """Each slot that is sent is sent by all, since all are in step."""
        rows = [worker.poll(0).tolist() for worker in self.workers]
        assert rows[0] and all(row == rows[0] for row in rows)
        for slot in rows[0]:
            sent = [worker.datagram(slot) for worker in self.workers]
            answer = self._summed(sent)
            for worker in self.workers:
                assert worker.on_datagrams(0, Batch.of([answer], self.lanes)) == 1

    def _summed(self, sent: list[bytes]) -> bytes:
        headers = [Batch.of([one], self.lanes).headers[0].copy() for one in sent]
        head, bodies = headers[0], [one[wire.HEADER_BYTES :] for one in sent]
        head["exponent"] = max(int(one["exponent"]) for one in headers)
        if head["kind"] == Kind.OPENING:
            body = bodies[0]
        else:
            assert head["kind"] == KINDS[self.bits]
            self.bodies.append(tuple(bodies))
            body = narrow_model.summed(bodies, self.lanes, self.bits)
            head["kind"] = Kind.SCALED
        head["kind"] |= wire.RESULT
        return head.tobytes() + body


@given(
    data=st.data(),
    bits=st.sampled_from([16, 8, 4]),
    lanes=st.sampled_from([2, 6, 64, 66, 130]),
    workers=st.integers(1, 4),
    near=st.booleans(),
)
def test_what_travels_and_what_comes_back(
    data: st.DataObject, bits: int, lanes: int, workers: int, near: bool
) -> None:
    per_chunk = narrow_model.values_of(lanes, bits)
    size = data.draw(st.integers(1, 3 * per_chunk))
    few = st.lists(NEAR_ONE if near else FLOATS, min_size=1, max_size=9)
    drawn = [data.draw(few) for _ in range(workers)]
    tensors = [[some[i % len(some)] * (1 - i % 3) for i in range(size)] for some in drawn]
    rack = Rack(lanes, bits, tensors)
    limit = 2 ** (bits - 1) - 1
    for chunk, first in enumerate(range(0, size, per_chunk)):
        parts = [tensor[first : first + per_chunk] for tensor in tensors]
        exponent = max(map(quantise_model.chunk_exponent, parts))
        log2 = bits - 1 - (max(exponent, 1) - 126)
        whole = [
            [
                max(-limit, min(limit, round(Fraction(float(value)) * Fraction(2) ** log2)))
                for value in part
            ]
            for part in parts
        ]
        bodies = tuple(narrow_model.contribution(integers, lanes, bits) for integers in whole)
        assert bodies in rack.bodies, chunk
        for index, integers in enumerate(zip(*whole, strict=True)):
            total = sum(integers)
            for sums, results in zip(rack.sums, rack.results, strict=True):
                assert sums[first + index] == total
                assert results[first + index] == np.float32(math.ldexp(total, -log2))
    assert len(rack.bodies) == -(-size // per_chunk)


def test_the_largest_sums_fit() -> None:
    """17 workers of 4 bits, all at the largest value, or at the smallest."""
    for sign in (1, -1):
        rack = Rack(2, 4, [[sign * 7.0, -sign * 7.0]] * 17)
        assert rack.sums[0].tolist() == [sign * 7 * 17, -sign * 7 * 17]
        assert rack.results[3].tolist() == [sign * 7.0 * 17, -sign * 7.0 * 17]


@pytest.mark.parametrize("index", [0, 63, 64, 127, 129])
def test_what_is_not_finite_is_named(index: int) -> None:
    tensors = [[1.0] * 130 for _ in range(2)]
    tensors[1][index] = math.inf
    rack = Rack(32, 8, tensors)
    named = f"chunk {index // 64} of job 1: this worker's index {index}$"
    with pytest.raises(NotFinite, match=named):
        rack.workers[1].finish()
    with pytest.raises(NotFinite, match="at another"):
        rack.workers[0].finish()


def test_only_a_sum_in_full_width_is_an_answer() -> None:
    (worker,) = made(4, 8, 1, window=1)
    values = np.ones(8, np.float32)
    worker.begin(0, values, np.zeros(8, np.float32))
    [slot] = worker.poll(0).tolist()
    opening = Batch.of([worker.datagram(slot)], 4)
    opening.headers["kind"] |= wire.RESULT
    assert worker.on_datagrams(0, opening) == 1
    [slot] = worker.poll(0).tolist()
    sent = worker.datagram(slot)
    assert len(sent) == wire.HEADER_BYTES + 8
    packet = Chunk.parse(sent, 4)
    assert packet is not None and packet.emit() == sent
    for kind in (Kind.NARROW8, Kind.NARROW16, Kind.NARROW4, Kind.HALF, Kind.INT32):
        length = 8 if kind in KINDS.values() else 16
        head = sent[:1] + bytes([kind | wire.RESULT]) + sent[2 : wire.HEADER_BYTES]
        answer = head + bytes(length)
        assert worker.on_datagrams(0, Batch.of([answer], 4)) == 0
    assert worker.counters["malformed"] == 5
    whole = sent[:1] + bytes([Kind.SCALED | wire.RESULT]) + sent[2 : wire.HEADER_BYTES]
    assert worker.on_datagrams(0, Batch.of([whole + bytes(15)], 4)) == 0
    assert worker.on_datagrams(0, Batch.of([whole + bytes(16)], 4)) == 1
    assert worker.done


@pytest.mark.parametrize(
    ("lanes", "bits", "workers", "message"),
    [
        (4, 12, 2, "wire_bits is 12; it must be 16, 8 or 4"),
        (3, 8, 2, "lanes is 3; with wire_bits it must be even"),
        (4, 4, 18, "workers is 18; it must be 1 to 17"),
    ],
)
def test_jobs_that_cannot_be(lanes: int, bits: int, workers: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Job(1, workers, lanes, 4, 2, wire_bits=bits)


@pytest.mark.parametrize("bits", [None, 9])
def test_floats_of_more_bits_than_the_wire_has(bits: int | None) -> None:
    with pytest.raises(ValueError, match="with wire_bits it must be at most 8"):
        Worker(Job(1, 2, 4, 4, 2, wire_bits=8), floats=FixedPoint(bits=bits))

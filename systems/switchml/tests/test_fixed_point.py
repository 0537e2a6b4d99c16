"""Floats under a job's own scaling factor, number of bits and rounding, against Python's whole
numbers and fractions: what travels, what comes back and what is counted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import quantise_model
from hypothesis import given
from hypothesis import strategies as st
from simulation import MS, Simulation, make_network
from switch_model import Faults

from agglab.hosts.errors import NotFinite
from agglab.systems.switchml.fixed_point import BY_CHUNK, FixedPoint
from agglab.systems.switchml.worker import Job

LANES = 3
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
NEAR_ONE = st.floats(-4, 4, width=32)
WORD = 2**64 - 1


def mix(x: int) -> int:
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & WORD
    return x ^ x >> 31


def drawn(key: int, index: int, value: float) -> float:
    bits = int(np.float32(value).view(np.uint32))
    return (mix((mix((key + index) & WORD) + bits) & WORD) >> 11) / 2**53


def whole(own: FixedPoint, b: int, exponent: int, index: int, value: float) -> int:
    """The integer that a value becomes before it is cut."""
    log2 = b - (max(exponent, 1) - 126) if own.scale_log2 is None else own.scale_log2
    if own.noise_key is None:
        return round(Fraction(value) * Fraction(2) ** log2)
    return math.floor(value * 2.0**log2 + drawn(own.noise_key, index, value))


def run(tensors: list[list[float]], floats: list[FixedPoint], loss: float = 0.0) -> Simulation:
    job = Job(1, len(tensors), LANES, 2, 2)
    arrays = [[np.array(tensor, np.float32)] for tensor in tensors]
    network = make_network(job, Faults(loss=loss), 1)
    simulation = Simulation(job, arrays, network, floats=floats)
    simulation.run(limit_ns=60_000 * MS)
    return simulation


@given(
    data=st.data(),
    workers=st.integers(1, 4),
    size=st.integers(1, 8),
    scale_log2=st.none() | st.integers(-64, 64),
    bits=st.none() | st.integers(2, 32),
    random=st.booleans(),
)
def test_what_travels_comes_back_and_is_counted(
    data: st.DataObject,
    workers: int,
    size: int,
    scale_log2: int | None,
    bits: int | None,
    random: bool,
) -> None:
    values = st.lists(
        NEAR_ONE if data.draw(st.booleans()) else FLOATS, min_size=size, max_size=size
    )
    tensors = [data.draw(values) for _ in range(workers)]
    keys = [7919 * (rank + 1) if random else None for rank in range(workers)]
    floats = [FixedPoint(scale_log2, bits, key) for key in keys]
    job = run(tensors, floats, loss=0.1)
    b = min(31 - math.ceil(math.log2(workers)), 32 if bits is None else bits - 1)
    limit = 2**b - 1
    clipped, vanished = [0] * workers, [0] * workers
    plain = floats[0] == BY_CHUNK
    for index in range(size):
        start = index // LANES * LANES
        chunks = [tensor[start : start + LANES] for tensor in tensors]
        exponent = max(map(quantise_model.chunk_exponent, chunks))
        total = 0
        for rank, tensor in enumerate(tensors):
            one = whole(floats[rank], b, exponent, index, tensor[index])
            clipped[rank] += abs(one) > limit
            vanished[rank] += one == 0 and tensor[index] != 0
            total += max(-limit, min(limit, one))
        log2 = b - (max(exponent, 1) - 126) if scale_log2 is None else scale_log2
        for each in job.participants:
            assert each.sums[0][index] == total
            assert each.results[0][index] == np.float32(math.ldexp(total, -log2))
    if not plain:
        counters = [each.worker.counters for each in job.participants]
        assert [counts["clipped"] for counts in counters] == clipped
        assert [counts["vanished"] for counts in counters] == vanished


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_an_error_at_every_worker(bad: float) -> None:
    job = run([[1.0, 2.0], [1.0, bad]], [FixedPoint(scale_log2=20)] * 2)
    for rank, each in enumerate(job.participants):
        expected = "this worker's index 1" if rank else "at another"
        with pytest.raises(NotFinite, match=expected):
            each.worker.finish()


def test_at_random_a_mean_is_right_that_is_lost_to_the_nearest() -> None:
    values, size = 0.3, 6000
    near = run([[values] * size], [FixedPoint(scale_log2=0)])
    far = run([[values] * size], [FixedPoint(scale_log2=0, noise_key=5)])
    assert near.participants[0].results[0].mean() == 0
    deviation = math.sqrt(values * (1 - values) / size)
    assert abs(far.participants[0].results[0].mean() - values) < 5 * deviation

"""bfloat16: to and from float32, and a worker's packets of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from agglab.hosts import bfloat16, wire
from agglab.hosts.bfloat16 import BFLOAT16, NAME, narrowed, widened
from agglab.hosts.tensors import make_tensor
from agglab.hosts.wire import Chunk, Kind
from agglab.systems.switchml.worker import Job, Timing, Worker

LANES, ELEMENTS = 4, 13


def of_bits(*bits: int) -> np.ndarray:
    return np.array(bits, np.uint16).view(BFLOAT16)


def test_all_of_them_are_float32() -> None:
    every = np.arange(65536, dtype=np.uint16).view(BFLOAT16)
    floats = widened(every)
    known = {0x3F80: 1.0, 0xC049: -3.140625, 0x7F7F: 2.0**128 - 2.0**120, 0x0001: 2.0**-133}
    assert {bits: floats[bits].item() for bits in known} == known
    back = narrowed(floats)[NAME]
    nan = np.isnan(floats)
    assert back[~nan].tolist() == every[NAME][~nan].tolist()
    assert np.isnan(widened(narrowed(floats[nan]))).all()


def test_the_nearest_one_is_chosen_and_a_tie_is_even() -> None:
    chance = np.random.default_rng(3)
    bits = chance.integers(0, 2**32, 4000, np.uint32)
    bits[::2] = bits[::2] & 0xFFFF0000 | 0x8000  # ties
    floats = bits.view(np.float32)
    floats = floats[np.abs(floats) < 2.0**127]
    for given, made in zip(floats.tolist(), narrowed(floats), strict=True):
        own = int(made[NAME])
        near = [int(own) + step for step in (-1, 0, 1) if 0 <= (own & 0x7FFF) + step < 0x7F80]
        distances = {
            other: abs(Fraction(widened(of_bits(other))[0].item()) - Fraction(given))
            for other in near
        }
        least = min(distances.values())
        ties = [other for other in near if distances[other] == least]
        assert own in ties
        assert len(ties) == 1 or own % 2 == 0


@pytest.mark.parametrize(
    ("bits", "wanted"),
    [(0x7F7F7FFF, 0x7F7F), (0x7F7F8000, 0x7F80), (0xFF800000, 0xFF80), (0x80000001, 0x8000)],
)
def test_at_the_ends_of_the_range(bits: int, wanted: int) -> None:
    assert narrowed(np.array([bits], np.uint32).view(np.float32))[NAME].tolist() == [wanted]


def test_a_nan_stays_one() -> None:
    made = narrowed(np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32))
    assert np.isnan(widened(made)).all()


def test_names() -> None:
    assert bfloat16.dtype_of("bfloat16") == BFLOAT16 == bfloat16.dtype_of(BFLOAT16)
    assert bfloat16.dtype_of("float32") == np.float32
    assert [bfloat16.name_of(each) for each in (BFLOAT16, np.dtype("i4"))] == ["bfloat16", "int32"]


def test_an_input_has_the_values_of_float32_rounded() -> None:
    wide = make_tensor(7, 1, 2, 3, 5000, "float32", 100)
    own = make_tensor(7, 1, 2, 3, 5000, "bfloat16", 100)
    assert own.dtype == BFLOAT16
    assert own.tobytes() == narrowed(wide).tobytes()


def test_a_worker_sends_the_bits_and_takes_the_result() -> None:
    worker = Worker(Job(1, 2, LANES, 1, 1), Timing())
    values = np.arange(0x3F80, 0x3F80 + ELEMENTS, dtype=np.uint16).view(BFLOAT16)
    out = np.zeros(ELEMENTS, BFLOAT16)
    worker.begin(0, values, out)
    sent: list[tuple[Kind, bytes]] = []
    for _ in range(3):
        for slot in worker.poll(0).tolist():
            packet = Chunk.parse(worker.datagram(slot), LANES)
            assert packet is not None
            body = worker.datagram(slot)[wire.HEADER_BYTES :]
            sent.append((packet.kind, body))
            doubled = body if packet.kind is Kind.OPENING else _twice(body)
            header = bytearray(worker.datagram(slot)[: wire.HEADER_BYTES])
            header[1] |= wire.RESULT
            worker.on_datagrams(0, wire.Batch.of([bytes(header) + doubled], LANES))
    assert worker.done
    assert [kind for kind, _ in sent] == [Kind.OPENING, Kind.BFLOAT, Kind.BFLOAT]
    wanted = values[NAME].astype(">u2").tobytes() + bytes(2 * (4 * LANES - ELEMENTS))
    assert b"".join(body for kind, body in sent if kind is Kind.BFLOAT) == wanted
    assert widened(out).tolist() == (2 * widened(values)).tolist()


def _twice(body: bytes) -> bytes:
    """With an exponent field of one more, and zeros where there is nothing."""
    bits = np.frombuffer(body, ">u2")
    return np.where(bits == 0, 0, bits + 0x80).astype(">u2").tobytes()

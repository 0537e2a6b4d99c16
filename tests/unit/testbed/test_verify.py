"""The independent sums, against a model of docs/protocol.md in exact rational arithmetic."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed import verify as checker
from testbed.verify import BLOCK_ELEMENTS, Verdict, combine, quantise_bits

LANES = 4


def verify(tensors, sums, lanes) -> Verdict:
    """With whole tensors at hand."""
    return checker.verify(lambda start, n: [t[start : start + n] for t in tensors], sums, lanes)


floats = st.floats(
    width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**120), max_value=2.0**120
)
gradients = st.one_of(
    floats, st.floats(-1, 1, width=32), st.sampled_from([0.0, -0.0, 2.0**-149, 2.0**-130])
)


def exponent_field(x: float) -> int:
    return (struct.unpack("<I", struct.pack("<f", x))[0] >> 23) & 0xFF


def round_half_even(x: Fraction) -> int:
    low = x.numerator // x.denominator
    rest = x - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


def model_sums(tensors: list[list[float]], lanes: int) -> list[int]:
    """docs/protocol.md, "Integers and floats", one value at a time."""
    n = len(tensors)
    b = 31 - next(k for k in range(32) if 2**k >= n)
    sums = []
    for i in range(len(tensors[0])):
        chunk = slice(i // lanes * lanes, (i // lanes + 1) * lanes)
        e = max(1, *(exponent_field(x) for t in tensors for x in t[chunk]))
        scale = Fraction(2) ** (b - (e - 126))
        quantised = (round_half_even(Fraction(t[i]) * scale) for t in tensors)
        sums.append(sum(max(-(2**b - 1), min(2**b - 1, q)) for q in quantised))
    return sums


def test_bits_of_the_protocol() -> None:
    assert [quantise_bits(n) for n in (1, 2, 3, 4, 5, 8, 9, 64)] == [31, 30, 29, 29, 28, 28, 27, 25]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9), st.integers(1, 11), st.data())
def test_float_sums_equal_the_model(workers: int, elements: int, data) -> None:
    row = st.lists(gradients, min_size=elements, max_size=elements)
    tensors = [data.draw(row) for _ in range(workers)]
    inputs = [np.array(t, np.float32) for t in tensors]
    sums = np.array(model_sums(tensors, LANES), np.int32)
    verdict = verify(inputs, [sums] * workers, LANES)
    assert verdict.exact
    assert verdict.within
    place = data.draw(st.integers(0, elements - 1))
    wrong = sums.copy()
    wrong[place] ^= 1
    received = [sums] * (workers - 1) + [wrong]
    verdict = verify(inputs, received, LANES)
    assert (verdict.wrong, verdict.first_wrong) == (1, (workers - 1, place))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=7, max_size=7), min_size=1))
def test_integer_sums_wrap(rows: list[list[int]]) -> None:
    expected = [(sum(column) + 2**31) % 2**32 - 2**31 for column in zip(*rows, strict=True)]
    inputs = [np.array(row, np.int32) for row in rows]
    good = [np.array(expected, np.int32)] * len(rows)
    verdict = verify(inputs, good, LANES)
    assert verdict.exact
    assert (verdict.max_abs, verdict.bound, verdict.within) == (None, None, None)
    bad = [*good[1:], good[0] + np.arange(7, dtype=np.int32)]
    assert verify(inputs, bad, LANES).wrong == 6


def test_blocks_are_joined_at_the_right_place() -> None:
    elements = 2 * BLOCK_ELEMENTS + 17
    inputs = [np.arange(elements, dtype=np.int32) * k for k in (1, 7)]
    received = [inputs[0] + inputs[1] for _ in inputs]
    assert verify(inputs, received, 5).exact
    place = BLOCK_ELEMENTS + 3
    received[1][place] += 1
    assert verify(inputs, received, 5).first_wrong == (1, place)


@pytest.mark.parametrize(
    "received",
    [np.zeros(9, np.int32), np.zeros(10, np.int64), np.zeros((2, 5), np.int32)],
)
def test_sums_of_another_shape_are_all_wrong(received: np.ndarray) -> None:
    inputs = [np.zeros(10, np.float32)] * 2
    verdict = verify(inputs, [np.zeros(10, np.int32), received], LANES)
    assert verdict.wrong == 20
    assert not verdict.within


def test_errors_are_measured_against_a_float64_sum() -> None:
    """Two workers, scale 2^30: 1/3 is off by less than half a step at each of them."""
    third = np.full(3, 1 / 3, np.float32)
    sums = np.full(3, 2 * round(float(third[0]) * 2.0 ** (30 + 1)), np.int32)
    verdict = verify([third, third], [sums, sums], LANES)
    assert verdict.exact
    exact_sum = 2 * float(third[0])
    assert verdict.max_abs == abs(float(np.float32(sums[0] / 2.0**31)) - exact_sum)
    assert 2.0**-31 <= verdict.bound < 2.0**-31 + 2.0**-24


def test_a_wrong_sum_breaks_the_bound() -> None:
    ones = np.ones(4, np.float32)
    sums = np.full(4, 2**30, np.int32)
    assert verify([ones, ones], [sums, sums], LANES).within
    verdict = verify([ones, ones], [sums, sums + 1000], LANES)
    assert not verdict.within
    assert verdict.wrong == 4


def test_rounds_are_combined() -> None:
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    good = verify([ones, ones], [np.full(4, 2**30, np.int32)] * 2, LANES)
    bad = verify([zeros, zeros], [np.full(4, 2**20, np.int32)] * 2, LANES)
    both = combine([good, bad, good])
    assert both.wrong == 8
    assert both.first_wrong == (0, 0)
    assert both.bound == max(good.bound, bad.bound)
    assert not both.within


def test_another_operation_is_judged_as_strictly_as_the_sum() -> None:
    tensors = [np.array([5, -9, -1, 0], np.int32), np.array([-5, -7, 3, -(2**31)], np.int32)]

    def judged(received: list[int]) -> Verdict:
        sums = [np.array(received, np.int32)] * 2
        return checker.verify(lambda start, n: tensors, sums, LANES, np.maximum.reduce)

    assert judged([5, -7, 3, 0]).exact
    assert judged([5, -7, 4, 0]).first_wrong == (0, 2)
    halves = [np.array([0.5, -1.0], np.float32), np.array([0.25, -0.5], np.float32)]
    largest = np.array([2**28, -(2**28)], np.int32)
    judgement = checker.verify(lambda start, n: halves, [largest] * 2, LANES, np.maximum.reduce)
    assert judgement.exact and judgement.max_abs == 0.0

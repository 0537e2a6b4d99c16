"""Quantisation against exact fractions, for every kind of block and up to 64 workers."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
import quantise_model
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.hosts import quantise

MAX = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).smallest_subnormal)
NORMAL = float(np.finfo(np.float32).smallest_normal)
WORKERS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 64, 300, 5000])

any_float = st.floats(width=32, allow_nan=False, allow_infinity=False)
blocks = st.lists(any_float, min_size=1, max_size=9)
"""Hypothesis' floats favour zeros, denormals, the largest and neighbours of powers of two."""


def of(values):
    return np.array(values, np.float32)


def exponents_of(*values):
    return np.array(values, np.uint8)


@given(blocks, st.integers(1, 4))
def test_exponents_are_the_largest_field_of_each_chunk(values, lanes):
    expected = [
        quantise_model.chunk_exponent(values[start : start + lanes])
        for start in range(0, len(values), lanes)
    ]
    assert quantise.chunk_exponents(of(values), lanes).tolist() == expected


@given(blocks, WORKERS, st.integers(0, 3))
@settings(max_examples=400)
def test_integers_are_those_of_the_fractions_model(values, workers, larger_elsewhere):
    exponent = min(254, quantise_model.chunk_exponent(values) + larger_elsewhere)
    expected = [quantise_model.quantise(value, exponent, workers) for value in values]
    agreed = exponents_of(exponent)
    assert quantise.quantise(of(values), agreed, workers, 9).tolist() == expected
    wire = np.empty(len(values), ">i4")
    quantise.quantise(of(values), agreed, workers, 9, out=wire)
    assert wire.tobytes() == struct.pack(f"!{len(values)}i", *expected)


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=9),
    st.integers(0, 254),
    WORKERS,
)
@settings(max_examples=400)
def test_sums_turn_into_the_nearest_float(sums, exponent, workers):
    expected = of([quantise_model.dequantise(total, exponent, workers) for total in sums])
    agreed = exponents_of(exponent)
    native = quantise.dequantise(np.array(sums, np.int32), agreed, workers, 9)
    np.testing.assert_array_equal(native, expected)
    np.testing.assert_array_equal(
        quantise.dequantise(np.array(sums, ">i4"), agreed, workers, 9), expected
    )


@pytest.mark.long
@given(st.data(), st.integers(1, 64))
@settings(max_examples=300)
def test_sums_fit_int32_and_the_result_is_within_the_bound(data, workers):
    shape = st.lists(any_float, min_size=3, max_size=3)
    inputs = data.draw(st.lists(shape, min_size=workers, max_size=workers))
    agreed = exponents_of(max(quantise_model.chunk_exponent(values) for values in inputs))
    integers = [quantise.quantise(of(values), agreed, workers, 3) for values in inputs]
    totals = [sum(map(int, column)) for column in zip(*integers, strict=True)]
    assert all(-(2**31) <= total < 2**31 for total in totals)
    results = quantise.dequantise(np.array(totals, np.int32), agreed, workers, 3)
    bound = Fraction(float(quantise.error_bound(agreed, workers)[0]))
    for column, result in zip(zip(*inputs, strict=True), results.tolist(), strict=True):
        exact = sum(map(Fraction, column))
        if math.isfinite(result):
            assert abs(exact - Fraction(result)) <= bound
        else:
            assert abs(exact) + bound > Fraction(MAX)


def largest_below(power):
    """The largest float32 below a power of two."""
    return float(np.nextafter(np.float32(power), np.float32(0)))


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 64, 129, 256, 257, 4096])
def test_the_largest_value_of_every_binade_never_overflows_the_sum(workers):
    for exponent in range(255):
        value = largest_below(2.0 ** (max(exponent, 1) - 126)) if exponent < 254 else MAX
        agreed = exponents_of(exponent)
        (integer,) = quantise.quantise(of([value]), agreed, workers, 1).tolist()
        (negative,) = quantise.quantise(of([-value]), agreed, workers, 1).tolist()
        assert negative == -integer
        assert 0 < workers * integer < 2**31
        assert workers * (integer + 2) > 2**30 // 2


def test_the_bound_allows_for_everybody_rounding_or_clamping_the_same_way():
    workers, unit = 2**20, 2.0**-10
    agreed = exponents_of(127)
    (half,) = quantise.quantise(of([unit / 2]), agreed, workers, 1).tolist()
    (clamped,) = quantise.quantise(of([largest_below(2)]), agreed, workers, 1).tolist()
    assert (half, clamped) == (0, 2**11 - 1)
    (bound,) = quantise.error_bound(agreed, workers)
    assert workers * unit / 2 < bound
    assert workers * (largest_below(2) - clamped * unit) < bound < 1.01 * workers * unit


@pytest.mark.parametrize("workers", [256, 511, 512, 513])
def test_the_bound_holds_from_the_first_number_of_workers_that_clamps(workers):
    """With 22 bits or fewer, the largest float below 1 is rounded up to 1 and clamped."""
    agreed, unit, value = exponents_of(126), 2.0 ** -quantise.value_bits(workers), largest_below(1)
    (integer,) = quantise.quantise(of([value]), agreed, workers, 1).tolist()
    assert (value - integer * unit > unit / 2) == (workers > 256)
    sums = np.array([workers * integer], np.int32)
    (result,) = quantise.dequantise(sums, agreed, workers, 1).tolist()
    assert abs(workers * value - result) <= quantise.error_bound(agreed, workers)[0]


def test_value_bits_leave_room_for_all_workers():
    assert [quantise.value_bits(n) for n in (1, 2, 3, 4, 5, 8, 9, 64)] == [
        31,
        30,
        29,
        29,
        28,
        28,
        27,
        25,
    ]
    for workers in range(1, 2000):
        bits = quantise.value_bits(workers)
        assert bits == quantise_model.bits_of(workers)
        assert workers * (2**bits - 1) < 2**31


@pytest.mark.parametrize("workers", [0, -1, 2**30 + 1])
def test_impossible_numbers_of_workers_are_refused(workers):
    with pytest.raises(ValueError, match=f"workers is {workers}"):
        quantise.value_bits(workers)


@pytest.mark.parametrize(
    ("block", "exponent"),
    [
        ([0.0, -0.0], 0),
        ([TINY, -TINY], 0),
        ([NORMAL - TINY], 0),
        ([NORMAL], 1),
        ([1.0, -1.5], 127),
        ([MAX, -1.0], 254),
        ([math.inf, 0.0], 255),
        ([0.0, -math.inf], 255),
        ([math.nan], 255),
        ([-math.nan, 1.0], 255),
    ],
)
def test_exponents_of_special_blocks(block, exponent):
    assert quantise.chunk_exponents(of(block), 2).tolist() == [exponent]


def test_zero_blocks_stay_zero_also_at_the_exponent_of_others():
    for exponent in range(256):
        agreed = exponents_of(exponent)
        integers = quantise.quantise(of([0.0, -0.0]), agreed, 4, 2)
        assert integers.tolist() == [0, 0]
        assert quantise.dequantise(integers, agreed, 4, 2).tolist() == [0, 0]


def test_denormals_come_back_exactly_when_nothing_larger_is_in_the_chunk():
    values = of([TINY, -3 * TINY, NORMAL - TINY, NORMAL])
    agreed = quantise.chunk_exponents(values, 4)
    integers = quantise.quantise(values, agreed, 1, 4)
    np.testing.assert_array_equal(quantise.dequantise(integers, agreed, 1, 4), values)


def test_the_largest_floats_come_back_and_their_sum_is_infinite():
    values = of([MAX, -MAX])
    agreed = quantise.chunk_exponents(values, 2)
    integers = quantise.quantise(values, agreed, 2, 2)
    np.testing.assert_array_equal(quantise.dequantise(integers, agreed, 2, 2), values)
    assert quantise.dequantise(2 * integers, agreed, 2, 2).tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_chunk_with_inf_or_nan_becomes_zeros_and_its_neighbours_do_not(bad):
    values = of([1, 2, 3, bad, 5, 6])
    agreed = quantise.chunk_exponents(values, 2)
    assert agreed.tolist() == [128, 255, 129]
    integers = quantise.quantise(values, agreed, 1, 2)
    assert (integers != 0).tolist() == [True, True, False, False, True, True]
    assert quantise.first_not_finite(values) == 3
    assert quantise.first_not_finite(values[:3]) is None


def test_an_agreed_exponent_below_the_own_clamps():
    limit = 2**29 - 1
    integers = quantise.quantise(of([1000, -1000, 2**-10]), exponents_of(120), 4, 3)
    assert integers.tolist() == [limit, -limit, 2**25]


@pytest.mark.parametrize("elements", [0, 1, 7, 8, 9, 1000, 1003])
@pytest.mark.parametrize("lanes", [1, 8, 256])
def test_short_last_chunks_and_given_buffers(elements, lanes):
    values = of(np.random.default_rng(elements).standard_normal(elements))
    chunks = -(-elements // lanes)
    agreed = np.empty(chunks, np.uint8)
    assert quantise.chunk_exponents(values, lanes, out=agreed) is agreed
    out, back = np.empty(elements, np.int32), np.empty(elements, np.float32)
    assert quantise.quantise(values, agreed, 1, lanes, out=out) is out
    assert quantise.dequantise(out, agreed, 1, lanes, out=back) is back
    bound = np.repeat(quantise.error_bound(agreed, 1), lanes)[:elements]
    assert (np.abs(back.astype(np.float64) - values) <= bound).all()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: quantise.chunk_exponents(np.zeros(3), 2), TypeError),
        (lambda: quantise.chunk_exponents(of([[1, 2]]), 2), ValueError),
        (lambda: quantise.chunk_exponents(of(range(6))[::2], 2), ValueError),
        (lambda: quantise.chunk_exponents(of([1]), 2, out=exponents_of(1, 2)), ValueError),
        (lambda: quantise.quantise(of([1, 2, 3]), exponents_of(127), 1, 2), ValueError),
        (lambda: quantise.quantise(of([1]), np.array([127]), 1, 2), TypeError),
        (lambda: quantise.quantise(of([1]), exponents_of(1), 1, 1, out=of([1])), TypeError),
        (lambda: quantise.dequantise(of([1]), exponents_of(127), 1, 2), TypeError),
    ],
)
def test_arguments_that_do_not_fit_are_errors(call, error):
    with pytest.raises(error):
        call()


def test_overlapping_buffers_are_refused():
    values = of([1, 2])
    with pytest.raises(ValueError, match="overlap"):
        quantise.quantise(values, exponents_of(128), 1, 2, out=values.view(np.int32))

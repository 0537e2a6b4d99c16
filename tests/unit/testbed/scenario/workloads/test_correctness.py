"""The independent sums, against a model of docs/protocol.md in exact rational arithmetic."""

import struct
import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agglab.testbed.base import processors
from agglab.testbed.scenario import load
from agglab.testbed.scenario.workloads import correctness as checker
from agglab.testbed.scenario.workloads.correctness import (
    BLOCK_ELEMENTS,
    Verdict,
    WrongValue,
    all_exact,
    combine,
)
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.systems.summing.truth import SAMPLE, quantise_bits, truth_of

LANES = 4


def judged(tensors, received, lanes=LANES, combine_values=None, threads=1) -> Verdict:
    """With whole tensors at hand."""
    dtype = str(tensors[0].dtype)
    return checker.verify(
        lambda start, n: [t[start : start + n] for t in tensors],
        truth_of(dtype, lanes, combine_values),
        received,
        tensors[0].size,
        dtype,
        lanes,
        with_sums=dtype == "float32",
        threads=threads,
    )


def dequantised(tensors, sums, lanes) -> np.ndarray:
    """sum / scale, rounded once to float32."""
    bits = quantise_bits(len(tensors))
    values = []
    for i, value in enumerate(sums.tolist()):
        chunk = slice(i // lanes * lanes, (i // lanes + 1) * lanes)
        e = max(1, *(exponent_field(float(x)) for t in tensors for x in t[chunk]))
        values.append(np.float32(float(value) * 2.0 ** ((e - 126) - bits)))
    return np.array(values, np.float32)


def verify(tensors, sums, lanes) -> Verdict:
    """Of workers that made the right floats of these sums."""
    if tensors[0].dtype == np.int32:
        return judged(tensors, [Received(s) for s in sums], lanes)
    return judged(tensors, [Received(dequantised(tensors, s, lanes), s) for s in sums], lanes)


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
    assert verdict.right
    place = data.draw(st.integers(0, elements - 1))
    wrong = sums.copy()
    wrong[place] ^= 1
    received = [sums] * (workers - 1) + [wrong]
    verdict = verify(inputs, received, LANES)
    assert verdict.wrong_sums == 1 and not verdict.exact and not verdict.right
    first = verdict.first
    assert (first.what, first.rank, first.index) == ("sum", workers - 1, place)
    assert (first.expected, first.got) == (sums[place], wrong[place])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=7, max_size=7), min_size=1))
def test_integer_sums_wrap(rows: list[list[int]]) -> None:
    expected = [(sum(column) + 2**31) % 2**32 - 2**31 for column in zip(*rows, strict=True)]
    inputs = [np.array(row, np.int32) for row in rows]
    good = [np.array(expected, np.int32)] * len(rows)
    verdict = verify(inputs, good, LANES)
    assert verdict.exact
    assert (verdict.max_abs, verdict.bound, verdict.wrong_results) == (None, None, 0)
    bad = [*good[1:], good[0] + np.arange(7, dtype=np.int32)]
    verdict = verify(inputs, bad, LANES)
    assert (verdict.wrong_sums, verdict.wrong_results) == (6, 6)


def test_blocks_are_joined_at_the_right_place() -> None:
    elements = 2 * BLOCK_ELEMENTS + 17
    inputs = [np.arange(elements, dtype=np.int32) * k for k in (1, 7)]
    received = [inputs[0] + inputs[1] for _ in inputs]
    assert verify(inputs, received, 5).exact
    place = BLOCK_ELEMENTS + 3
    received[1][place] += 1
    first = verify(inputs, received, 5).first
    assert (first.rank, first.index) == (1, place)


@pytest.mark.parametrize(
    ("array", "got"),
    [
        (np.zeros(9, np.int32), "int32 of 9"),
        (np.zeros(10, np.int64), "int64 of 10"),
        (np.zeros((2, 5), np.int32), "int32 of 2 x 5"),
        (None, "nothing"),
    ],
)
def test_sums_of_another_shape_are_all_wrong(array: np.ndarray | None, got: str) -> None:
    inputs = [np.zeros(10, np.float32)] * 2
    good = Received(np.zeros(10, np.float32), np.zeros(10, np.int32))
    verdict = judged(inputs, [good, Received(good.result, array)])
    assert (verdict.wrong_sums, verdict.wrong_results) == (10, 0)
    assert verdict.first == WrongValue("sum", 1, None, "int32 of 10", got)


@pytest.mark.parametrize(
    ("array", "got"),
    [
        (np.zeros(9, np.float32), "float32 of 9"),
        (np.zeros(10, np.float64), "float64 of 10"),
        (np.zeros(10, np.int32), "int32 of 10"),
        (np.float32(0), "float32 of no dimension"),
        (None, "nothing"),
    ],
)
def test_results_of_another_shape_are_all_wrong(array: np.ndarray | None, got: str) -> None:
    inputs = [np.zeros(10, np.float32)] * 2
    good = Received(np.zeros(10, np.float32), np.zeros(10, np.int32))
    verdict = judged(inputs, [good, Received(array, good.sums)])
    assert (verdict.wrong_sums, verdict.wrong_results) == (0, 10)
    assert verdict.first == WrongValue("result", 1, None, "float32 of 10", got)
    ours = judged([np.zeros(10, np.int32)] * 2, [Received(np.zeros(10, np.int32)), Received(None)])
    assert (ours.wrong_sums, ours.wrong_results) == (10, 10)


def test_errors_are_measured_against_a_float64_sum() -> None:
    """Two workers, scale 2^30: 1/3 is off by less than half a step at each of them."""
    third = np.full(3, 1 / 3, np.float32)
    sums = np.full(3, 2 * round(float(third[0]) * 2.0 ** (30 + 1)), np.int32)
    verdict = verify([third, third], [sums, sums], LANES)
    assert verdict.exact
    exact_sum = 2 * float(third[0])
    assert verdict.max_abs == abs(float(np.float32(sums[0] / 2.0**31)) - exact_sum)
    assert 2.0**-31 <= verdict.bound < 2.0**-31 + 2.0**-24


def test_the_bound_is_that_of_the_chunk_with_the_largest_values() -> None:
    values = np.repeat(np.array([2.0**-20, 1.0, 2.0**-10], np.float32), LANES)
    sums = np.full(3 * LANES, 2**30, np.int32)
    verdict = verify([values, values], [sums, sums], LANES)
    assert verdict.right
    assert 2.0**-29 + 2.0**-23 <= verdict.bound < 2.0**-22


def gradient_round() -> tuple[list[np.ndarray], Received]:
    """Three workers, 37 floats of many sizes; sums and results as they must be."""
    random = np.random.default_rng(5)
    inputs = [
        (random.standard_normal(37) * 10.0 ** random.integers(-6, 1, 37)).astype(np.float32)
        for _ in range(3)
    ]
    sums = np.array(model_sums([x.tolist() for x in inputs], LANES), np.int32)
    return inputs, Received(dequantised(inputs, sums, LANES), sums)


def swapped(result: np.ndarray) -> None:
    result[0:4], result[4:8] = result[4:8].copy(), result[0:4].copy()


def set_at(place: int, value: float):
    def change(result: np.ndarray) -> None:
        result[place] = value

    return change


@pytest.mark.parametrize(
    "spoil",
    {
        "half as much again": lambda r: np.multiply(r, 1.5, out=r),
        "a little too much": lambda r: np.multiply(r, 1 + 1e-5, out=r, casting="same_kind"),
        "sign": lambda r: np.negative(r, out=r),
        "NaN": set_at(20, np.nan),
        "Inf": set_at(20, np.inf),
        "-Inf": set_at(20, -np.inf),
        "last element": set_at(-1, 9.0),
        "swapped chunks": swapped,
    }.items(),
    ids=lambda item: item[0],
)
@pytest.mark.parametrize("worker", [0, 2])
def test_results_are_judged_although_the_sums_are_right(spoil, worker: int) -> None:
    inputs, good = gradient_round()
    assert judged(inputs, [good] * 3).right
    bad = good.result.copy()
    spoil[1](bad)
    received = [good, good, good]
    received[worker] = Received(bad, good.sums)
    verdict = judged(inputs, received)
    assert verdict.exact and not verdict.right
    changed = np.flatnonzero(bad.view(np.int32) != good.result.view(np.int32))
    assert 0 < verdict.wrong_results <= changed.size
    first = verdict.first
    assert (first.what, first.rank) == ("result", worker) and first.index in changed
    true = sum(x.astype(np.float64) for x in inputs)[first.index]
    assert first.expected == true
    np.testing.assert_equal(np.float32(first.got), bad[first.index])
    assert not abs(first.got - true) <= first.allowed
    if not np.isfinite(bad).all():
        assert verdict.max_abs == float("inf")


@pytest.mark.parametrize("direction", [-np.inf, np.inf])
def test_the_bound_is_met_to_the_last_unit(direction: float) -> None:
    """Of each element the last float within the bound is right, and the next one is wrong."""
    inputs, good = gradient_round()
    truth = truth_of("float32", LANES)(0, inputs)
    exact = [sum(Fraction(float(x[i])) for x in inputs) for i in range(37)]
    for i in range(37):
        e = max(exponent_field(float(v)) for x in inputs for v in x[i // 4 * 4 : i // 4 * 4 + 4])
        step = Fraction(2) ** (e - 126 - quantise_bits(3))
        half_unit = Fraction(float(np.spacing(np.abs(good.result[i])))) / 2
        assert truth.allowed[i] == pytest.approx(float(3 * step / 2 + half_unit), rel=1e-6)
        edge = good.result.copy()
        while abs(Fraction(float(edge[i])) - exact[i]) <= Fraction(truth.allowed[i]):
            within = edge.copy()
            edge[i] = np.nextafter(edge[i], np.float32(direction))
        assert judged(inputs, [Received(within, good.sums)] * 3).right
        verdict = judged(inputs, [good, Received(edge, good.sums), good])
        assert verdict.wrong_results == 1
        assert (verdict.first.rank, verdict.first.index) == (1, i)


@pytest.mark.long
def test_many_workers_lose_up_to_a_step_at_the_limit() -> None:
    """1024 workers have 21 bits: the largest float is cut by 7/8 of a step, half is not enough."""
    largest = np.array([np.nextafter(np.float32(1), np.float32(0))] * 4)
    inputs = [largest] * 1024
    sums = np.array(model_sums([x.tolist() for x in inputs], LANES), np.int32)
    assert int(sums[0]) == 1024 * (2**21 - 1)
    assert verify(inputs, [sums] * 1024, LANES).right


def test_scales_follow_from_the_values_of_all_workers() -> None:
    """The largest value of the second chunk is not at one of the first workers."""
    inputs = [np.full(2 * LANES, 0.3, np.float32) for _ in range(SAMPLE + 1)]
    inputs[-1][LANES + 1] = -5.0
    sums = np.array(model_sums([x.tolist() for x in inputs], LANES), np.int32)
    assert sums[0] != sums[LANES]
    assert verify(inputs, [sums] * len(inputs), LANES).right


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_the_first_wrong_value_is_that_of_the_first_position(threads: int) -> None:
    inputs = [np.zeros(100, np.int32)] * 3
    later, sooner = np.zeros((2, 100), np.int32)
    later[60:] = 1
    sooner[40:] = 2
    verdict = judged(inputs, [Received(x) for x in (later, sooner, sooner)], threads=threads)
    assert verdict.first == WrongValue("result", 1, 40, 0, 2)


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_a_verdict_does_not_depend_on_the_number_of_threads(threads: int) -> None:
    inputs, good = gradient_round()
    bad = Received(good.result.copy(), good.sums.copy())
    for place in (3, 17, 36):
        bad.sums[place] += 1
        bad.result[place] = np.nan
    verdict = judged(inputs, [good, bad, good])
    assert (verdict.wrong_sums, verdict.wrong_results, verdict.first.index) == (3, 3, 3)
    assert judged(inputs, [good, bad, good], threads=threads) == verdict


def test_an_array_given_for_the_result_is_judged_too() -> None:
    inputs, good = gradient_round()
    stale = np.zeros_like(good.result)
    verdict = judged(inputs, [good, Received(good.result, good.sums, stale), good])
    assert verdict.wrong_results > 30
    assert (verdict.first.what, verdict.first.rank, verdict.first.got) == ("out", 1, 0.0)
    whole = [np.ones(4, np.int32)] * 2
    verdict = judged(whole, [Received(whole[0] * 2, out=whole[0]), Received(whole[0] * 2)])
    assert (verdict.wrong_sums, verdict.wrong_results) == (0, 4)


def test_where_nothing_was_compared_nothing_is_exact() -> None:
    empty = np.zeros(0, np.int32)
    inputs = [np.arange(5, dtype=np.int32)] * 2
    assert judged([empty, empty], [Received(empty)] * 2).exact is None
    assert combine([]).exact is Verdict().exact is None
    right = judged(inputs, [Received(inputs[0] * 2)] * 2)
    assert (right.exact, right.compared) == (True, 10)
    wrong = judged(inputs, [Received(inputs[0])] * 2)
    assert (wrong.exact, wrong.compared) == (False, 10)
    assert combine([right, Verdict()]).exact is True
    assert combine([right, wrong]).exact is False
    assert judged(inputs, [Received(None)] * 2).exact is False


def test_of_several_things_one_that_was_not_compared_leaves_the_rest_open() -> None:
    assert all_exact([True, True]) is True
    assert all_exact([True, None]) is all_exact([]) is None
    assert all_exact([True, None, False]) is False


def test_rounds_are_combined() -> None:
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    good = verify([ones, ones], [np.full(4, 2**30, np.int32)] * 2, LANES)
    bad = verify([zeros, zeros], [np.full(4, 2**20, np.int32)] * 2, LANES)
    both = combine([good, bad, good])
    assert both.wrong_sums == 8
    assert (both.first.rank, both.first.index) == (0, 0)
    assert both.bound == max(good.bound, bad.bound)
    assert not both.right


def test_another_operation_is_judged_as_strictly_as_the_sum() -> None:
    tensors = [np.array([5, -9, -1, 0], np.int32), np.array([-5, -7, 3, -(2**31)], np.int32)]

    def of(received: list[int]) -> Verdict:
        results = [Received(np.array(received, np.int32))] * 2
        return judged(tensors, results, LANES, np.maximum.reduce)

    assert of([5, -7, 3, 0]).right
    first = of([5, -7, 4, 0]).first
    assert (first.rank, first.index) == (0, 2)
    halves = [np.array([0.5, -1.0], np.float32), np.array([0.25, -0.5], np.float32)]
    largest = np.array([2**28, -(2**28)], np.int32)
    made = np.array([0.5, -0.5], np.float32)
    verdict = judged(halves, [Received(made, largest)] * 2, LANES, np.maximum.reduce)
    assert verdict.right and verdict.max_abs == 0.0
    verdict = judged(halves, [Received(made * 2, largest)] * 2, LANES, np.maximum.reduce)
    assert (verdict.wrong_sums, verdict.wrong_results) == (0, 4)


def test_an_operation_that_is_no_sum_may_be_off_by_what_its_own_rounding_comes_to() -> None:
    """Nine times 1000.5 steps of one worker: rounded to 1000 first, that is 4.5 steps too few."""
    inputs = [np.full(4, 1000.5 * 2.0**-30, np.float32), np.full(4, 0.9, np.float32)]
    sums, made = np.full(4, 9000, np.int32), np.full(4, 9000 * 2.0**-30, np.float32)
    received = [Received(made, sums)] * 2
    verdict = judged(inputs, received, LANES, lambda x: 9 * x[0])
    assert verdict.right and verdict.max_abs == 4.5 * 2.0**-30
    off = Received((made * np.float32(1.002)).astype(np.float32), sums)
    assert judged(inputs, [off] * 2, LANES, lambda x: 9 * x[0]).wrong_results == 8


def test_what_several_workers_received_counts_for_each_of_them():
    inputs = [np.full(10, rank, np.int32) for rank in range(4)]
    right, wrong = np.full(10, 6, np.int32), np.full(10, 6, np.int32)
    wrong[[3, 8]] = 7
    both, one = Received(wrong), Received(right)
    verdict = judged(inputs, [one, both, one, both])
    assert (verdict.wrong_sums, verdict.wrong_results) == (4, 4)
    assert verdict.first == WrongValue("result", 1, 3, 6, 7)
    assert judged(inputs, [one] * 4).right
    nothing = Received(None)
    verdict = judged(inputs, [one, nothing, nothing, one])
    assert (verdict.wrong_sums, verdict.wrong_results) == (20, 20)
    assert verdict.first == WrongValue("result", 1, None, "int32 of 10", "nothing")


@pytest.mark.parametrize("own", [False, True])
def test_a_function_of_the_users_own_is_called_in_one_thread(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "large.yaml"
    scenario.write_text(
        "{name: large, backend: virtual, topology: {kind: rack, workers: 2}, "
        "workload: {dtype: int32, elements: 1_000_000}}"
    )
    resolved = load(scenario).points[0].resolved
    job = resolved.whole(resolved.jobs[0])
    threads = set()

    def combined(inputs: Sequence[NDArray]) -> NDArray:
        threads.add(threading.current_thread())
        return inputs[0] + inputs[1]

    monkeypatch.setattr(processors, "HOSTS_MIN", 2)
    monkeypatch.setenv(processors.VARIABLE, "2")
    zeros = np.zeros(job.job.elements, np.int32)
    asked = []

    def inputs(start: int, count: int) -> list[NDArray]:
        asked.append(threading.current_thread())
        return [zeros[start : start + count]] * 2

    received = [Received(zeros)] * 2
    assert checker.verify_sums(resolved, job, inputs, received, combined if own else None).right
    main = {threading.current_thread()}
    assert threads == (main if own else set())
    assert (set(asked) == main) == own


@pytest.mark.parametrize("largest", [np.finfo(np.float32).max, np.float32(2.0**127)])
def test_results_near_the_largest_float_have_a_bound(largest: np.float32) -> None:
    tensors = [np.full(LANES, largest, np.float32), np.zeros(LANES, np.float32)]
    right = truth_of("float32", LANES)(0, tensors)
    assert right.sums is not None and right.allowed is not None
    sums = right.sums
    exact = np.full(LANES, largest, np.float32)
    assert judged(tensors, [Received(exact, sums)] * 2).right
    assert judged(tensors, [Received(exact * np.float32(0.99), sums)] * 2).wrong_results
    assert np.isfinite(right.allowed).all()

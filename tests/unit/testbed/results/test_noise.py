"""Whether a difference is more than noise: exact where it can be, and right as often as it says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed.results.noise import EXACT_MAX, LEVEL, Interval, difference, median_interval
from agglab.testbed.results.noise import _pairs_outside as pairs_outside
from agglab.testbed.results.noise import _ratio_interval as ratio_interval
from agglab.testbed.results.noise import _slower_pairs as slower_pairs

TIMES = st.lists(st.integers(1, 20).map(float), min_size=1, max_size=5)


def by_hand(a: list[float], b: list[float]) -> float:
    """The rank-sum test as Mann and Whitney have it: how often one is the slower of a pair."""

    def u(first: list[float], second: list[float]) -> float:
        pairs = [(x > y) + (x == y) / 2 for x in first for y in second]
        return abs(sum(pairs) - len(pairs) / 2)

    every = [*a, *b]
    counted = []
    for chosen in combinations(range(len(every)), len(a)):
        rest = [every[i] for i in range(len(every)) if i not in chosen]
        counted.append(u([every[i] for i in chosen], rest) >= u(a, b))
    return sum(counted) / len(counted)


@given(TIMES, TIMES)
@settings(max_examples=60, deadline=None)
def test_p_is_that_of_all_divisions(a: list[float], b: list[float]) -> None:
    found = difference(a, b)
    assert found and found.p == pytest.approx(by_hand(a, b))
    assert found.p >= found.p_least - 1e-12
    assert found.ratio == median(b) / median(a)
    assert (found.interval is None) == (2 / comb(len(a) + len(b), len(a)) > 0.05)


def test_the_least_p_of_few_rounds() -> None:
    assert difference([1, 1.1, 1.2], [9, 9.1, 9.2]).p == pytest.approx(0.1)
    assert difference([1.0] * 3, [9.0] * 3).p_least == pytest.approx(0.1)
    assert difference([1, 2, 3, 4], [11, 12, 13, 14]).p == pytest.approx(2 / 70)


def test_many_rounds_are_drawn_and_always_alike() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 0.05, 40), rng.normal(1.1, 0.05, 40)
    found = difference(a, b)
    assert found == difference(a, b) and found.p < 0.001
    assert found.interval and found.interval.low < found.ratio < found.interval.high


def test_no_difference_is_called_impossible_by_chance() -> None:
    """Of the divisions that are drawn none may be as far apart as the one that was measured."""
    found = difference(list(range(1, 31)), list(range(101, 131)))
    assert found and found.p == found.p_least == 1 / (1 + EXACT_MAX)


@pytest.mark.parametrize("size", [3, 30])
def test_equal_samples_do_not_differ(size: int) -> None:
    """Every division is as far apart as the measured one, whether all are tried or some drawn."""
    found = difference([1.0] * size, [1.0] * size)
    assert found and (found.ratio, found.p) == (1.0, 1.0)


def test_noise_is_taken_for_a_difference_about_as_often_as_stated() -> None:
    rng = np.random.default_rng(2)
    told = [difference(rng.lognormal(0, 0.1, 6), rng.lognormal(0, 0.1, 6)).p for _ in range(200)]
    assert 0 < sum(p <= 0.05 for p in told) <= 20


Draw = Callable[[np.random.Generator, int], np.ndarray]
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(1, 0.2, n), 1.0),
    "lognormal": (lambda rng, n: rng.lognormal(0, 0.5, n), 1.0),
    "exponential": (lambda rng, n: rng.exponential(1, n), float(np.log(2))),
    "uniform": (lambda rng, n: rng.uniform(0.5, 1.5, n), 1.0),
}
"""How samples are drawn, and the median of the distribution."""
TRIES = 2000
ALLOWED = 0.95 - 3 * (0.95 * 0.05 / TRIES) ** 0.5
"""Three standard errors below the stated coverage."""


@pytest.mark.parametrize("size", [6, 7, 9, 20])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_interval_holds_the_median_as_often_as_stated(name: str, size: int) -> None:
    draw, middle = DISTRIBUTIONS[name]
    rng = np.random.default_rng(3)
    intervals = [median_interval(draw(rng, size)) for _ in range(TRIES)]
    assert not any(each.is_range for each in intervals)
    assert sum(each.low <= middle <= each.high for each in intervals) / TRIES >= ALLOWED
    outside = [each for each in intervals if not each.low <= middle <= each.high]
    assert outside, "an interval that always holds it says nothing"


@pytest.mark.parametrize("sizes", [(4, 4), (5, 8), (6, 6), (12, 9), (30, 25)])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_interval_holds_the_factor_as_often_as_stated(name: str, sizes: tuple[int, int]) -> None:
    draw, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(TRIES):
        a, b = abs(draw(rng, sizes[0])), 1.5 * abs(draw(rng, sizes[1]))
        interval = ratio_interval(a, b)
        assert interval is not None
        held += interval.low <= 1.5 <= interval.high
    assert ALLOWED <= held / TRIES < 1


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_fewer_than_six_values_have_a_range_and_no_interval(size: int) -> None:
    values = [float(value) for value in range(size)]
    assert median_interval(values[::-1]) == Interval(0.0, size - 1.0, is_range=True)


def test_the_interval_of_six_is_that_of_all_and_of_nine_leaves_out_one_at_each_end() -> None:
    assert median_interval([3, 1, 2, 6, 5, 4]) == Interval(1, 6)
    assert median_interval([*range(1, 10)]) == Interval(2, 8)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (4, 4), (3, 7)])
def test_pairs_are_counted_as_by_trying_all_divisions(a: int, b: int) -> None:
    counts = [0] * (a * b + 1)
    for chosen in combinations(range(a + b), a):
        rest = set(range(a + b)) - set(chosen)
        counts[sum(x > y for x in chosen for y in rest)] += 1
    assert list(slower_pairs(a, b)) == counts


@pytest.mark.parametrize(("a", "b"), [(20, 21), (25, 30), (6, 40), (3, 60), (2, 80)])
def test_the_interval_of_many_values_is_hardly_wider_than_the_exact_one(a: int, b: int) -> None:
    share_below = np.cumsum(slower_pairs(a, b)) / comb(a + b, a)
    exact = int(np.sum(share_below <= (1 - LEVEL) / 2)) - 1
    assert exact - 2 <= pairs_outside(a, b) <= exact


def test_samples_that_cannot_differ_by_more_than_noise_have_no_interval() -> None:
    assert difference([1, 1.1, 1.2], [9, 9.1, 9.2]).interval is None
    found = difference([1, 1, 1, 1], [2, 2, 2, 2.5])
    assert (found.ratio, found.interval) == (2, Interval(2, 2.5))


def test_what_is_no_sample_has_no_difference() -> None:
    assert difference([], [1.0]) is None and difference([1.0], []) is None
    assert difference([0.0, 0.0], [1.0]) is None
    assert median_interval([1.0]) is None

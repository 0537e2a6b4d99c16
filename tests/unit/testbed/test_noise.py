"""Whether a difference is more than noise: exact where it can be, and right as often as it says."""

from __future__ import annotations

from itertools import combinations
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed.noise import EXACT_MAX, difference, median_interval

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
    if found.interval is None:
        assert min(len(a), len(b)) == 1
    else:
        assert min(len(a), len(b)) > 1
        assert found.interval.low <= found.interval.high


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


def test_noise_is_taken_for_a_difference_about_as_often_as_stated() -> None:
    rng = np.random.default_rng(2)
    told = [difference(rng.lognormal(0, 0.1, 6), rng.lognormal(0, 0.1, 6)).p for _ in range(200)]
    assert 0 < sum(p <= 0.05 for p in told) <= 20


def test_an_interval_holds_the_median_about_as_often_as_stated() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        interval = median_interval(rng.lognormal(0, 0.2, 20))
        held += interval.low <= 1 <= interval.high
    assert 180 <= held < 200


def test_what_is_no_sample_has_no_difference() -> None:
    assert difference([], [1.0]) is None and difference([1.0], []) is None
    assert difference([0.0, 0.0], [1.0]) is None
    assert median_interval([1.0]) is None

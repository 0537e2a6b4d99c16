"""Decides whether a difference is more than noise. The rounds of a run are the sample. Random
choices are seeded, so the same rounds always give the same answer.

Two runs are compared by the rank-sum test of Wilcoxon, Mann and Whitney. The test assumes that both
have the same distribution. It asks how often a random division of all their rounds into two groups
would make the sums of ranks differ at least as much. A single delayed round hardly changes ranks.
The interval of a median, and of the ratio of two medians, is the percentile bootstrap's (Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13; cited from memory).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

DRAWS = 2000
EXACT_MAX = 10_000
"""If there are at most this many ways to divide the rounds, all are tried. Otherwise this many are
drawn at random."""
LEVEL = 0.95
SEED = 12


@dataclass(frozen=True)
class Interval:
    """The interval in which a value lies with a confidence of LEVEL."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How sample b differs from sample a. ratio: b's median divided by a's. p: the probability that
    chance makes a difference at least as large. p_least: the smallest p that samples of these sizes
    can give. interval: the interval of `ratio`; None if a sample has only one value."""

    ratio: float
    interval: Interval | None
    p: float
    p_least: float


def median_interval(sample: Sequence[float]) -> Interval | None:
    """Returns the bootstrap interval of the median; None if there are fewer than two values."""
    if len(sample) < 2:
        return None
    medians = _medians(np.asarray(sample, dtype=float), np.random.default_rng(SEED))
    return _interval(medians)


def difference(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """Returns how b differs from a; None if a sample is empty or the median of a is not
    positive."""
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if not first.size or not second.size or not np.median(first) > 0:
        return None
    rng = np.random.default_rng(SEED)
    below, above = _medians(first, rng), _medians(second, rng)
    ratios = above[below > 0] / below[below > 0]
    return Difference(
        float(np.median(second) / np.median(first)),
        _interval(ratios) if min(first.size, second.size) > 1 else None,
        _permutation(first, second, rng),
        _least(first.size, second.size),
    )


def _medians(sample: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns the medians of DRAWS samples, each drawn from this one with replacement."""
    drawn = rng.integers(0, sample.size, size=(DRAWS, sample.size))
    return np.asarray(np.median(sample[drawn], axis=1))


def _interval(values: np.ndarray) -> Interval:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high))


def _permutation(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> float:
    """Returns the two-sided p of the sum of ranks. If there are few ways to divide the values into
    two groups, all are tried. Otherwise divisions are drawn at random, and the measured division
    counts as one of them (Phipson and Smyth, 2010; cited from memory)."""
    ranks = _doubled_ranks(np.concatenate([a, b]))
    expected = a.size * (ranks.size + 1)
    measured = abs(ranks[: a.size].sum() - expected)
    if comb(ranks.size, a.size) <= EXACT_MAX:
        chosen = np.array(list(combinations(range(ranks.size), a.size)))
        return float(np.mean(abs(ranks[chosen].sum(axis=1) - expected) >= measured))
    chosen = np.argsort(rng.random((EXACT_MAX, ranks.size)), axis=1)[:, : a.size]
    far = abs(ranks[chosen].sum(axis=1) - expected) >= measured
    return float((1 + np.sum(far)) / (1 + EXACT_MAX))


def _doubled_ranks(values: np.ndarray) -> np.ndarray:
    """Returns twice the rank of each value, counted from 1; equal values share their ranks. Twice a
    rank is a whole number, so sums can be compared for equality."""
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return np.asarray(2 * below + equal + 1)


def _least(a: int, b: int) -> float:
    """Returns the smallest possible p for samples of `a` and `b` values. If both have the same
    number, two divisions are the most extreme, because one is the mirror image of the other."""
    return max((2 if a == b else 1) / comb(a + b, a), 1 / (1 + EXACT_MAX))

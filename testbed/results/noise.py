"""Decides whether a difference is more than noise, and how well a value is known. The rounds of a
run are the sample, or the runs of several seeds. Random choices are seeded, so the same sample
always gives the same answer.

Two runs are compared by the rank-sum test of Wilcoxon, Mann and Whitney. The test assumes that both
have the same distribution. It asks how often a random division of all their rounds into two groups
would make the sums of ranks differ at least as much. A single delayed round hardly changes ranks.

Intervals hold their value in at least LEVEL of all cases, however the sample is distributed. The
interval of a median lies between two values of the sample (order statistics). That of a ratio lies
between two of the ratios of each value of one sample to each of the other. It is the interval that
belongs to the rank-sum test (Moses; Hollander and Wolfe, Nonparametric Statistical Methods, chapter
4; cited from memory), and assumes that one distribution is the other one times a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb, sqrt
from statistics import NormalDist

import numpy as np

EXACT_MAX = 10_000
"""If there are at most this many ways to divide the rounds, all are tried. Otherwise this many are
drawn at random."""
EXACT_VALUES_MAX = 40
"""The rank sum's distribution is computed exactly for at most this many values in both samples
together, and from its normal approximation for more."""
LEVEL = 0.95
LEAST = 6
"""The smallest sample with an interval of its median: with five values, the median lies between the
least and the greatest in only 94 % of all cases."""
SEED = 12


@dataclass(frozen=True)
class Interval:
    """Two bounds of a value. is_range: whether they are the least and the greatest value of a
    sample that is too small for an interval that holds the value in LEVEL of all cases."""

    low: float
    high: float
    is_range: bool = False


@dataclass(frozen=True)
class Difference:
    """How sample b differs from sample a. ratio: b's median divided by a's. p: the probability that
    chance makes a difference at least as large. p_least: the smallest p that samples of these sizes
    can give. interval: the interval of the factor between them; None if the samples are too
    small."""

    ratio: float
    interval: Interval | None
    p: float
    p_least: float


def median_interval(sample: Sequence[float]) -> Interval | None:
    """Returns the interval of the median. Of two to LEAST - 1 values, returns their range; of fewer
    than two, None."""
    if len(sample) < 2:
        return None
    ordered = sorted(map(float, sample))
    outside = _outside(len(ordered))
    if outside is None:
        return Interval(ordered[0], ordered[-1], is_range=True)
    return Interval(ordered[outside], ordered[-1 - outside])


@cache
def _outside(size: int) -> int | None:
    """Returns how many values of a sample may be left out at each end, so that the median lies
    between the others in LEVEL of all cases. Returns None if that is too much even if none is left
    out."""
    tail, left_out = 0.0, None
    for k in range(size // 2):
        tail += comb(size, k) / 2**size
        if 2 * tail > 1 - LEVEL:
            break
        left_out = k
    return left_out


def difference(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """Returns how b differs from a; None if a sample is empty or the median of a is not
    positive."""
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if not first.size or not second.size or not np.median(first) > 0:
        return None
    return Difference(
        float(np.median(second) / np.median(first)),
        _ratio_interval(first, second),
        _permutation(first, second, np.random.default_rng(SEED)),
        _least(first.size, second.size),
    )


def _ratio_interval(a: np.ndarray, b: np.ndarray) -> Interval | None:
    """Returns the interval of the factor by which b's distribution differs from a's; None if the
    samples are too small, or a value of a is not positive."""
    outside = _pairs_outside(*sorted((a.size, b.size)))
    if outside is None or not a.min() > 0:
        return None
    ratios = np.sort((b[:, None] / a).ravel())
    return Interval(float(ratios[outside]), float(ratios[-1 - outside]))


@cache
def _pairs_outside(few: int, many: int) -> int | None:
    """Returns how many of the ratios of all pairs may be left out at each end; None if the interval
    would be too narrow even if none is left out. few, many: the sizes of the samples."""
    pairs, tail = few * many, (1 - LEVEL) / 2
    if few + many > EXACT_VALUES_MAX:
        spread = sqrt(pairs * (few + many + 1) / 12)
        return max(0, int(pairs / 2 + NormalDist().inv_cdf(tail) * spread - 0.5))
    below = np.cumsum(_slower_pairs(few, many)) / comb(few + many, few)
    fitting = int(np.sum(below <= tail))
    return fitting - 1 if fitting else None


@cache
def _slower_pairs(a: int, b: int) -> np.ndarray:
    """Returns the number of divisions of a + b values into two groups, by the number of pairs in
    which the value of the first group is the larger one (from 0 to a * b)."""
    ways = np.zeros(a * b + 1)
    if not a or not b:
        ways[0] = 1
        return ways
    ways[b:] += _slower_pairs(a - 1, b)
    ways[: a * (b - 1) + 1] += _slower_pairs(a, b - 1)
    return ways


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

"""Whether a difference is more than noise. The rounds of a run are the sample. Every chance has a
seed, so the same rounds always get the same answer.

Two runs are compared by the rank-sum test of Wilcoxon, Mann and Whitney: if both had the same
distribution, how often would dividing all their rounds at random put the sums of ranks at least as
far apart? Ranks are not moved by one round that something held up. The interval of a median, and of
the ratio of two, is the percentile bootstrap's (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13; recalled, not looked up).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

DRAWS = 2000
EXACT_MAX = 10_000
"""Up to this number, every way of dividing the rounds is tried; beyond it, so many are drawn at
random."""
LEVEL = 0.95
SEED = 12


@dataclass(frozen=True)
class Interval:
    """Between which a figure lies, with a confidence of LEVEL."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Of two samples, b against a. ratio: of the medians, b's over a's; p: how likely a difference
    as large would be by chance; p_least: the smallest p that so few rounds can have."""

    ratio: float
    interval: Interval
    p: float
    p_least: float


def median_interval(sample: Sequence[float]) -> Interval | None:
    """Of the median, by the bootstrap; None of fewer than two values, which say nothing of it."""
    if len(sample) < 2:
        return None
    medians = _medians(np.asarray(sample, dtype=float), np.random.default_rng(SEED))
    return _interval(medians)


def difference(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """None where a sample is empty, or the median of a is not above 0."""
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if not first.size or not second.size or not np.median(first) > 0:
        return None
    rng = np.random.default_rng(SEED)
    below, above = _medians(first, rng), _medians(second, rng)
    ratios = above[below > 0] / below[below > 0]
    return Difference(
        float(np.median(second) / np.median(first)),
        _interval(ratios),
        _permutation(first, second, rng),
        _least(first.size, second.size),
    )


def _medians(sample: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Of DRAWS samples, each drawn from this one with replacement."""
    drawn = rng.integers(0, sample.size, size=(DRAWS, sample.size))
    return np.asarray(np.median(sample[drawn], axis=1))


def _interval(values: np.ndarray) -> Interval:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high))


def _permutation(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> float:
    """Two-sided p of the sum of ranks. All divisions are tried where they are few; otherwise the
    one that was measured counts as one of those drawn (Phipson and Smyth, 2010; recalled)."""
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
    """Twice the rank of each value, from 1; equal ones share theirs. Whole numbers, so that sums
    can be compared for being equal."""
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return np.asarray(2 * below + equal + 1)


def _least(a: int, b: int) -> float:
    """Of n samples each, the division as measured and its mirror image are the most extreme."""
    return max((2 if a == b else 1) / comb(a + b, a), 1 / (1 + EXACT_MAX))

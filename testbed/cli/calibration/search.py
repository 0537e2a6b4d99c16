"""Searches for the highest rate of links at which the network, not the machine, limits runs
(network-bound)."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

LOWEST_BPS, HIGHEST_BPS = 5_000_000, 10_000_000_000
STEP = 2.0
NEAR = 1.1
"""The precision of the search. It stops when a run at this multiple of the answer, or a lower one,
was not network-bound."""


def highest(carries: Callable[[int], bool], begin_bps: int) -> int | None:
    """Returns the highest rate at which runs are network-bound, in bits per second and to within 10
    %; None if even the lowest rate is too high.

    carries: a function that returns whether a run at a rate is network-bound. If a run at a rate
    was not, no higher rate is tried.
    """
    low = high = _within(begin_bps)
    if carries(low):
        while high < HIGHEST_BPS:
            high = _within(round(high * STEP))
            if not carries(high):
                return _between(carries, low, high)
            low = high
        return low
    while low > LOWEST_BPS:
        high, low = low, _within(round(low / STEP))
        if carries(low):
            return _between(carries, low, high)
    return None


def _between(carries: Callable[[int], bool], low: int, high: int) -> int:
    """Returns the highest rate between `low`, which can be carried, and `high`, which cannot."""
    while high / low > NEAR:
        middle = round(sqrt(low * high))
        if carries(middle):
            low = middle
        else:
            high = middle
    return low


def _within(rate_bps: int) -> int:
    return min(HIGHEST_BPS, max(LOWEST_BPS, rate_bps))

"""Computes which float32 sums are possible if the order of additions is not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agglab.testbed.systems.base import Array, Truth

FLOAT32_UNIT, FLOAT64_UNIT = 2.0**-24, 2.0**-53
"""The largest relative error of one rounding."""


def any_order(inputs: Sequence[Array]) -> Truth:
    """Returns the float64 sum of n float32 values, and how far from it a float32 sum in any order
    may be.

    n - 1 additions, each of which is rounded, have an error of at most g(n - 1) times the sum of
    the magnitudes. Here g(k) = k u / (1 - k u) and u = 2^-24 (Higham, "Accuracy and Stability of
    Numerical Algorithms", section 4.2). The float64 sum has an error of the same form, with u =
    2^-53. Additions that underflow have no error.
    """
    values = np.zeros(inputs[0].size, np.float64)
    magnitudes = np.zeros_like(values)
    for each in inputs:
        values += each
        magnitudes += np.abs(each)
    additions = len(inputs) - 1
    share = _share(additions, FLOAT32_UNIT) + _share(additions, FLOAT64_UNIT)
    return Truth(values, magnitudes * share)


def _share(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)

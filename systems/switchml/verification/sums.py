"""Computes what a round must return, from all inputs at once, with nothing but the arithmetic of
docs/protocol.md."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

NOT_FINITE = 255


def expected(inputs: Sequence[NDArray], lanes: int) -> tuple[NDArray, NDArray]:
    """Returns the integer sums (int32), and what every caller receives. For a float32 chunk with
    Inf or NaN, both are zeros."""
    if inputs[0].dtype == np.int32:
        exact = np.sum([each.astype(np.int64) for each in inputs], axis=0)
        sums = (exact & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        return sums, sums
    bits = 31 - ceil(log2(len(inputs)))
    largest = np.max([_exponents(each, lanes) for each in inputs], axis=0)
    finite = np.repeat(largest != NOT_FINITE, lanes)[: inputs[0].size]
    shift = np.repeat(bits - (np.maximum(largest, 1) - 126), lanes)[: inputs[0].size]
    limit = 2**bits - 1
    total = np.zeros(inputs[0].size)
    for each in inputs:
        values = np.where(finite, each, 0).astype(np.float64)
        total += np.clip(np.rint(np.ldexp(values, shift)), -limit, limit)
    with np.errstate(over="ignore"):
        floats = np.ldexp(total, -shift).astype(np.float32)
    return total.astype(np.int32), floats


def _exponents(values: NDArray, lanes: int) -> NDArray[np.int64]:
    fields = (values.view(np.uint32) >> 23 & 0xFF).astype(np.int64)
    fields = np.pad(fields, (0, -values.size % lanes))
    return fields.reshape(-1, lanes).max(axis=1)

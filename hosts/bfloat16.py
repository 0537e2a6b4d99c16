"""bfloat16, a type that NumPy lacks: float32 without its lower 16 bits. An array of bfloat16 is a
structured array whose one field has the bits, so that nobody takes it for an array of integers.

    values = narrowed(np.float32([0.1, 2.0]))    # an array of dtype BFLOAT16
    widened(values)                              # float32: [0.10009766, 2.0]

This module imports only NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

NAME = "bfloat16"
BFLOAT16 = np.dtype([(NAME, np.uint16)])
"""The dtype of bfloat16 values, in native byte order. `array[NAME]` are their bits."""
QUIET = 0x0040
"""The bit of a NaN's fraction that narrowing sets, so that no NaN becomes Inf."""


def dtype_of(given: DTypeLike) -> np.dtype:
    """Returns the dtype that is given, or the one with the given name: `bfloat16`, or a name that
    NumPy knows."""
    return BFLOAT16 if given == NAME else np.dtype(given)


def name_of(dtype: np.dtype) -> str:
    """Returns the name of a dtype, for messages and comparisons."""
    return NAME if dtype == BFLOAT16 else str(dtype)


def narrowed(values: NDArray[np.float32]) -> NDArray[np.void]:
    """Returns the bfloat16 nearest to each float32, of the same shape. Of two that are equally
    near, it is the one with an even fraction. What rounds to 2^128 becomes Inf."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    kept = np.where(np.isnan(values), bits >> 16 | QUIET, rounded)
    return kept.astype(np.uint16).view(BFLOAT16)


def widened(values: NDArray[np.void]) -> NDArray[np.float32]:
    """Returns the same numbers as float32, of the same shape."""
    return (values[NAME].astype(np.uint32) << 16).view(np.float32)


def cast(values: NDArray, dtype: np.dtype) -> NDArray:
    """Returns an array of numbers as this dtype. For BFLOAT16 the numbers are rounded to float32
    before."""
    if dtype == BFLOAT16:
        return narrowed(np.ascontiguousarray(values, np.float32))
    return values.astype(dtype)


def numbers(values: NDArray) -> NDArray:
    """Returns an array with which one can compute: bfloat16 as float32, others as they are."""
    return widened(values) if values.dtype == BFLOAT16 else values

"""Conversion between float32 and int32 by multiplication with powers of two on which all workers
agree. docs/protocol.md describes it under "Integers and floats".

An array is cut into chunks of `lanes` values; the last chunk may be shorter. Each chunk has one
exponent, the largest IEEE-754 exponent field of its values. Each function makes one pass over the
array, in C.

Special chunks are treated as follows:
- All values are zero: the exponent is 0 and is treated as 1. Integers and sums are 0.
- Denormal values: the exponent is 0 and is treated as 1. The values are scaled like others; none
  is flushed to zero.
- Largest floats: the exponent is 254. The values can be quantised. A sum beyond the range of
  float32 is Inf here and an error in `all_reduce`.
- Inf or NaN: the exponent is 255. The chunk becomes zeros, and `all_reduce` raises an error that
  names the chunk and the index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library

EXPONENT_NOT_FINITE = 255
MAX_WORKERS = 1 << 30


def value_bits(workers: int) -> int:
    """Returns the number b of the protocol: integers are from -(2^b - 1) to 2^b - 1, so that the
    sum of `workers` integers fits int32."""
    if not 1 <= workers <= MAX_WORKERS:
        raise ValueError(f"workers is {workers}; it must be 1 to {MAX_WORKERS}")
    return 31 - (workers - 1).bit_length()


def scale_log2(exponents: NDArray[np.uint8] | int, workers: int) -> NDArray[np.int64]:
    """Returns, for each exponent, the base-2 logarithm of the factor by which floats are multiplied
    to get integers."""
    fields = np.maximum(np.asarray(exponents, np.int64), 1)
    return value_bits(workers) - (fields - 126)


def chunks_of(elements: int, lanes: int) -> int:
    """Returns the number of chunks of an array of `elements` values."""
    return -(-elements // lanes)


def chunk_exponents(
    values: NDArray[np.float32], lanes: int, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Returns the largest exponent field in each chunk of a flat array: uint8, of shape
    (chunks,)."""
    _check("values", values, np.float32)
    exponents = _room("out", out, chunks_of(values.size, lanes), np.uint8)
    library.load().quantise_exponents(values.ctypes.data, values.size, lanes, exponents.ctypes.data)
    return exponents


def quantise(
    values: NDArray[np.float32],
    exponents: NDArray[np.uint8],
    workers: int,
    lanes: int,
    out: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """Returns rint(value * scale) of each value of a flat array, clamped to +-(2^b - 1).

    `exponents` holds the agreed exponent of each chunk. `out` takes the result. It is int32, or
    `>i4` for the byte order of the wire, and must not overlap `values`.
    """
    _check("values", values, np.float32)
    _check_exponents(exponents, values.size, lanes)
    integers = _room("out", out, values.size, np.int32, ">i4")
    _check_apart(values, integers)
    library.load().quantise_array(
        values.ctypes.data,
        values.size,
        lanes,
        exponents.ctypes.data,
        value_bits(workers),
        integers.ctypes.data,
        not integers.dtype.isnative,
    )
    return integers


def dequantise(
    sums: NDArray[np.int32],
    exponents: NDArray[np.uint8],
    workers: int,
    lanes: int,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Returns sum / scale for each value of a flat array, rounded once to float32. `sums` is int32
    or `>i4`."""
    _check("sums", sums, np.int32, ">i4")
    _check_exponents(exponents, sums.size, lanes)
    values = _room("out", out, sums.size, np.float32)
    _check_apart(sums, values)
    library.load().dequantise_array(
        sums.ctypes.data,
        sums.size,
        lanes,
        exponents.ctypes.data,
        value_bits(workers),
        values.ctypes.data,
        not sums.dtype.isnative,
    )
    return values


def error_bound(exponents: NDArray[np.uint8], workers: int) -> NDArray[np.float64]:
    """Returns, for each chunk, an upper bound on the distance of a float32 result from the exact
    sum.

    Each worker rounds to the nearest integer, which is off by at most half a unit. With 22 or fewer
    bits, a value can round up to 2^b, which is clamped; then it is off by at most a whole unit.
    Rounding the result to float32 adds at most half a last place of the largest sum.
    """
    bits = value_bits(workers)
    unit = np.exp2(-scale_log2(exponents, workers).astype(np.float64))
    quantisation = workers * unit * (0.5 if bits > 22 else 1.0)
    largest_sum = workers * (2.0**bits - 1) * unit
    return quantisation + np.maximum(largest_sum * 2.0**-24, 2.0**-150)


def first_not_finite(values: NDArray[np.float32]) -> int | None:
    """Returns the flat index of the first Inf or NaN, or None."""
    found = np.flatnonzero(~np.isfinite(values))
    return int(found[0]) if found.size else None


def _check(name: str, array: NDArray[np.generic], *dtypes: np.dtype | type | str) -> None:
    if array.dtype not in [np.dtype(dtype) for dtype in dtypes]:
        raise TypeError(f"{name} has dtype {array.dtype}; expected {np.dtype(dtypes[0])}")
    if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"{name} must be flat, contiguous and aligned")


def _check_exponents(exponents: NDArray[np.uint8], elements: int, lanes: int) -> None:
    _check("exponents", exponents, np.uint8)
    if exponents.size != chunks_of(elements, lanes):
        raise ValueError(
            f"exponents has {exponents.size} elements; it must have one for each of the"
            f" {chunks_of(elements, lanes)} chunks of {lanes} lanes"
        )


def _check_apart(source: NDArray[np.generic], out: NDArray[np.generic]) -> None:
    if np.may_share_memory(source, out):
        raise ValueError("out must not overlap the input")


def _room(name: str, out: NDArray | None, elements: int, *dtypes: np.dtype | type | str) -> NDArray:
    if out is None:
        return np.empty(elements, dtypes[0])
    _check(name, out, *dtypes)
    if out.size != elements:
        raise ValueError(f"{name} has {out.size} elements; expected {elements}")
    return out

"""Computes a round's correct sums and results, from nothing but the inputs and docs/protocol.md.

It deliberately shares no code with hosts/quantise.py, nor does native/sums.c with the C code of
workers and switches: two implementations of the same text check each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

import numpy as np

from agglab.testbed.systems.base import Array, Combine, Truth, TruthOf, as_int32
from agglab.testbed.systems.summing.native import FloatSums

FLOAT64_SLACK = 1 + 2.0**-21
"""A factor for the error of the float64 sum. The sum of n integers of 31 bits is off by at most n *
2^-22 of a step, and n/2 steps are allowed."""
BELOW_MAX = np.nextafter(np.finfo(np.float32).max, np.float32(0))
"""The second largest float32, up to which `numpy.spacing` is finite."""
SAMPLE = 16
"""The number of workers from whose values the scales of all are guessed."""


def truth_of(dtype: str, lanes: int, combine: Combine | None = None) -> TruthOf:
    """Returns the truth (see RightResults). The first element of a block must be the first of a
    chunk."""
    make = _float_truth if dtype == "float32" else _integer_truth
    return lambda start, inputs: make(inputs, lanes, combine)


def quantise_bits(workers: int) -> int:
    """Returns b of docs/protocol.md. Integers are within +-(2^b - 1), so that their sum fits into
    int32."""
    return 31 - ceil(log2(workers))


def _sum(inputs: Sequence[Array]) -> Array:
    """Returns the sum of the workers' integers, as int64. Workers are added one after the other, so
    that memory does not grow with their number."""
    total = np.zeros(inputs[0].size, np.int64)
    for x in inputs:
        total += x
    return total


def _integer_truth(inputs: Sequence[Array], lanes: int, combine: Combine | None) -> Truth:
    total = _sum(inputs) if combine is None else combine([x.astype(np.int64) for x in inputs])
    return Truth(as_int32(total))


def _float_truth(inputs: Sequence[Array], lanes: int, combine: Combine | None) -> Truth:
    """Returns the truth for float32. Each worker may be off by one rounding step, or by its effect
    if the switch does not add. The result may also be off by half a unit in the last place, for its
    own rounding."""
    workers = len(inputs)
    bits = quantise_bits(workers)
    if combine is None:
        sums = _sums(inputs, lanes, bits)
        total, values = sums.total, sums.values
        rounding = workers * _step_error(workers) / sums.scale
    else:
        scale = _of_elements(chunk_scales(inputs, lanes, bits), lanes, inputs[0].size)
        wide = [x.astype(np.float64) for x in inputs]
        limit = _limit(bits)
        total = combine([np.clip(np.rint(x * scale), -limit, limit) for x in wide])
        values = combine(wide)
        rounding = np.abs(total / scale - values)
    allowed = rounding * FLOAT64_SLACK + half_unit(np.abs(values) + rounding)
    return Truth(values, allowed, total.astype(np.int32))


def half_unit(farthest: Array) -> Array:
    """Returns how much the rounding to float32 changes values of at most these magnitudes."""
    return np.spacing(np.minimum(farthest, BELOW_MAX).astype(np.float32)).astype(np.float64) / 2


def _sums(inputs: Sequence[Array], lanes: int, bits: int) -> FloatSums:
    """Returns the sums of the workers' integers and of their values. The scales are guessed, so
    that the inputs are mostly made once: they are added again if other scales were right."""
    right = chunk_scales(inputs[:SAMPLE], lanes, bits)
    while True:
        scales = right
        sums = FloatSums(_of_elements(scales, lanes, inputs[0].size), _limit(bits))
        for x in inputs:
            sums.add(x)
        right = _scales(sums.largest, lanes, bits)
        if np.array_equal(scales, right):
            return sums


def _limit(bits: int) -> float:
    return 2.0**bits - 1


def _step_error(workers: int) -> float:
    """Returns how far a worker's scaled value can be from its integer, in steps. Usually this is
    half a step. A float32 just below 2^b (24 bits) may lose more, because integers are limited to
    2^b - 1."""
    return max(0.5, 1 - 2.0 ** (quantise_bits(workers) - 24))


def chunk_scales(inputs: Sequence[Array], lanes: int, bits: int) -> Array:
    """Returns each chunk's scale, 2^(b - (E - 126)), for integers of b bits. E is the chunk's
    largest exponent field, but at least 1."""
    size = inputs[0].size
    largest, bits_of_one = np.zeros(size, np.uint32), np.empty(size, np.uint32)
    for x in inputs:
        np.bitwise_and(x.view(np.uint32), 0x7FFFFFFF, out=bits_of_one)
        np.maximum(largest, bits_of_one, out=largest)
    return _scales(largest, lanes, bits)


def _scales(largest: Array, lanes: int, bits: int) -> Array:
    """Returns each chunk's scale. largest: the largest magnitude at each place, as the bits of a
    float32."""
    fields = np.zeros(-(-largest.size // lanes) * lanes, np.int64)
    fields[: largest.size] = largest >> 23
    of_chunks = np.maximum(fields.reshape(-1, lanes).max(axis=1), 1)
    return np.ldexp(1.0, bits - (of_chunks - 126))


def _of_elements(of_chunks: Array, lanes: int, size: int) -> Array:
    """Returns for each of `size` elements the number that `of_chunks` has for its chunk."""
    return np.repeat(of_chunks, lanes)[:size]

"""A round's sums and results as they must be, computed from the inputs and docs/protocol.md alone.

Shares no code with hosts/quantise.py on purpose: two readings of the same text check each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isnan, log2
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agglab.testbed.received import Received

BLOCK_ELEMENTS = 1 << 16  # a block of every worker stays in the processor's cache
FLOAT64_SLACK = 1 + 2.0**-21
"""The sum of n integers of 31 bits in float64 is off by at most n * 2^-22 of a step, n/2 steps
being allowed."""
FLOAT32_MAX = float(np.finfo(np.float32).max)

Array = npt.NDArray[Any]
Inputs = Callable[[int, int], Sequence[Array]]
"""(start, count) -> that part of each worker's tensor, all int32 or all float32."""
Combine = Callable[[Sequence[Array]], Array]
"""What a switch that does not add makes of the workers' values, element by element."""


@dataclass(frozen=True)
class Wrong:
    """One place where an array is wrong. what: `sum`, `result` or `out`.

    rank: place in the sequence that was judged. index: None where the whole array is missing, or of
    another dtype or shape, which `expected` and `got` then describe. allowed: how far from
    `expected` a float32 may be; None where it has to be equal.
    """

    what: str
    rank: int
    index: int | None
    expected: float | int | str
    got: float | int | str
    allowed: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What one round's sums and results were, over all workers.

    wrong_sums: integers that differ. wrong_results: elements of what callers received that differ
    (int32) or are farther from the float64 sum than their own bound (float32). max_abs: the largest
    distance of a float32 from the float64 sum, inf if one is no number; bound: the largest that is
    allowed anywhere. Both are None for int32.
    """

    wrong_sums: int = 0
    wrong_results: int = 0
    first: Wrong | None = None
    max_abs: float | None = None
    bound: float | None = None

    @property
    def exact(self) -> bool:
        """All integer sums are right."""
        return self.wrong_sums == 0

    @property
    def right(self) -> bool:
        """All sums are right, and all that callers received."""
        return self.wrong_sums == self.wrong_results == 0


class Judged(NamedTuple):
    """One array of one worker, or a block of it."""

    rank: int
    what: str
    array: Array


class Truth(NamedTuple):
    """Of a block: the integer sums; what callers are to receive, and within which distance (None:
    the integers themselves)."""

    integers: npt.NDArray[np.int32]
    values: Array
    allowed: Array | None


def verify(
    inputs: Inputs,
    received: Sequence[Received],
    elements: int,
    dtype: str,
    lanes: int,
    combine_values: Combine | None = None,
) -> Verdict:
    """Judge what the workers of one round received, a block at a time.

    elements, dtype: of every worker's tensor, int32 or float32. combine_values: instead of the sum.
    """
    arrays, parts = _fitting(received, elements, dtype)
    step = max(1, BLOCK_ELEMENTS // lanes) * lanes
    for start in range(0, elements, step):
        block = inputs(start, min(step, elements - start))
        truth = (_float_truth if dtype == "float32" else _integer_truth)(
            block, lanes, combine_values
        )
        cut = [Judged(rank, what, a[start : start + step]) for rank, what, a in arrays]
        parts.append(_shifted(_judge(cut, truth), start))
    return combine(parts)


def combine(parts: Sequence[Verdict]) -> Verdict:
    """One verdict over blocks, or over rounds."""
    return Verdict(
        sum(part.wrong_sums for part in parts),
        sum(part.wrong_results for part in parts),
        next((part.first for part in parts if part.first), None),
        max((part.max_abs for part in parts if part.max_abs is not None), default=None),
        max((part.bound for part in parts if part.bound is not None), default=None),
    )


def quantise_bits(workers: int) -> int:
    """b of docs/protocol.md: integers lie within +-(2^b - 1), so that the sum fits int32."""
    return 31 - ceil(log2(workers))


def _fitting(
    received: Sequence[Received], elements: int, dtype: str
) -> tuple[list[Judged], list[Verdict]]:
    """The arrays that can be compared, and a verdict of each that cannot: all of it is wrong."""
    arrays, misfits = [], []
    for rank, one in enumerate(received):
        for what, array in one.claims(dtype):
            wanted = np.dtype("int32" if what == "sum" else dtype)
            if array is not None and (array.dtype, array.shape) == (wanted, (elements,)):
                arrays.append(Judged(rank, what, array))
                continue
            expected, got = f"{wanted} of {elements}", _described(array)
            first = Wrong(what, rank, None, expected, got)
            misfits.append(_wrong(what, elements, first, dtype == "int32"))
    return arrays, misfits


def _described(array: Array | None) -> str:
    if array is None:
        return "nothing"
    return f"{array.dtype} of {' x '.join(map(str, array.shape)) or 'no dimension'}"


def _wrong(what: str, count: int, first: Wrong, result_is_sum: bool) -> Verdict:
    sums = count if what == "sum" or (result_is_sum and what == "result") else 0
    return Verdict(sums, 0 if what == "sum" else count, first)


def _sum(inputs: Sequence[Array]) -> Array:
    total = np.zeros_like(inputs[0])
    for x in inputs:
        total += x
    return total


def _integer_truth(inputs: Sequence[Array], lanes: int, combine_values: Combine | None) -> Truth:
    total = (combine_values or _sum)([x.astype(np.int64) for x in inputs])
    sums = (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return Truth(sums, sums, None)


def _float_truth(inputs: Sequence[Array], lanes: int, combine_values: Combine | None) -> Truth:
    """Allowed are a step of rounding at each worker, or what rounding comes to where the switch
    does not add, and half a unit in the last place for the result's own rounding."""
    workers = len(inputs)
    scale = np.repeat(_scales(inputs, lanes), lanes)[: inputs[0].size]
    limit = 2.0 ** quantise_bits(workers) - 1
    wide = [x.astype(np.float64) for x in inputs]
    merge = combine_values or _sum
    total = merge([np.clip(np.rint(x * scale), -limit, limit) for x in wide])
    values = merge(wide)
    if combine_values is None:
        rounding = workers * _step_error(workers) / scale
    else:
        rounding = np.abs(total / scale - values)
    farthest = np.minimum(np.abs(values) + rounding, FLOAT32_MAX).astype(np.float32)
    half_unit = np.spacing(farthest).astype(np.float64) / 2
    return Truth(total.astype(np.int32), values, rounding * FLOAT64_SLACK + half_unit)


def _step_error(workers: int) -> float:
    """How far from its integer, in steps, a worker's scaled value can be: half a step; or, of a
    float32 just below 2^b (24 bits), what the limit 2^b - 1 takes away."""
    return max(0.5, 1 - 2.0 ** (quantise_bits(workers) - 24))


def _scales(inputs: Sequence[Array], lanes: int) -> Array:
    """Power of two per chunk: 2^(b - (E - 126)), E the largest exponent field, at least 1."""
    chunks = -(-inputs[0].size // lanes)
    largest = np.ones(chunks, np.int64)
    for x in inputs:
        fields = (x.view(np.uint32) >> 23) & 0xFF
        padded = np.zeros(chunks * lanes, np.uint32)
        padded[: x.size] = fields
        np.maximum(largest, padded.reshape(chunks, lanes).max(axis=1), out=largest)
    return np.ldexp(1.0, quantise_bits(len(inputs)) - (largest - 126))


def _judge(arrays: Sequence[Judged], truth: Truth) -> Verdict:
    """Workers mostly have the same bits; each different array is compared once."""
    parts: list[Verdict] = []
    seen: dict[bool, tuple[Array, Verdict]] = {}
    for one in arrays:
        is_sum = one.what == "sum"
        if is_sum not in seen or not _same_bits(seen[is_sum][0], one.array):
            seen[is_sum] = one.array, _compare(one, truth)
        verdict = seen[is_sum][1]
        if verdict.first:
            verdict = replace(verdict, first=replace(verdict.first, rank=one.rank, what=one.what))
        parts.append(verdict)
    return combine(parts)


def _same_bits(a: Array, b: Array) -> bool:
    return np.array_equal(a.view(np.uint32), b.view(np.uint32))


def _compare(one: Judged, truth: Truth) -> Verdict:
    if one.what == "sum" or truth.allowed is None:
        places = np.flatnonzero(one.array != truth.integers)
        if not places.size:
            return Verdict()
        at = int(places[0])
        first = Wrong(one.what, one.rank, at, int(truth.integers[at]), int(one.array[at]))
        return _wrong(one.what, places.size, first, truth.allowed is None)
    distance = np.abs(one.array.astype(np.float64) - truth.values)
    # Not `distance > allowed`, which no NaN is.
    places = np.flatnonzero(~(distance <= truth.allowed))
    largest = float(distance.max())
    verdict = Verdict(0, places.size, None, inf if isnan(largest) else largest)
    verdict = replace(verdict, bound=float(truth.allowed.max()))
    if not places.size:
        return verdict
    at = int(places[0])
    expected, got, allowed = (float(a[at]) for a in (truth.values, one.array, truth.allowed))
    return replace(verdict, first=Wrong(one.what, one.rank, at, expected, got, allowed))


def _shifted(verdict: Verdict, offset: int) -> Verdict:
    first = verdict.first
    if first is None or first.index is None:
        return verdict
    return replace(verdict, first=replace(first, index=first.index + offset))

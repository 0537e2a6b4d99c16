"""The sums as they must be, computed from the inputs and docs/protocol.md alone.

Shares no code with hosts/quantise.py on purpose: two readings of the same text check each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_ELEMENTS = 1 << 16  # a block of every worker stays in the processor's cache

Array = npt.NDArray[Any]
Inputs = Callable[[int, int], Sequence[Array]]
"""(start, count) -> that part of each worker's tensor, all int32 or all float32."""
Combine = Callable[[Sequence[Array]], Array]
"""What a switch that does not add makes of the workers' values, element by element."""


@dataclass(frozen=True)
class Verdict:
    """What one round's sums were. Errors are of float32 tensors only, else None.

    wrong: integer sums that differ, over all workers. first_wrong: (rank, index) of one of them.
    max_abs: largest distance of a result from the float64 sum; bound: largest that is allowed
    anywhere; within: whether each element keeps the bound of its own chunk.
    """

    wrong: int
    first_wrong: tuple[int, int] | None
    max_abs: float | None
    bound: float | None
    within: bool | None

    @property
    def exact(self) -> bool:
        return self.wrong == 0


def verify(
    inputs: Inputs, sums: Sequence[Array], lanes: int, combine_values: Combine | None = None
) -> Verdict:
    """Judge the sums that came back to the workers of one round, a block at a time.

    sums: what each worker received, int32, one-dimensional, all of the tensor's length.
    combine_values: instead of the sum.
    """
    elements = sums[0].size
    for rank, received in enumerate(sums):
        if received.shape != (elements,) or received.dtype != np.int32:
            return Verdict(elements * len(sums), (rank, 0), None, None, False)
    step = max(1, BLOCK_ELEMENTS // lanes) * lanes
    parts = []
    for start in range(0, elements, step):
        block = inputs(start, min(step, elements - start))
        judge = _judge_floats if block[0].dtype == np.float32 else _judge_integers
        part = judge(block, [s[start : start + step] for s in sums], lanes, combine_values or _sum)
        parts.append(_shifted(part, start))
    return combine(parts)


def combine(parts: Sequence[Verdict]) -> Verdict:
    """One verdict over blocks, or over rounds."""
    first = next((part.first_wrong for part in parts if part.first_wrong), None)
    wrong = sum(part.wrong for part in parts)
    if any(part.max_abs is None or part.bound is None for part in parts):
        within = None if not wrong else False
        return Verdict(wrong, first, None, None, within)
    return Verdict(
        wrong,
        first,
        max(part.max_abs or 0.0 for part in parts),
        max(part.bound or 0.0 for part in parts),
        all(part.within for part in parts),
    )


def quantise_bits(workers: int) -> int:
    """b of docs/protocol.md: integers lie within +-(2^b - 1), so that the sum fits int32."""
    return 31 - ceil(log2(workers))


def _sum(inputs: Sequence[Array]) -> Array:
    total = np.zeros_like(inputs[0])
    for x in inputs:
        total += x
    return total


def _judge_integers(
    inputs: Sequence[Array], sums: Sequence[Array], lanes: int, combine_values: Combine
) -> Verdict:
    total = combine_values([x.astype(np.int64) for x in inputs])
    wrong, first = _differences((total & 0xFFFFFFFF).astype(np.uint32).view(np.int32), sums)
    return Verdict(wrong, first, None, None, None)


def _judge_floats(
    inputs: Sequence[Array], sums: Sequence[Array], lanes: int, combine_values: Combine
) -> Verdict:
    scale = _scales(inputs, lanes)
    limit = 2.0 ** quantise_bits(len(inputs)) - 1
    per_element = np.repeat(scale, lanes)[: inputs[0].size]
    wide = [x.astype(np.float64) for x in inputs]
    true_sum = combine_values(wide)
    total = combine_values([np.clip(np.rint(x * per_element), -limit, limit) for x in wide])
    wrong, first = _differences(total.astype(np.int32), sums)
    return _errors(wrong, first, sums, per_element, true_sum, len(inputs))


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


def _errors(
    wrong: int,
    first: tuple[int, int] | None,
    sums: Sequence[Array],
    scale: Array,
    true_sum: Array,
    workers: int,
) -> Verdict:
    """Half a step of rounding for each worker, and the last rounding to float32."""
    max_abs, worst, within = 0.0, 0.0, True
    for received in _distinct(sums):
        exact_result = received / scale
        result = exact_result.astype(np.float32)
        bound = workers * 0.5 / scale + np.abs(result.astype(np.float64) - exact_result)
        distance = np.abs(result.astype(np.float64) - true_sum)
        max_abs = max(max_abs, float(distance.max()))
        worst = max(worst, float(np.max(bound)))
        within = within and bool((distance <= bound * (1 + 1e-9)).all())
    return Verdict(wrong, first, max_abs, worst, within)


def _distinct(sums: Sequence[Array]) -> list[Array]:
    """The arrays that are not equal to the first, and the first."""
    return [sums[0], *(s for s in sums[1:] if not np.array_equal(s, sums[0]))]


def _differences(expected: Array, sums: Sequence[Array]) -> tuple[int, tuple[int, int] | None]:
    wrong, first = 0, None
    for rank, received in enumerate(sums):
        if not np.array_equal(expected, received):
            places = np.flatnonzero(expected != received)
            wrong += places.size
            first = first or (rank, int(places[0]))
    return wrong, first


def _shifted(verdict: Verdict, offset: int) -> Verdict:
    if verdict.first_wrong is None:
        return verdict
    rank, index = verdict.first_wrong
    return Verdict(
        verdict.wrong, (rank, index + offset), verdict.max_abs, verdict.bound, verdict.within
    )

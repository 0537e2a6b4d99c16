"""Compares a round's sums and results with the right values (systems.base.Truth), and finds where
and by how much they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agglab.hosts.bfloat16 import dtype_of, name_of, numbers
from agglab.hosts.endpoint import PRESENCE
from agglab.testbed.base import processors
from agglab.testbed.systems.base import (
    ActiveJob,
    Combine,
    PresenceMismatch,
    ResolvedScenario,
    Results,
    Truth,
    TruthOf,
    in_pieces,
)
from agglab.testbed.systems.received_arrays import Received, Values

BLOCK_ELEMENTS = 1 << 16  # a block of a worker stays in the processor's cache
BLOCK_ELEMENTS_OF_ALL = 1 << 25  # 128 MB for the blocks of all workers

Array = npt.NDArray[Any]
Inputs = Callable[[int, int], Sequence[Array]]
"""A function that takes (start, count) and returns that part of each worker's tensor. All parts are
int32, or all are float32."""


@dataclass(frozen=True)
class WrongValue:
    """One position where an array is wrong. what: `sum`, `result` or `out`, or `presence` if it is
    wrong who is in the sums.

    rank: the worker's position in the sequence that was verified. index: None if the whole array is
    missing or has another dtype or shape, which `expected` and `got` then describe. allowed: how
    far from `expected` a float32 may be; None if it has to be equal.
    """

    what: str
    rank: int
    index: int | None
    expected: float | int | str
    got: float | int | str
    allowed: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict on one round's sums and results, over all workers.

    wrong_sums: the number of integers that differ. wrong_results: the number of elements that
    callers received and that differ (int32) or are farther from the float64 sum than allowed
    (float32). first: the first wrong position, and the first worker that is wrong there. max_abs:
    the largest distance of a float32 from the float64 sum; inf if one is not a number. bound: the
    largest distance that is allowed anywhere. Both are None for int32. measures: what the workload
    measured in a correct round, under its own names. history: what the members decided in a correct
    round, if a system's prediction of bytes depends on it (Traffic.decided_bytes). compared: the
    number of sums and results that were compared with right ones.
    """

    wrong_sums: int = 0
    wrong_results: int = 0
    first: WrongValue | None = None
    max_abs: float | None = None
    bound: float | None = None
    measures: Mapping[str, Any] = field(default_factory=dict)
    history: Any = None
    compared: int = 0

    @property
    def exact(self) -> bool | None:
        """Whether all integer sums are right. It is None if nothing was compared."""
        if self.wrong_sums:
            return False
        return True if self.compared else None

    @property
    def right(self) -> bool:
        """Whether all sums are right, and everything else that callers received."""
        return self.wrong_sums == self.wrong_results == 0


class Whole(NamedTuple):
    """One array of a worker. workers: how many workers have left this array. rank: the first of
    them."""

    rank: int
    what: str
    array: Values
    workers: int

    def block(self, start: int, step: int) -> Judged:
        return Judged(self.rank, self.what, self.array[start : start + step], self.workers)


class Judged(NamedTuple):
    """A block of such an array."""

    rank: int
    what: str
    array: Array
    workers: int


def verify(
    inputs: Inputs,
    truth: TruthOf,
    received: Sequence[Received],
    elements: int,
    dtype: str,
    step: int,
    with_sums: bool,
    inputs_held: bool = True,
    threads: int = 1,
) -> Verdict:
    """Verifies what the workers of one round received, one block at a time in each thread.

    received: for each worker what it received; what is the same object for several workers is
    verified once. elements, dtype: those of every worker's tensor; the dtype is int32 or float32.
    step: blocks begin at multiples of this number. with_sums: whether workers have also left the
    integers that they received. inputs_held: whether `inputs` returns values of all workers, and
    not a sequence that makes the values of a worker when they are read. threads: how many blocks
    are verified at the same time, on which the verdict does not depend.
    """
    arrays, parts = _fitting(received, elements, dtype, with_sums)
    block_elements = BLOCK_ELEMENTS
    if inputs_held:
        block_elements = min(block_elements, BLOCK_ELEMENTS_OF_ALL // max(1, len(received)))
    step *= max(1, min(block_elements // step, -(-elements // (step * threads))))

    def judge(start: int) -> Verdict:
        block = inputs(start, min(step, elements - start))
        cut = (one.block(start, step) for one in arrays)
        return _shifted(_judge(cut, truth(start, block)), start)

    parts += processors.in_threads(threads, judge, range(0, elements, step))
    return combine(parts)


def verify_sums(
    resolved: ResolvedScenario,
    job: ActiveJob,
    inputs: Inputs,
    received: Sequence[Received],
    combine: Combine | None = None,
) -> Verdict:
    """Verifies the results of one all-reduce against what the scenario's system says that they must
    be."""
    system, declared = resolved.system, job.job
    pieces = in_pieces(system, resolved.scenario, declared)
    in_threads = pieces and combine is None  # users do not write functions for several threads
    right = system.right_results(resolved, job, combine)
    try:
        truth = right.given(Results(received, inputs))
    except PresenceMismatch as error:
        what = WrongValue(PRESENCE, error.rank, None, error.expected, error.got)
        return Verdict(declared.elements, declared.elements, what)
    return verify(
        inputs,
        truth,
        received,
        declared.elements,
        declared.dtype,
        right.block,
        right.with_sums,
        inputs_held=not pieces,
        threads=processors.for_network(resolved.graph) if in_threads else 1,
    )


def combine(parts: Sequence[Verdict]) -> Verdict:
    """Returns one verdict for several blocks or rounds."""
    return Verdict(
        sum(part.wrong_sums for part in parts),
        sum(part.wrong_results for part in parts),
        next((part.first for part in parts if part.first), None),
        max((part.max_abs for part in parts if part.max_abs is not None), default=None),
        max((part.bound for part in parts if part.bound is not None), default=None),
        compared=sum(part.compared for part in parts),
    )


def all_exact(parts: Iterable[bool | None]) -> bool | None:
    """Returns whether several things are exact: False if one is not, and otherwise None if one was
    not compared, or if there are none."""
    known = set(parts)
    if False in known:
        return False
    return True if known == {True} else None


def _fitting(
    received: Sequence[Received], elements: int, dtype: str, with_sums: bool
) -> tuple[list[Whole], list[Verdict]]:
    """Returns the arrays that can be compared. For each array that cannot be compared, also returns
    a verdict that all of it is wrong."""
    arrays, misfits = [], []
    workers = Counter(map(id, received))
    for rank, one in enumerate(received):
        alike = workers.pop(id(one), 0)
        for what, array in one.claims(with_sums) if alike else ():
            wanted = dtype_of("int32" if what == "sum" else dtype)
            if array is not None and (array.dtype, array.shape) == (wanted, (elements,)):
                arrays.append(Whole(rank, what, array, alike))
                continue
            expected, got = f"{name_of(wanted)} of {elements}", _described(array)
            first = WrongValue(what, rank, None, expected, got)
            misfits.append(_wrong(what, alike * elements, first, not with_sums))
    return arrays, misfits


def _described(array: Values | None) -> str:
    if array is None:
        return "nothing"
    return f"{name_of(array.dtype)} of {' x '.join(map(str, array.shape)) or 'no dimension'}"


def _wrong(what: str, count: int, first: WrongValue, result_is_sum: bool) -> Verdict:
    sums = count if what == "sum" or (result_is_sum and what == "result") else 0
    return Verdict(sums, 0 if what == "sum" else count, first)


def _judge(arrays: Iterable[Judged], truth: Truth) -> Verdict:
    """Returns the verdict on these arrays, with the first position that is wrong in any of them.
    Workers usually receive the same bits. An array that equals the previous worker's array is not
    compared again."""
    parts: list[Verdict] = []
    seen: dict[bool, tuple[Array, Verdict]] = {}
    for one in arrays:
        is_sum = one.what == "sum"
        if is_sum not in seen or not _same_bits(seen[is_sum][0], one.array):
            seen[is_sum] = one.array, _compare(one, truth)
        verdict = seen[is_sum][1]
        if verdict.first:
            verdict = replace(verdict, first=replace(verdict.first, rank=one.rank, what=one.what))
        parts.append(_times(verdict, one.workers))
    return combine(sorted(parts, key=_place))


def _place(verdict: Verdict) -> float:
    """Returns the first wrong position; inf if none is wrong."""
    if verdict.first is None or verdict.first.index is None:
        return inf
    return verdict.first.index


def _times(verdict: Verdict, workers: int) -> Verdict:
    """Returns the verdict on the same array at so many workers."""
    return replace(
        verdict,
        wrong_sums=workers * verdict.wrong_sums,
        wrong_results=workers * verdict.wrong_results,
        compared=workers * verdict.compared,
    )


def _same_bits(a: Array, b: Array) -> bool:
    return np.array_equal(_bits(a), _bits(b))


def _bits(array: Array) -> Array:
    """Returns the values' bits as whole numbers."""
    return array.view(f"u{array.dtype.itemsize}")


def _same(array: Array, wanted: Array) -> Array:
    """Returns for each element whether its bits are the same in both arrays."""
    return _bits(array) == _bits(wanted.astype(array.dtype))


def _compare(one: Judged, truth: Truth) -> Verdict:
    if one.what == "sum" or truth.allowed is None:
        wanted = truth.sums if one.what == "sum" else truth.values
        assert wanted is not None, "a system whose workers leave sums says what these sums must be"
        places = np.flatnonzero(~_same(one.array, wanted))
        if not places.size:
            return Verdict(compared=one.array.size)
        at = int(places[0])
        expected, got = (numbers(a[at : at + 1])[0].item() for a in (wanted, one.array))
        first = WrongValue(one.what, one.rank, at, expected, got)
        wrong = _wrong(one.what, places.size, first, truth.allowed is None)
        return replace(wrong, compared=one.array.size)
    distance = np.abs(one.array.astype(np.float64) - truth.values)
    # Not `distance > allowed`, which no NaN is.
    places = np.flatnonzero(~(distance <= truth.allowed))
    largest = float(distance.max())
    verdict = Verdict(0, places.size, None, inf if isnan(largest) else largest)
    verdict = replace(verdict, bound=float(truth.allowed.max()), compared=one.array.size)
    if not places.size:
        return verdict
    at = int(places[0])
    expected, got, allowed = (float(a[at]) for a in (truth.values, one.array, truth.allowed))
    return replace(verdict, first=WrongValue(one.what, one.rank, at, expected, got, allowed))


def _shifted(verdict: Verdict, offset: int) -> Verdict:
    first = verdict.first
    if first is None or first.index is None:
        return verdict
    return replace(verdict, first=replace(first, index=first.index + offset))

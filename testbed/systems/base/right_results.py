"""What the results of a job must be, computed from nothing but the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agglab.testbed.systems.received_arrays import Received

Array = npt.NDArray[Any]
Combine = Callable[[Sequence[Array]], Array]
"""A function that takes all workers' values and returns what replaces their sum, element by
element."""


@dataclass(frozen=True)
class Truth:
    """The correct result for a block of elements, computed from nothing but the inputs.

    values: what callers must receive. allowed: how far from `values` each received value may be
    (float64); None if every bit must be right. sums: the integers that the switches must return, if
    an endpoint returns these besides its result. They must be right bit for bit.
    """

    values: Array
    allowed: Array | None = None
    sums: npt.NDArray[Any] | None = None


TruthOf = Callable[[int, Sequence[Array]], Truth]
"""A function that takes the first element of a block, and that block of each member's tensor. It
returns what the block must become."""


def integer_sum(start: int, inputs: Sequence[Array]) -> Truth:
    """Returns the sum of the workers' integers modulo 2^32, a TruthOf."""
    total = np.zeros(inputs[0].size, np.int64)
    for x in inputs:
        total += x
    return Truth(as_int32(total))


def as_int32(total: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Returns the numbers modulo 2^32, as int32 holds them."""
    return (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


class PresenceMismatch(Exception):
    """Raised if what a worker received with its result, such as who is in each sum, is missing, is
    impossible, or differs from what the first worker received. rank: the worker's position."""

    def __init__(self, rank: int, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.rank, self.expected, self.got = rank, expected, got


@dataclass(frozen=True)
class Results:
    """What the members received. inputs: a function that takes (start, count) and returns that part
    of each member's tensor."""

    received: Sequence[Received]
    inputs: Callable[[int, int], Sequence[Array]]


@dataclass(frozen=True)
class TrainingBounds:
    """Bounds that a system guarantees for asynchronous training; None where it guarantees nothing.
    delay: the largest age, in versions, of an update when it is committed. divergence: the largest
    Euclidean distance of a replica from the model, in the units of the model."""

    delay: int | None = None
    divergence: int | None = None


@dataclass(frozen=True)
class RightResults:
    """What the results of a job must be.

    truth: what each block must become, however packets arrive; several threads may call it at the
    same time. block: truths are computed for blocks that begin at multiples of this number of
    elements. with_sums: whether endpoints also return the integers that switches summed.
    of_received: if who is in a sum depends on when packets arrive, a function that returns the
    truth for what workers received. training: what is promised about asynchronous training.
    """

    truth: TruthOf
    block: int = 1
    with_sums: bool = False
    of_received: Callable[[Results], TruthOf] | None = None
    training: TrainingBounds = TrainingBounds()

    def given(self, results: Results) -> TruthOf:
        """Returns the truth for these results. Raises PresenceMismatch."""
        return self.of_received(results) if self.of_received else self.truth

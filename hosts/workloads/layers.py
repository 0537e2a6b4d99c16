"""The workload `layers`: the timing and the traffic of a training, without its arithmetic. A round
is one iteration, which has a backward pass and then a forward pass. During the backward pass,
gradients are already summed over all workers, in buckets.

A worker begins the backward pass when the round begins, and goes from the last layer to the first.
Passes take their time and compute nothing. A bucket may be summed as soon as the backward pass has
finished its layers. The forward pass begins when the backward pass is over. It enters each layer
only when the gradients of this layer are summed. The round is over when the forward pass has
finished the last layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.tensors import Sparsity, make_tensor
from agglab.hosts.workloads.base import InputKey
from agglab.hosts.workloads.dense import Dense

VALUE_BITS = 32
NS_PER_S = 1_000_000_000


class Bucket(NamedTuple):
    """A part of the tensor that is summed in one all-reduce: `elements` values from position
    `start` on, which are the gradients of the layers `first` to `last`. They are complete
    `ready_ns` after the beginning of the backward pass."""

    start: int
    elements: int
    first: int
    last: int
    ready_ns: int


@dataclass(frozen=True)
class Layers:
    """One iteration of a training (base.Work). The tensor has the gradients of all layers,
    beginning with the input layer.

    sizes: the number of values of each layer. forward_ns, backward_ns: how long the passes of each
    layer take. sparse: the numbers of the layers whose gradients are sparse, as `density`, `block`,
    `overlap` and `workers` say (tensors.Sparsity). bucket: the largest number of values in a bucket
    of several layers. priorities: whether, of the buckets that are ready, the one nearest to the
    input is summed first, as far as this can be known in advance (`order`). link_bps: the rate of
    the slowest link.
    """

    kind: ClassVar = "layers"
    in_place: ClassVar = True
    dtype: str
    sizes: Sequence[int]
    forward_ns: Sequence[int]
    backward_ns: Sequence[int]
    sparse: Sequence[int]
    density: float
    block: int
    overlap: str
    workers: int
    bucket: int
    priorities: bool
    link_bps: float

    def __post_init__(self) -> None:
        """Raises ValueError, with a message of one line, if a field has an impossible value."""
        for name in ("sizes", "forward_ns", "backward_ns", "sparse"):
            given = getattr(self, name)
            if not isinstance(given, Sequence) or any(type(n) is not int or n < 0 for n in given):
                raise ValueError(f"{name}: {given!r} is not a list of whole numbers of 0 or more")
            object.__setattr__(self, name, tuple(given))  # JSON makes lists of them
        if not len(self.sizes) == len(self.forward_ns) == len(self.backward_ns) > 0:
            raise ValueError("sizes, forward_ns and backward_ns differ in length, or are empty")
        if min(self.sizes) < 1 or type(self.bucket) is not int or self.bucket < 1:
            raise ValueError("a layer or a bucket has no values")

    @property
    def elements(self) -> int:
        """The number of values of all layers."""
        return sum(self.sizes)

    @property
    def computing_ns(self) -> int:
        """The computing time of both passes."""
        return sum(self.forward_ns) + sum(self.backward_ns)

    def inputs(self, key: InputKey) -> NDArray[Any]:
        return self.part(key, 0, self.elements)

    def part(self, key: InputKey, start: int, count: int) -> NDArray[Any]:
        """Returns `count` values of one worker's input, beginning at position `start`."""
        found = make_tensor(*key, count, self.dtype, start)
        for layer in self.sparse:
            begin = max(start, self._starts[layer])
            end = min(start + count, self._starts[layer + 1])
            if begin < end:
                within, size = begin - self._starts[layer], self.sizes[layer]
                own = Sparsity(self.density, self.block, self.overlap, self.workers, size)
                rows = make_tensor(*key, end - begin, self.dtype, within, own)
                found[begin - start : end - start] = rows
        return found

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs.dtype)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """The position of each layer's first value in the tensor, and the position after the last
        layer's last value."""
        return tuple(accumulate(self.sizes, initial=0))

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """The buckets, in the order in which the backward pass completes them. A bucket consists of
        whole layers: as many as fit, or a single layer that is larger. With priorities such a large
        layer is cut into several buckets, so that other buckets need not wait for all of it."""
        found: list[Bucket] = []
        last = len(self.sizes) - 1
        while last >= 0:
            first = last
            while first and self._values(first - 1, last) <= self.bucket:
                first -= 1
            found += self._cut(first, last)
            last = first - 1
        return tuple(found)

    def _values(self, first: int, last: int) -> int:
        return self._starts[last + 1] - self._starts[first]

    def _cut(self, first: int, last: int) -> list[Bucket]:
        start, values = self._starts[first], self._values(first, last)
        ready_ns = sum(self.backward_ns[first:])
        most = self.bucket if self.priorities else values
        return [
            Bucket(start + at, min(most, values - at), first, last, ready_ns)
            for at in range(0, values, most)
        ]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The indices in `buckets`, in the order in which the buckets are summed. Without
        priorities, this is the order of `buckets`. All workers must use the same order, so it
        depends only on what all of them know. With priorities, it is computed as if the sum of a
        bucket took the time in which the bucket's values cross the slowest link once."""
        left, now_ns, found = list(range(len(self.buckets))), 0.0, []
        while left:
            if not self.priorities:
                return tuple(left)
            now_ns = max(now_ns, self.buckets[left[0]].ready_ns)
            ready = (n for n in left if self.buckets[n].ready_ns <= now_ns)
            chosen = min(ready, key=lambda n: self.buckets[n].start)
            now_ns += self.buckets[chosen].elements * VALUE_BITS * NS_PER_S / self.link_bps
            left.remove(chosen)
            found.append(chosen)
        return tuple(found)

    def forward_end_ns(self, summed_ns: Sequence[float]) -> float:
        """Returns the time at which the forward pass ends. summed_ns: the time at which each bucket
        was summed. All times count from the beginning of the backward pass."""
        due_ns = [0.0] * len(self.sizes)
        for bucket, at_ns in zip(self.buckets, summed_ns, strict=True):
            for layer in range(bucket.first, bucket.last + 1):
                due_ns[layer] = max(due_ns[layer], at_ns)
        end_ns: float = sum(self.backward_ns)
        for layer_due_ns, pass_ns in zip(due_ns, self.forward_ns, strict=True):
            end_ns = max(end_ns, layer_due_ns) + pass_ns
        return end_ns

    def iteration_ns(self, times_ns: Sequence[float]) -> float:
        """Returns how long an iteration takes if buckets are summed one after the other. times_ns:
        how long it takes to sum each bucket."""
        now_ns, summed_ns = 0.0, [0.0] * len(self.buckets)
        for number in self.order:
            now_ns = max(now_ns, self.buckets[number].ready_ns) + times_ns[number]
            summed_ns[number] = now_ns
        return self.forward_end_ns(summed_ns)

    def all_reduces(self) -> tuple[BucketOf, ...]:
        """Returns the workloads of the all-reduces of a round, in the order of `buckets`."""
        return tuple(BucketOf(self, each.start, each.elements) for each in self.buckets)

    def as_dense(self) -> Dense:
        """Returns a workload with the same values in a single all-reduce. The endpoint that sums
        the buckets is made with this workload."""
        return Dense(self.elements, self.dtype)


@dataclass(frozen=True)
class BucketOf:
    """The all-reduce of one bucket, as a workload (base.Work)."""

    kind: ClassVar = Dense.kind
    in_place: ClassVar = True
    layers: Layers
    start: int
    elements: int

    @property
    def dtype(self) -> str:
        return self.layers.dtype

    def inputs(self, key: InputKey) -> NDArray[Any]:
        return self.part(key, 0, self.elements)

    def part(self, key: InputKey, start: int, count: int) -> NDArray[Any]:
        """Returns `count` values of the bucket, beginning at `start`."""
        return self.layers.part(key, self.start + start, count)

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs.dtype)

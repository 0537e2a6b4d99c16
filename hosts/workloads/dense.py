"""The workload `allreduce`: the sum of a tensor over all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.tensors import make_tensor
from agglab.hosts.workloads.base import InputKey


@dataclass(frozen=True)
class Dense:
    """The all-reduce of a dense tensor (base.Work)."""

    kind: ClassVar = "allreduce"
    in_place: ClassVar = True
    elements: int
    dtype: str

    def inputs(self, key: InputKey) -> NDArray[Any]:
        return self.part(key, 0, self.elements)

    def part(self, key: InputKey, start: int, count: int) -> NDArray[Any]:
        """Returns `count` values of one worker's input, beginning at position `start`."""
        return make_tensor(*key, count, self.dtype, start)

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs.dtype)

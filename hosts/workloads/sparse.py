"""The workload `sparse_allreduce`: the sum over all workers of a tensor most of whose blocks are
zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.tensors import Sparsity, make_tensor
from agglab.hosts.workloads.base import InputKey


@dataclass(frozen=True)
class Sparse:
    """The all-reduce of a sparse tensor (base.Work). density, block, overlap: which blocks are not
    zero (tensors.Sparsity). workers: the number of workers of the whole job."""

    kind: ClassVar = "sparse_allreduce"
    in_place: ClassVar = True
    elements: int
    dtype: str
    workers: int
    density: float
    block: int
    overlap: str

    def inputs(self, key: InputKey) -> NDArray[Any]:
        return self.part(key, 0, self.elements)

    def part(self, key: InputKey, start: int, count: int) -> NDArray[Any]:
        """Returns `count` values of one worker's input, beginning at position `start`."""
        return make_tensor(*key, count, self.dtype, start, self._sparsity)

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs.dtype)

    @property
    def _sparsity(self) -> Sparsity:
        return Sparsity(self.density, self.block, self.overlap, self.workers, self.elements)

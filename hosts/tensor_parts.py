"""Makes any part of a worker's input in C, where the input is a dense tensor of int32 or float32.

The values are those of tensors.make_tensor, which is the definition. A TensorParts holds the states
of the random generators and not the values, so that a large network needs no memory for inputs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from agglab.hosts import library, tensors
from agglab.hosts.native_structures import TensorState, Word128

DTYPES = (np.dtype(np.int32), np.dtype(np.float32))
"""The types of the values that can be made in parts."""


class TensorParts:
    """The input of worker `rank` in one round. Raises TypeError for types that are not in
    DTYPES."""

    def __init__(
        self, seed: int, job: int, rank: int, round: int, elements: int, dtype: DTypeLike
    ) -> None:
        self.dtype, self.elements = np.dtype(dtype), elements
        if self.dtype not in DTYPES:
            raise TypeError(f"no parts of dtype {self.dtype}: int32 or float32")
        self._native = library.load()
        key = (seed, job, rank, round)
        generator = tensors.generator(*key).state["state"]
        self._state = TensorState(Word128.of(generator["state"]), Word128.of(generator["inc"]))
        if self.dtype == np.float32:
            blocks = -(-elements // tensors.BLOCK)
            self._state.blocks = tensors.upper_exponents(*key, 0, blocks)
        self.address = self._state.address

    def part(self, start: int, count: int) -> NDArray:
        """Returns `count` values, beginning at position `start`."""
        values = np.empty(count, self.dtype)
        self.write(start, values)
        return values

    def write(self, start: int, values: NDArray) -> None:
        """Writes values into the contiguous array `values`, beginning at position `start`."""
        assert values.dtype == self.dtype and start + values.size <= self.elements
        self._native.tensor_part(self.address, start, values.size, values.ctypes.data)

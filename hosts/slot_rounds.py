"""The rounds of a worker whose switches sum in slots: the arrays of a round in the form that the C
code expects, and the exceptions. The settings on which the workers of a job agree are in
slots.py."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import quantise
from agglab.hosts.agreement import PLAIN, Agreement
from agglab.hosts.errors import AllReduceError
from agglab.hosts.slots import Job, check_finite, mismatch, timeout
from agglab.hosts.tensor_parts import TensorParts
from agglab.hosts.wire import Shape


class SlotRounds:
    """The arrays and exceptions of a worker's rounds.

    state: the structure of the C code. This class sets its fields elements, values, out, sums,
    exponents, chunks and shapes. slots: the packet under way in each slot, with the fields
    `waiting` and `tag`. chunk: the name of the field of `slots` that holds the number of the chunk.
    """

    def __init__(self, job: Job, state: Any, slots: NDArray[np.void], chunk: str) -> None:
        self._job, self._state, self._slots, self._chunk = job, state, slots, chunk
        self.begun = 0
        self.values: NDArray = np.zeros(0, np.int32)
        self.out: NDArray = self.values
        self.sums: NDArray[np.int32] | None = None
        self.exponents: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """The exponent of each chunk on which the workers agreed."""
        self.presence: NDArray[np.uint64] = np.zeros(0, np.uint64)
        """The workers whose contributions are in the sum of each chunk, as bits, if the job has a
        deadline."""

    def begin(
        self,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None,
        agreement: Agreement = PLAIN,
    ) -> int:
        """Begins the next round and returns its number of chunks. The arrays are those of
        Endpoint.begin."""
        assert out.dtype == values.dtype and out.shape == values.shape == (values.size,)
        assert sums is None or (sums.dtype == np.int32 and sums.shape == values.shape)
        arrays = (values, out) if sums is None else (values, out, sums)
        assert all(array.flags.c_contiguous and array.flags.aligned for array in arrays)
        state = self._state
        self.values, self.out, self.sums = values, out, sums
        state.values, state.out, state.sums = values, out, sums
        return self._begin(values.size, values.dtype, agreement)

    def begin_in_pieces(self, inputs: TensorParts) -> int:
        """Begins the next round, which has no arrays, and returns its number of chunks."""
        self.values = self.out = np.zeros(0, inputs.dtype)
        self.sums = None
        return self._begin(inputs.elements, inputs.dtype, PLAIN)

    def _begin(self, elements: int, dtype: np.dtype, agreement: Agreement) -> int:
        chunks = quantise.chunks_of(elements, self._job.values_per_chunk(dtype))
        self.exponents = np.zeros(chunks, np.uint8)
        self._state.elements = elements
        self._state.exponents = self.exponents
        shape = self._job.shape(elements, dtype, self.begun, agreement)
        self._state.shapes.own[:] = shape.emit()
        self._state.chunks = chunks
        self.begun += 1
        return chunks

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, slot, tag, how often it was sent again] of slots that wait for a result,
        at most `most` of them."""
        slots = np.flatnonzero(self._slots["waiting"])[:most]
        rows = self._slots[slots]
        columns = (rows[self._chunk], slots, rows["tag"], rows["attempt"])
        return [list(map(int, row)) for row in zip(*columns, strict=True)]

    def failure(self, error: int, give_up_ns: int) -> AllReduceError:
        """Returns the exception for an error number that the C code returned."""
        if error == errno.EPROTO:
            shapes = self._state.shapes
            known = (shapes.own, shapes.smallest, shapes.largest)
            own, *both = (Shape.parse(bytes(shape)) for shape in known)
            return mismatch(self._job, self.begun - 1, own, both)
        assert error == errno.ETIMEDOUT
        slots = np.flatnonzero(self._slots["waiting"])
        return timeout(self._job, self._slots[self._chunk][slots], slots, give_up_ns)

    def finish(self) -> None:
        """Raises NotFinite if the finished round has no finite result."""
        if self.values.dtype == np.float32:
            check_finite(self._job, self.exponents, self.values, self.out)

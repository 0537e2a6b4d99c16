"""Turns PyTorch tensors into reductions: whether tensors can go through the system, and as which
type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from agglab.hosts.agreement import OPERATIONS, TENSORS_BITS, Agreement
from agglab.hosts.bfloat16 import BFLOAT16
from agglab.hosts.training.jobs import Piece
from agglab.hosts.training.order import VOTE_DTYPE, vote_elements

CARRIED = {
    torch.float32: "float32",
    torch.int32: "int32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
}
"""The dtypes that an all-reduce takes through the system."""
INSTEAD = "float32"
"""The dtype in which values travel if the system does not take their own dtype. The sum is rounded
to their own dtype once."""


def carried_as(dtype: torch.dtype, taken: Sequence[str]) -> str:
    """Returns the dtype in which values of `dtype`, one of CARRIED, are sent. taken: the dtypes
    that the system accepts."""
    return CARRIED[dtype] if CARRIED[dtype] in taken else INSTEAD


def why_not(tensors: Sequence[Any], is_average: bool, taken: Sequence[str]) -> str | None:
    """Returns a word that says why tensors cannot go through the system, or None if they can.
    taken: the dtypes that the system accepts."""
    first = tensors[0]
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            return "sparse"
        if tensor.device.type != "cpu":
            return "device"
        if tensor.dtype not in CARRIED or tensor.dtype != first.dtype:
            return "dtype"
    if first.dtype is torch.int32 and "int32" not in taken:
        return "dtype"
    return "op" if is_average and first.dtype is torch.int32 else None


def agreement_of(tensors: Sequence[Any], is_average: bool, group: int) -> Agreement:
    """Returns what all ranks have to agree on before these tensors are reduced: the operation, the
    process group, and the dtypes and shapes of the tensors."""
    listed = [(str(each.dtype), tuple(each.shape)) for each in tensors if each.numel()]
    digest = crc32(f"{group} {listed}".encode()) % (1 << TENSORS_BITS)
    return Agreement(OPERATIONS.index("AVG" if is_average else "SUM"), digest)


def pieces(
    tensors: Sequence[Any], elements_max: int, divide_by: int, taken: Sequence[str]
) -> list[Piece]:
    """Returns the reductions that sum the tensors in place, in the order in which they are to be
    made. The values of all tensors are concatenated and then cut into reductions of at most
    `elements_max` values, none of which looks like a vote (order.py). divide_by: the number by
    which each sum is divided before it is rounded. taken: the dtypes that the system accepts.
    """
    flats = [_Flat(tensor) for tensor in tensors if tensor.numel()]
    if not flats:
        return []
    dtype = carried_as(flats[0].tensor.dtype, taken)
    never = vote_elements(elements_max) if dtype == VOTE_DTYPE else 0
    lengths = _lengths(sum(flat.elements for flat in flats), elements_max, never)
    return [_piece(spans, dtype, divide_by) for spans in _cut(flats, lengths)]


class _Flat:
    """The values of a tensor as a flat sequence. It is a view of the tensor's memory if this memory
    is contiguous, and a copy otherwise."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor.detach()
        self.elements = tensor.numel()
        self._apart = not self.tensor.is_contiguous()
        self._flat: Any = None if self._apart else self.tensor.view(-1)
        self._left = self.elements

    def read(self, start: int, end: int) -> Any:
        """Returns the values `start` to `end`."""
        if self._flat is None:
            self._flat = self.tensor.reshape(-1).clone()
        return self._flat[start:end]

    def write(self, start: int, end: int, values: Any) -> None:
        """Replaces the values `start` to `end`. This method sets PyTorch's inference mode itself,
        because other threads call it and the mode of the script's thread does not apply to them."""
        with torch.inference_mode(self.tensor.is_inference()):
            self._flat[start:end].copy_(values)
            self._left -= end - start
            if self._apart and not self._left:
                self.tensor.copy_(self._flat.view(self.tensor.shape))


_Span = tuple[_Flat, int, int]


def _lengths(total: int, most: int, never: int) -> Iterator[int]:
    """Yields numbers that add up to `total`. None of them is above `most`, and none is `never`,
    which is not 1."""
    while total:
        length = min(total, most)
        length -= length == never
        yield length
        total -= length


def _cut(flats: Sequence[_Flat], lengths: Iterator[int]) -> Iterator[list[_Span]]:
    """Yields lists of spans of the tensors. lengths: how many values each list has in total; they
    add up to the values of all tensors."""
    spans: list[_Span] = []
    room = next(lengths)
    for flat in flats:
        start = 0
        while start < flat.elements:
            end = min(flat.elements, start + room)
            spans.append((flat, start, end))
            room -= end - start
            start = end
            if not room:
                yield spans
                spans, room = [], next(lengths, 0)


def _piece(spans: Sequence[_Span], dtype: str, divide_by: int) -> Piece:
    def fill(slot: NDArray) -> None:
        place, at = _tensor(slot), 0
        for flat, start, end in spans:
            place[at : at + end - start].copy_(flat.read(start, end))
            at += end - start

    def drain(slot: NDArray) -> None:
        sums, at = _tensor(slot), 0
        if divide_by > 1:
            sums.div_(divide_by)
        for flat, start, end in spans:
            flat.write(start, end, sums[at : at + end - start])
            at += end - start

    return Piece(sum(end - start for _, start, end in spans), dtype, fill, drain)


def _tensor(slot: NDArray) -> Any:
    """Returns a tensor in the memory of an array."""
    if slot.dtype == BFLOAT16:
        return torch.from_numpy(slot.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(slot)

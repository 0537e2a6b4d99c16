"""Rounds in which a worker does not hold its values and results as whole arrays.

The worker asks for the values of a chunk when it needs them, and hands over the results of a chunk
when they come. Both happen in C (native_structures.PiecesState). Virtual time uses such rounds,
because a large network has no memory for the arrays of all workers.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library
from agglab.hosts.native_endpoint import address_of
from agglab.hosts.native_structures import PiecesState
from agglab.hosts.tensor_parts import TensorParts


class Room:
    """Room for one chunk of values, of results and, if `with_sums`, of integer sums. Workers may
    share it if they process packets one after the other."""

    def __init__(self, elements: int, dtype: np.dtype, with_sums: bool) -> None:
        self.values: NDArray = np.zeros(elements, dtype)
        self.results: NDArray = np.zeros(elements, dtype)
        self.sums = np.zeros(elements, np.int32) if with_sums else None


class Pieces:
    """The values and results of one worker in one round. inputs: its values. take: the address of
    the C function that takes the results. output: the first argument of that function."""

    def __init__(self, inputs: TensorParts, take: int, output: int, room: Room) -> None:
        self.inputs, self._room = inputs, room
        self._state = PiecesState(
            give=address_of(library.load().tensor_part),
            input=inputs.address,
            take=take,
            output=output,
            values=room.values,
            results=room.results,
            sums=room.sums,
        )
        self.address = self._state.address


@runtime_checkable
class TakesPieces(Protocol):
    """The interface of an endpoint (endpoint.Endpoint) that can reduce in pieces."""

    def piece_elements(self, dtype: np.dtype) -> int:
        """Returns the number of values in a chunk of this type."""

    def begin_in_pieces(self, now_ns: int, pieces: Pieces) -> None:
        """Starts a round like `begin`. `pieces` belongs to the endpoint until the round is
        done."""

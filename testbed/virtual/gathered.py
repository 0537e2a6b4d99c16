"""What the workers of a job receive in rounds in which they hold no whole arrays (hosts/pieces.py).

Workers mostly receive the same bits. native/gathered.c compares each result with those that other
workers received for the same chunk, keeps each different one once, and notes which of them a worker
received. Workers that received the same have one Received in common, and correctness.py judges it
once. Even if all workers received different values, there are no whole arrays: values are copied
when they are read (Came).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.agent_config import Config
from agglab.hosts.endpoint import Endpoint
from agglab.hosts.pieces import Pieces, Room, TakesPieces
from agglab.hosts.tensor_parts import DTYPES, TensorParts
from agglab.hosts.workloads import Dense
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.virtual import native


class _Settings(ctypes.Structure):
    """The fields of `struct gathered_settings` of native/gathered.h."""

    _fields_ = [
        *[(name, ctypes.c_uint64) for name in ("elements", "chunk_elements")],
        *[(name, ctypes.c_uint32) for name in ("value_bytes", "has_sums")],
    ]


class _Share(ctypes.Structure):
    """The fields of `struct share` of native/gathered.h."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("gathered", "versions")],
        ("misplaced", ctypes.c_uint64),
    ]


class Gathered:
    """What the workers of one job received in one round. chunk_elements: the number of values in a
    chunk. with_sums: whether workers also hand over the integers that switches returned."""

    def __init__(
        self, elements: int, dtype: np.dtype, chunk_elements: int, with_sums: bool
    ) -> None:
        self._library = native.load()
        self.elements, self.dtype, self.with_sums = elements, dtype, with_sums
        self.chunks = -(-elements // chunk_elements)
        settings = _Settings(elements, chunk_elements, dtype.itemsize, with_sums)
        self.address: int = self._library.gathered_new(ctypes.byref(settings))
        if not self.address:
            raise MemoryError
        self.room = Room(chunk_elements, dtype, with_sums)
        self._received: WeakValueDictionary[tuple[bytes, ...], Received] = WeakValueDictionary()

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.gathered_free(self.address)

    def received(self, share: Share, more: Mapping[str, NDArray]) -> Received:
        """Returns what a worker received. The result is the same object for all workers that
        received the same. Chunks that did not come, or came with different values, are left out, so
        that the arrays are too short. more: what the worker received besides, as in Received."""
        key = share.key(), *(array.tobytes() for array in more.values())
        received = self._received.get(key)
        if received is None:
            received = self._received[key] = Received(*share.came(), more=more)
        return received


class Share:
    """What one worker receives of a Gathered."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered, self._library = gathered, gathered._library
        self._versions: NDArray[np.uint16] = np.zeros(gathered.chunks, np.uint16)
        self._state = _Share(gathered.address, self._versions.ctypes.data)
        self.address = ctypes.addressof(self._state)

    def pieces(self, inputs: TensorParts) -> Pieces:
        """Returns the Pieces of a worker with these inputs, whose results come here."""
        take = native.address_of(self._library.share_take)
        return Pieces(inputs, take, self.address, self._gathered.room)

    def received(self, more: Mapping[str, NDArray]) -> Received:
        """Returns what the worker has received so far (Gathered.received)."""
        return self._gathered.received(self, more)

    def key(self) -> bytes:
        """Returns bytes that are equal for workers that received the same."""
        return self._versions.tobytes() + bytes([self._state.misplaced > 0])

    def came(self) -> tuple[Came | None, Came | None]:
        """Returns the results and the sums that have come so far. Returns None for both if the
        worker handed over something that was not the result of a chunk."""
        gathered = self._gathered
        if self._state.misplaced:
            return None, None
        versions = self._versions.copy()
        sums = Came(gathered, versions, is_sums=True) if gathered.with_sums else None
        return Came(gathered, versions, is_sums=False), sums


class Came:
    """The results that one worker received, or the sums: a received.Values. versions: which version
    of each chunk."""

    def __init__(self, gathered: Gathered, versions: NDArray[np.uint16], is_sums: bool) -> None:
        self._gathered, self._versions, self._is_sums = gathered, versions, is_sums
        self._state = _Share(gathered.address, versions.ctypes.data)
        self.dtype = np.dtype(np.int32) if is_sums else gathered.dtype
        self.shape = (self._copy(0, gathered.elements, None),)

    def __getitem__(self, part: slice) -> NDArray:
        first, end, step = part.indices(*self.shape)
        assert step == 1, "values are read in their order"
        values = np.empty(max(0, end - first), self.dtype)
        self._copy(first, values.size, values.ctypes.data)
        return values

    def tobytes(self) -> bytes:
        return self[:].tobytes()

    def _copy(self, first: int, count: int, to: int | None) -> int:
        """Copies values to an address, if it is given. Returns how many of them there are."""
        places = (None, to) if self._is_sums else (to, None)
        copied: int = native.load().share_copy(ctypes.addressof(self._state), first, count, *places)
        return copied


class Gatherings:
    """The Gathered of all rounds of a network that are under way."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[int, int], Gathered] = WeakValueDictionary()

    def begin(
        self, now_ns: int, endpoint: Endpoint, config: Config, number: int, with_sums: bool
    ) -> Share | None:
        """Begins a round of a worker without whole arrays. Returns the Share that takes the
        results. Returns None, and does nothing, if the workload or the endpoint needs whole
        arrays."""
        work = config.work
        names = {each.name: each for each in DTYPES}
        if not (
            isinstance(work, Dense) and work.dtype in names and isinstance(endpoint, TakesPieces)
        ):
            return None
        dtype = names[work.dtype]
        key = config.job, number
        gathered = self._known.get(key)
        if gathered is None:
            gathered = Gathered(work.elements, dtype, endpoint.piece_elements(dtype), with_sums)
            self._known[key] = gathered
        share = Share(gathered)
        inputs = TensorParts(config.seed, config.job, config.rank, number, work.elements, dtype)
        endpoint.begin_in_pieces(now_ns, share.pieces(inputs))
        return share

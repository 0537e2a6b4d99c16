"""The places of keys. A place is where the switch stores the value or the counter of a 64-bit key
of an application (README.md, "Keys and places"). The server allocates places, and
workers remember the places that it told them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agglab.systems.netrpc.wire import KEPT, KEY, NO_PLACE, PAIR, PAIRS

UNUSED = KEPT - 1
"""The place of an unused entry."""


class PlaceCache:
    """A worker's memory of the places of keys. The place KEPT means that the server keeps the value
    of the key."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}

    def unknown(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Returns those of `keys` whose place is not known, each once."""
        missing = dict.fromkeys(key for key in keys.tolist() if key not in self._places)
        return np.array(list(missing), np.uint64)

    def learn(self, entries: NDArray[np.void]) -> None:
        """Remembers the places that the server told in an answer. entries: an array of wire.KEY."""
        self._places.update(zip(entries["key"].tolist(), entries["place"].tolist(), strict=True))

    def of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns the place of each key. The places of all these keys must be known."""
        return np.array([self._places[key] for key in keys.tolist()], np.int64)


class PlaceAllocator:
    """The places that a server has allocated. Places are in banks, and a key's bank follows from
    the key alone. In each bank, keys get places in the order in which the server first sees them,
    until the bank is full. So, while all keys have places, the packets of a worker do not depend on
    the order in which other workers' keys came. cells: the number of places in a bank."""

    def __init__(self, cells: int, banks: int) -> None:
        self._cells = cells
        self._banks = [0] * banks
        self._given: dict[int, int] = {}

    @property
    def given(self) -> int:
        """The number of keys that have a place."""
        return len(self._given)

    def of(self, key: int) -> int:
        """Returns the place of a key, which is allocated if the key is new and never changes.
        Returns KEPT if the key's bank is full."""
        if key not in self._given:
            bank = key % len(self._banks)
            used = self._banks[bank]
            if used >= self._cells:
                return KEPT
            self._banks[bank] += 1
            self._given[key] = used * len(self._banks) + bank
        return self._given[key]


class Packet(NamedTuple):
    """The argument of one call: its bytes, and the keys to which its entries belong. `entries` and
    `indices` have the same length: entry number `entries[i]` is about the key with the index
    `indices[i]`."""

    body: bytes
    entries: NDArray[np.int64]
    indices: NDArray[np.int64]


_NO_PAIRS = np.zeros(PAIRS, PAIR)
_NO_PAIRS["place"] = NO_PLACE


def in_pairs(
    places: NDArray[np.int64], values: NDArray[np.uint32], indices: NDArray[np.int64]
) -> Iterator[Packet]:
    """Yields arguments of kind MAP for all the given places, in as few packets as possible. Pair p
    % PAIRS of a packet stands for place p, with the index p // PAIRS. A packet has each pair only
    once."""
    banks = places % PAIRS
    if places.size == 1:
        pairs = _NO_PAIRS.copy()
        pairs[int(banks[0])] = int(places[0]) // PAIRS, values[0]
        yield Packet(pairs.tobytes(), banks, indices)
        return
    order = np.argsort(banks, kind="stable")
    first = np.searchsorted(banks[order], np.arange(PAIRS))
    turns = np.empty(places.size, np.int64)
    turns[order] = np.arange(places.size) - first[banks[order]]
    for turn in range(int(turns.max(initial=-1)) + 1):
        chosen = np.flatnonzero(turns == turn)
        pairs = _NO_PAIRS.copy()
        pairs["place"][banks[chosen]] = places[chosen] // PAIRS
        pairs["value"][banks[chosen]] = values[chosen]
        yield Packet(pairs.tobytes(), banks[chosen], indices[chosen])


def one_by_one(places: NDArray[np.int64], indices: NDArray[np.int64]) -> Iterator[Packet]:
    """Yields one argument of kind MAP for each place. It has only this place, in its first pair.
    Methods that count need such arguments, because each of their calls is about the counter of one
    key."""
    for place, index in zip(places.tolist(), indices.tolist(), strict=True):
        pairs = _NO_PAIRS.copy()
        pairs["place"][0] = place
        yield Packet(pairs.tobytes(), np.zeros(1, np.int64), np.array([index]))


def in_keys(
    keys: NDArray[np.uint64], values: NDArray[np.uint32], indices: NDArray[np.int64]
) -> Iterator[Packet]:
    """Yields arguments of kind KEYS for all the given keys, PAIRS keys in each."""
    for first in range(0, keys.size, PAIRS):
        part = slice(first, first + PAIRS)
        entries = np.zeros(PAIRS, KEY)
        entries["place"] = UNUSED
        count = keys[part].size
        entries["place"][:count] = KEPT
        entries["key"][:count], entries["value"][:count] = keys[part], values[part]
        yield Packet(entries.tobytes(), np.arange(count), indices[part])

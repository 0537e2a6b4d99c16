"""Where keys are: 64-bit keys of an application, places of the switch's map
(docs/systems/netrpc.md, "Keys and places"). The server gives places out; workers remember those
that they were told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.systems.netrpc.wire import KEPT, KEY, NO_PLACE, PAIR, PAIRS

UNUSED = KEPT - 1
"""The place of an entry that is not used."""


class PlaceCache:
    """Keys and their places, as far as they are known: a place, or KEPT by the server."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}

    def unknown(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Those of the keys whose place is not known, each once."""
        missing = dict.fromkeys(key for key in keys.tolist() if key not in self._places)
        return np.array(list(missing), np.uint64)

    def learn(self, entries: NDArray[np.void]) -> None:
        """Takes places from an answer, an array of wire.KEY."""
        self._places.update(zip(entries["key"].tolist(), entries["place"].tolist(), strict=True))

    def of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns the places of keys, all of which are known."""
        return np.array([self._places[key] for key in keys.tolist()], np.int64)


class PlaceAllocator:
    """Gives keys their places, at a server: in each bank, keys get places in the order in which
    they come, as long as there are any. A key's bank follows from the key alone. While all keys
    have places, the packets that a worker sends therefore do not depend on the order in which
    others came. cells: places of a bank."""

    def __init__(self, cells: int, banks: int) -> None:
        self._cells = cells
        self._banks = [0] * banks
        self._given: dict[int, int] = {}

    @property
    def given(self) -> int:
        """How many keys have a place."""
        return len(self._given)

    def of(self, key: int) -> int:
        """The key's place, the same whenever it is asked for; or KEPT."""
        if key not in self._given:
            bank = key % len(self._banks)
            used = self._banks[bank]
            if used >= self._cells:
                return KEPT
            self._banks[bank] += 1
            self._given[key] = used * len(self._banks) + bank
        return self._given[key]


class Packet(NamedTuple):
    """An argument, and which of the keys each of its entries is: (entry, index) arrays."""

    body: bytes
    entries: NDArray[np.int64]
    indices: NDArray[np.int64]


def in_pairs(
    places: NDArray[np.int64], values: NDArray[np.uint32], indices: NDArray[np.int64]
) -> Iterator[Packet]:
    """Arguments of kind MAP, as few as possible: place p is index p // PAIRS of pair p % PAIRS, and
    a packet has each pair once."""
    banks = places % PAIRS
    order = np.argsort(banks, kind="stable")
    first = np.searchsorted(banks[order], np.arange(PAIRS))
    turns = np.empty(places.size, np.int64)
    turns[order] = np.arange(places.size) - first[banks[order]]
    for turn in range(int(turns.max(initial=-1)) + 1):
        chosen = np.flatnonzero(turns == turn)
        pairs = np.zeros(PAIRS, PAIR)
        pairs["place"] = NO_PLACE
        pairs["place"][banks[chosen]] = places[chosen] // PAIRS
        pairs["value"][banks[chosen]] = values[chosen]
        yield Packet(pairs.tobytes(), banks[chosen], indices[chosen])


def one_by_one(places: NDArray[np.int64], indices: NDArray[np.int64]) -> Iterator[Packet]:
    """Does the same for methods whose calls are each about the counter of one key, which the first
    pair names."""
    for place, index in zip(places.tolist(), indices.tolist(), strict=True):
        pairs = np.zeros(PAIRS, PAIR)
        pairs["place"] = NO_PLACE
        pairs["place"][0] = place
        yield Packet(pairs.tobytes(), np.zeros(1, np.int64), np.array([index]))


def in_keys(
    keys: NDArray[np.uint64], values: NDArray[np.uint32], indices: NDArray[np.int64]
) -> Iterator[Packet]:
    """Arguments of kind KEYS."""
    for first in range(0, keys.size, PAIRS):
        part = slice(first, first + PAIRS)
        entries = np.zeros(PAIRS, KEY)
        entries["place"] = UNUSED
        count = keys[part].size
        entries["place"][:count] = KEPT
        entries["key"][:count], entries["value"][:count] = keys[part], values[part]
        yield Packet(entries.tobytes(), np.arange(count), indices[part])

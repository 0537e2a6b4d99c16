"""The workload `push_pull`: each worker pushes values under keys. Then it pulls, for each of its
keys, the sum of all values that any worker pushed under this key in the round. Workers have
different keys, and a few keys are drawn very often."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.tensors import make_tensor
from agglab.hosts.workloads.base import InputKey
from agglab.hosts.workloads.library_text import library_text

ZIPF, PYTHON = "zipf", "python"
SOURCES = (ZIPF, PYTHON)
DRAWS, RANKS = 0x6472, 0x726B
"""Names of streams of random numbers."""


@dataclass(frozen=True)
class PushPull:
    """Pushes and pulls of values under keys (base.Work).

    elements: the number of times that each worker draws a key in a round; it pushes each drawn key
    once.

    source: `zipf` or `python`. With `zipf` there are `vocabulary` keys, and the key of rank r is
    drawn with a probability in proportion to r^-exponent. With `python`, the keys are the
    identifiers in the source text of Python's standard library; each worker begins at another place
    of the text in each round. drift: the number of rounds after which every rank gets another key;
    0 for never.
    """

    kind: ClassVar = "push_pull"
    in_place: ClassVar = False
    elements: int
    dtype: str
    source: str
    exponent: float
    vocabulary: int
    drift: int

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns a structured array with the fields `key` (uint64, ascending, each key once) and
        `value`."""
        keys = self.keys(key)
        pushed = np.zeros(keys.size, [("key", "u8"), ("value", self.dtype)])
        pushed["key"] = keys
        pushed["value"] = make_tensor(*key, keys.size, self.dtype)
        return pushed

    def keys(self, key: InputKey) -> NDArray[np.uint64]:
        """Returns the keys of the worker's input, without making the values."""
        return np.unique(self.sampled_keys(key))

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs["value"].dtype)

    def sampled_keys(self, key: InputKey) -> NDArray[np.uint64]:
        """Returns all keys that were drawn: uint64, of shape (elements,). A key that was drawn
        several times is included several times."""
        if self.source == PYTHON:
            text = library_text()
            first = int(_generator(DRAWS, *key).integers(text.numbers.size))
            return text.keys[text.part(first, self.elements)]
        uniform = _generator(DRAWS, *key).random(self.elements)
        ranks = np.searchsorted(_chances(self.exponent, self.vocabulary), uniform, side="right")
        era = key.round // self.drift if self.drift else 0
        return _scattered(ranks.astype(np.uint64), (key.seed << 16) + era)

    @property
    def keys_most(self) -> int:
        """The largest number of different keys that can occur in a round, over all workers."""
        return len(library_text().vocabulary) if self.source == PYTHON else self.vocabulary


def _generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


@lru_cache(maxsize=4)
def _chances(exponent: float, vocabulary: int) -> NDArray[np.float64]:
    """Returns, for each rank from 1 on, the probability that this rank or a smaller one is
    drawn."""
    weights = np.arange(1, vocabulary + 1, dtype=np.float64) ** -exponent
    chances: NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    chances[-1] = 1.0
    return chances


def _scattered(ranks: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Returns a key for each rank. The keys are spread over all 64 bits by the finaliser of
    SplitMix64, which is one-to-one (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014)."""
    keys = ranks + np.uint64((salt * 0x9E3779B97F4A7C15 + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    mixed: NDArray[np.uint64] = keys ^ (keys >> np.uint64(31))
    mixed[mixed == np.uint64(2**64 - 1)] = 0  # which is no key
    return mixed

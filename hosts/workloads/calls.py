"""`calls`: remote calls of an application that is no all-reduce. The applications are word counts
over the texts of Python's standard library, and critical sections under locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads.base import InputKey
from agglab.hosts.workloads.library_text import library_text

WORDCOUNT, LOCK = "wordcount", "lock"
APPLICATIONS = (WORDCOUNT, LOCK)
COUNTED = np.dtype([("key", np.uint64), ("value", np.int32)])
"""A word, and how often it occurs in a worker's part of the text. Keys are ascending, and each key
is there once."""
LOCKS = 4
"""The number of locks, which all workers share. Their keys are 0 to 3."""


@dataclass(frozen=True)
class Calls:
    """The calls of a worker in a round. See base.Work. elements: the number of words in the
    worker's part of the text, or the number of its critical sections. workers: the number of
    workers of the whole job, which share the text."""

    kind: ClassVar = "calls"
    in_place: ClassVar = False
    elements: int
    dtype: str
    application: str
    workers: int

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns COUNTED for wordcount. Returns int32 for lock: which lock each critical section
        needs."""
        if self.application == WORDCOUNT:
            keys, counts = np.unique(library_text().keys[self.part(key)], return_counts=True)
            counted = np.zeros(keys.size, COUNTED)
            counted["key"], counted["value"] = keys, counts
            return counted
        chance = np.random.default_rng([key.seed, key.job, key.rank, key.round])
        return chance.integers(0, LOCKS, self.elements, np.int32)

    def part(self, key: InputKey) -> NDArray[np.int32]:
        """Returns the numbers of the words in one worker's part of the text in one round. Parts
        follow one another, beginning at a place that seed and job choose. The first word of the
        text follows the last."""
        text = library_text()
        begin = int(np.random.default_rng([key.seed, key.job]).integers(text.numbers.size))
        return text.part(
            begin + (key.round * self.workers + key.rank) * self.elements, self.elements
        )

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Returns an array for the result. For wordcount, the result says for each key how often
        all workers have it. For lock, it says for each critical section the value of the lock's
        counter at the beginning."""
        return np.full(inputs.size, 1, np.int32)

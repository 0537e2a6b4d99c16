"""`calls`: what an application does that is no all-reduce. Word counts over the texts of Python's
own standard library, and critical sections under locks."""

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
"""A word, and how often a worker has it in its part of the text. Keys are sorted, each is there
once."""
LOCKS = 4
"""The number of locks of all workers; their keys are 0 to 3."""


@dataclass(frozen=True)
class Calls:
    """See base.Work. elements: words of a worker's part of the text in a round, or how many
    critical sections it goes through. workers: the number of workers of the whole job, which share
    the text."""

    kind: ClassVar = "calls"
    in_place: ClassVar = False
    elements: int
    dtype: str
    application: str
    workers: int

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """wordcount: COUNTED. lock: int32, which lock each section needs."""
        if self.application == WORDCOUNT:
            keys, counts = np.unique(library_text().keys[self.part(key)], return_counts=True)
            counted = np.zeros(keys.size, COUNTED)
            counted["key"], counted["value"] = keys, counts
            return counted
        chance = np.random.default_rng([key.seed, key.job, key.rank, key.round])
        return chance.integers(0, LOCKS, self.elements, np.int32)

    def part(self, key: InputKey) -> NDArray[np.int32]:
        """The words of one worker's part of the text in one round, by their numbers in it. Parts
        follow one another from a place that seed and job choose; after the last word of the text
        comes the first."""
        text = library_text()
        begin = int(np.random.default_rng([key.seed, key.job]).integers(text.numbers.size))
        return text.part(
            begin + (key.round * self.workers + key.rank) * self.elements, self.elements
        )

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """wordcount: for each key how often all workers have it. lock: what the counter of each
        section's lock stood at when it began."""
        return np.full(inputs.size, 1, np.int32)

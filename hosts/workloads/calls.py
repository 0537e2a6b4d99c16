"""The workload `calls`: remote calls of an application other than all-reduce. The application
counts words of the source text of Python's standard library (`wordcount`), or enters critical
sections that locks protect (`lock`)."""

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
    """The calls of a worker in a round (base.Work). elements: the number of words in the worker's
    part of the text, or the number of its critical sections. workers: the number of workers of the
    whole job, which share the text."""

    kind: ClassVar = "calls"
    in_place: ClassVar = False
    elements: int
    dtype: str
    application: str
    workers: int

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns, for `wordcount`, each word of the worker's part and how often it occurs there,
        of dtype COUNTED. Returns, for `lock`, the number of the lock that each critical section
        needs, as int32."""
        if self.application == WORDCOUNT:
            keys, counts = np.unique(library_text().keys[self.part(key)], return_counts=True)
            counted = np.zeros(keys.size, COUNTED)
            counted["key"], counted["value"] = keys, counts
            return counted
        chance = np.random.default_rng([key.seed, key.job, key.rank, key.round])
        return chance.integers(0, LOCKS, self.elements, np.int32)

    def part(self, key: InputKey) -> NDArray[np.int32]:
        """Returns the numbers of the words in one worker's part of the text in one round. The parts
        of all workers and rounds follow one another in the text, from a place that seed and job
        choose. The first word of the text follows the last."""
        text = library_text()
        begin = int(np.random.default_rng([key.seed, key.job]).integers(text.numbers.size))
        return text.part(
            begin + (key.round * self.workers + key.rank) * self.elements, self.elements
        )

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Returns an array for the result. For `wordcount`, the result has, for each key of the
        input, the number of its occurrences at all workers. For `lock`, it has, for each critical
        section, the value that the lock's counter had at the beginning of the section."""
        return np.full(inputs.size, 1, np.int32)

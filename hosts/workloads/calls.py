"""`calls`: what an application does that is no all-reduce. Word counts over the texts of Python's
own standard library, and critical sections under locks."""

from __future__ import annotations

import hashlib
import re
import sysconfig
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads.base import InputKey

WORDCOUNT, LOCK = "wordcount", "lock"
APPLICATIONS = (WORDCOUNT, LOCK)
WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
COUNTED = np.dtype([("key", np.uint64), ("value", np.int32)])
"""A word, and how often a worker has it in its part of the text. Keys are sorted, each is there
once."""
LOCKS = 4
"""Of all workers; their keys are 0 to 3."""


@dataclass(frozen=True)
class Calls:
    """See base.Work. elements: words of a worker's part of the text in a round, or how many
    critical sections it goes through. workers: of the whole job, which share the text."""

    kind: ClassVar = "calls"
    in_place: ClassVar = False
    elements: int
    dtype: str
    application: str
    workers: int

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """wordcount: COUNTED. lock: int32, which lock each section needs."""
        if self.application == WORDCOUNT:
            return counted(self.part(key))
        chance = np.random.default_rng([key.seed, key.job, key.rank, key.round])
        return chance.integers(0, LOCKS, self.elements, np.int32)

    def part(self, key: InputKey) -> Sequence[bytes]:
        """The words of one worker's part of the text in one round. Parts follow one another from a
        place that seed and job choose; after the last word of the text comes the first."""
        text = words()
        begin = int(np.random.default_rng([key.seed, key.job]).integers(len(text)))
        first = begin + (key.round * self.workers + key.rank) * self.elements
        return [text[(first + i) % len(text)] for i in range(self.elements)]

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """wordcount: for each key how often all workers have it. lock: what the counter of each
        section's lock stood at when it began."""
        return np.full(inputs.size, 1, np.int32)


def counted(part: Sequence[bytes]) -> NDArray[Any]:
    """COUNTED of some words."""
    counts = Counter(part)
    rows = sorted((word_key(word), count) for word, count in counts.items())
    return np.array(rows, COUNTED)


def word_key(word: bytes) -> int:
    """64 bits of a word's hash. Two words of the text have not the same: a test looks."""
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "big")


@lru_cache(maxsize=1)
def words() -> Sequence[bytes]:
    """The identifiers and keywords of the modules that lie directly in the standard library's
    folder, in the order of their names."""
    return WORD.findall(b"\n".join(path.read_bytes() for path in texts()))


def texts() -> Sequence[Path]:
    """Where they come from."""
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


def texts_sha256() -> str:
    """Identifies the texts: they are those of whatever Python runs."""
    digest = hashlib.sha256()
    for path in texts():
        digest.update(path.read_bytes())
    return digest.hexdigest()

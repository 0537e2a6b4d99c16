"""`push_pull`: each worker pushes values under keys, and pulls the sums of all that was pushed in
the round under these keys. Workers have different keys, few of which are drawn very often."""

from __future__ import annotations

import hashlib
import keyword
import re
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.tensors import make_tensor
from agglab.hosts.workloads.base import InputKey

ZIPF, PYTHON = "zipf", "python"
SOURCES = (ZIPF, PYTHON)
DRAWS, RANKS = 0x6472, 0x726B
"""Names of streams of random numbers."""
IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
NOT_READ = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True)
class PushPull:
    """See base.Work. elements: keys that each worker draws in a round; it pushes each once.

    source: `zipf`, where the key of rank r, of so many as `vocabulary`, is drawn with a chance in
    proportion to r^-exponent; or `python`, where the keys are the identifiers of the source text of
    Python's own standard library, from a place of its own for each worker and round on. drift:
    after so many rounds every rank has another key; 0 for never.
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
        """Structured: the fields `key` (uint64, ascending, each once) and `value`."""
        keys = np.unique(self.draws(key))
        pushed = np.zeros(keys.size, [("key", "u8"), ("value", self.dtype)])
        pushed["key"] = keys
        pushed["value"] = make_tensor(*key, keys.size, self.dtype)
        return pushed

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs["value"].dtype)

    def draws(self, key: InputKey) -> NDArray[np.uint64]:
        """The keys as they are drawn, most of the hot ones many times: uint64, of shape
        (elements,)."""
        if self.source == PYTHON:
            text = library_text().keys
            first = int(_generator(DRAWS, *key).integers(text.size))
            return text[(first + np.arange(self.elements)) % text.size]
        uniform = _generator(DRAWS, *key).random(self.elements)
        ranks = np.searchsorted(_chances(self.exponent, self.vocabulary), uniform, side="right")
        era = key.round // self.drift if self.drift else 0
        return _scattered(ranks.astype(np.uint64), (key.seed << 16) + era)

    @property
    def keys_most(self) -> int:
        """How many different keys a round can have, of all workers."""
        return library_text().vocabulary if self.source == PYTHON else self.vocabulary


def _generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


@lru_cache(maxsize=4)
def _chances(exponent: float, vocabulary: int) -> NDArray[np.float64]:
    """For each rank the chance that it or one before it is drawn."""
    weights = np.arange(1, vocabulary + 1, dtype=np.float64) ** -exponent
    chances: NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    chances[-1] = 1.0
    return chances


def _scattered(ranks: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """A key for each rank, all over the 64 bits: the finaliser of SplitMix64, which is one-to-one
    (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014)."""
    keys = ranks + np.uint64((salt * 0x9E3779B97F4A7C15 + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    mixed: NDArray[np.uint64] = keys ^ (keys >> np.uint64(31))
    mixed[mixed == np.uint64(2**64 - 1)] = 0  # which is no key
    return mixed


@dataclass(frozen=True)
class LibraryText:
    """The identifiers of a source text in their order, as keys. sha256: of the text."""

    keys: NDArray[np.uint64]
    vocabulary: int
    sha256: str


@lru_cache(maxsize=1)
def library_text() -> LibraryText:
    """Of Python's own standard library, without its tests. It depends on Python's version."""
    root, digest = Path(sysconfig.get_path("stdlib")), hashlib.sha256()
    reserved = {word.encode() for word in keyword.kwlist}
    numbers: dict[bytes, int] = {}
    found: list[int] = []
    for path in sorted(root.rglob("*.py")):
        if NOT_READ.intersection(path.relative_to(root).parts):
            continue
        text = path.read_bytes()
        digest.update(text)
        for word in IDENTIFIER.findall(text):
            if word not in reserved:
                found.append(numbers.setdefault(word, len(numbers)))
    hashes = [int.from_bytes(hashlib.sha256(word).digest()[:8], "big") for word in numbers]
    keys = np.array(hashes, np.uint64)[np.array(found)]
    keys.flags.writeable = False
    return LibraryText(keys, len(numbers), digest.hexdigest())

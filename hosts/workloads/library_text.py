"""The source text of Python's standard library, as data for workloads. It has real words, whose
frequencies are skewed as in natural language, and it is on every machine. The text depends on
Python's version; `sha256` identifies it."""

from __future__ import annotations

import hashlib
import keyword
import re
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class LibraryText:
    """The words of the text: its identifiers, without Python's keywords.

    vocabulary: each word once, in the order of first appearance. The index of a word in it is the
    word's number. numbers: the numbers of all words in the order of the text, as a read-only int32
    array. sha256: the hash of the files.
    """

    vocabulary: Sequence[bytes]
    numbers: NDArray[np.int32]
    sha256: str

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """The key of each word of the vocabulary: 64 bits of the word's hash. No two words have the
        same key."""
        hashes = [hashlib.blake2b(word, digest_size=8).digest() for word in self.vocabulary]
        keys = np.array([int.from_bytes(each, "big") for each in hashes], np.uint64)
        assert np.unique(keys).size == keys.size, "two words with the same hash"
        keys.flags.writeable = False
        return keys

    def part(self, first: int, count: int) -> NDArray[np.int32]:
        """Returns the numbers of `count` consecutive words, from position `first` of the text on.
        The first word of the text follows the last."""
        return self.numbers[(first + np.arange(count)) % self.numbers.size]


@lru_cache(maxsize=1)
def library_text() -> LibraryText:
    """Returns the text of the standard library of the running Python: the modules directly in its
    folder, in the order of their names."""
    digest = hashlib.sha256()
    reserved = {word.encode() for word in keyword.kwlist}
    numbers: dict[bytes, int] = {}
    found: list[int] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_bytes()
        digest.update(text)
        for word in WORD.findall(text):
            if word not in reserved:
                found.append(numbers.setdefault(word, len(numbers)))
    sequence = np.array(found, np.int32)
    sequence.flags.writeable = False
    return LibraryText(tuple(numbers), sequence, digest.hexdigest())

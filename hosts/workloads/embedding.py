"""The workload `embedding_allreduce`: the sum over all workers of the gradient of an embedding. A
batch touches only the rows of the embedding's matrix whose words are in the batch, so most of the
gradient is zero.

The words are those of the source text of Python's standard library (library_text.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.tensors import Sparsity, make_tensor
from agglab.hosts.workloads.base import InputKey
from agglab.hosts.workloads.library_text import library_text

RANK, HASHED = "rank", "hashed"
ROW_ORDERS = (RANK, HASHED)
TEXT = 0x7478
"""The name of a stream of random numbers."""


@dataclass(frozen=True)
class Embedding:
    """The all-reduce of an embedding's gradient (base.Work).

    elements: the number of values of the matrix. Its rows have `width` values; the last row may be
    shorter. tokens: the number of words in a worker's batch. These words are consecutive in the
    text, and each worker begins at another place in each round.

    row_order: the rule that gives each word a row. With `rank`, the most frequent word of the text
    has the first row, the next most frequent word the second, and so on. With `hashed`, the hash of
    the word gives the row. If there are more words than rows, several words have the same row.
    """

    kind: ClassVar = "embedding_allreduce"
    in_place: ClassVar = True
    elements: int
    dtype: str
    width: int
    tokens: int
    row_order: str

    @property
    def rows(self) -> int:
        """The number of rows of the matrix."""
        return -(-self.elements // self.width)

    def inputs(self, key: InputKey) -> NDArray[Any]:
        return self.part(key, 0, self.elements)

    def part(self, key: InputKey, start: int, count: int) -> NDArray[Any]:
        """Returns `count` values of one worker's input, beginning at position `start`."""
        rows, gradients = _gradients(self, key)
        first, end = start // self.width, -(-(start + count) // self.width)
        part = np.zeros((end - first, self.width), self.dtype)
        low, high = np.searchsorted(rows, (first, end))
        part[rows[low:high] - first] = gradients[low:high]
        offset = start - first * self.width
        return part.reshape(-1)[offset : offset + count]

    def batch_rows(self, key: InputKey) -> NDArray[np.int64]:
        """Returns the row of each word of a batch: int64, of shape (tokens,)."""
        text = library_text()
        chance = np.random.PCG64(np.random.SeedSequence((TEXT, *key)))
        first = int(chance.random_raw() % text.numbers.size)
        words = text.part(first, self.tokens)
        row_of = _ranks() if self.row_order == RANK else text.keys
        found: NDArray[np.int64] = (row_of[words] % np.uint64(max(1, self.rows))).astype(np.int64)
        return found

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(inputs.size, 1, inputs.dtype)


@lru_cache(maxsize=1)
def _ranks() -> NDArray[np.uint64]:
    """Returns, for each word of the vocabulary, how many words are more frequent in the text. Of
    two equally frequent words, the one that appears first in the text counts as more frequent."""
    counts = np.bincount(library_text().numbers)
    ranks = np.empty(counts.size, np.uint64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(counts.size, dtype=np.uint64)
    return ranks


@lru_cache(maxsize=64)
def _gradients(work: Embedding, key: InputKey) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Returns the rows that a batch touches, ascending, and the gradient of each row. The gradient
    of a row is the sum of one random gradient for each occurrence of its words in the batch. These
    are added in the order of the text."""
    rows, place = np.unique(work.batch_rows(key), return_inverse=True)
    values = work.tokens * work.width
    no_zeros = Sparsity(1.0, work.width, "full", 1, values)
    each = make_tensor(*key, values, work.dtype, 0, no_zeros).reshape(work.tokens, work.width)
    sums = np.zeros((rows.size, work.width), work.dtype)
    np.add.at(sums, place.reshape(-1), each)
    sums.flags.writeable = False
    return rows, sums

"""Asynchronous training of a small classifier: a worker's input for a run, and the arithmetic of
one step.

The task is made from a seed. A document is a bag of words whose frequencies follow Zipf's law. The
words whose number is c modulo the number of classes are more frequent in documents of class c. A
linear classifier learns with the multi-class hinge loss of Crammer and Singer (JMLR 2001). All
numbers are integers, and weights have the unit 1 / SCALE. So a run can be repeated bit for bit on
any machine.

All `batch` documents of a step have the same length, which is drawn for each step: 8 words times a
power of two. Each length is half as likely as the next shorter one; only the longest is as likely
as the one before it. A step on long documents touches more words, so its update is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads.base import InputKey

SCALE = 1 << 16
"""The number of units in a weight of 1."""
WORDS_MIN, WORDS_MAX = 8, 256
"""The smallest and the largest number of words in a document."""
NO_WORD = -1
DOCUMENTS, TIMES, HELD_OUT = range(1001, 1004)
"""Names of streams of random numbers."""
HELD_OUT_DOCUMENTS = 256
TYPICAL_ONE_IN = 4
"""On average, one of this number of a document's words is drawn from the words of its class."""
TRIES_PER_UPDATE = 4
"""The number of steps for each update of a run for which a worker's account has room."""

DOCUMENT = np.dtype(
    [("words", "i4", (WORDS_MAX,)), ("halvings", "i4"), ("label", "i4"), ("compute_ns", "i8")]
)
"""A document. words: the numbers of its words, with NO_WORD after the last. halvings: the document
has WORDS_MIN * 2^halvings words. compute_ns: how long the step takes that begins with this
document."""

COMMIT = np.dtype(
    [
        ("version", "i8"),
        ("read", "i8"),
        ("at_ns", "i8"),
        ("replicated", "i8"),
        ("group", "u4"),
        ("step", "u4"),
        ("rank", "u2"),
        ("epoch", "u2"),
        ("spare", "u4"),
    ]
)
"""One update in a server's log.

version: the version of the model after the last update of the same group. read: the version from
which the gradient was computed. at_ns: the time of the commit, on the server's clock. replicated:
the version that the replica was known to have at the commit, or -1 if there is no replica. epoch:
how many times another server had taken over.
"""

STEP = np.dtype(
    [
        ("read", "i8"),
        ("version", "i8"),
        ("computed_ns", "i8"),
        ("ended_ns", "i8"),
        ("epoch", "u4"),
        ("outcome", "u4"),
    ]
)
"""One step in a worker's own account. read: the version from which the gradient was computed.
version: the version with which the update was committed. epoch: the epoch of the model that was
read."""
UNUSED, EMPTY, COMMITTED, STALE, LARGE, LOST, OVER, UNFINISHED = range(8)
"""The outcomes of a step. EMPTY: the model was right about all documents, so there was nothing to
send. STALE: the update would have been older than the bound. LARGE: the norm of this update alone
exceeds the replica's bound. LOST: the server that had the update failed. OVER: the run ended before
the update was granted. UNFINISHED: the run ended before the update was computed from the model that
the worker had read for it."""


@dataclass(frozen=True)
class AsyncSgd:
    """One training run. See also base.Work.

    features: the number of words in the vocabulary. classes: the number of classes of documents.
    samples: the number of documents of each worker. batch: the number of documents of a step. rate:
    the number of units by which a document of WORDS_MIN words changes a weight for each occurrence
    of a word. compute_ns: a step's mean time. updates, time_ns: the run ends when `updates` updates
    are committed, or, if time_ns is not 0, `time_ns` after its first request.
    """

    kind: ClassVar = "async_sgd"
    in_place: ClassVar = False
    dtype: ClassVar = "int32"
    features: int
    classes: int
    samples: int
    batch: int
    rate: int
    compute_ns: int
    updates: int
    time_ns: int = 0

    @property
    def elements(self) -> int:
        """The number of weights of the model."""
        return self.features * self.classes

    @property
    def steps_max(self) -> int:
        """The number of steps for which a worker's record of its steps (`account`) has room."""
        return TRIES_PER_UPDATE * self.updates

    @property
    def result(self) -> np.dtype:
        """The dtype of a worker's result of a run: the model, the server's log of commits, and the
        worker's account of its steps. commits, steps: how many entries of `log` and `account` are
        used."""
        return np.dtype(
            [
                ("began_ns", "i8"),
                ("commits", "i8"),
                ("steps", "i8"),
                ("log", COMMIT, (self.updates,)),
                ("account", STEP, (self.steps_max,)),
                ("model", "<i4", (self.elements + self.elements % 2,)),
            ]
        )

    def documents(self, key: tuple[int, ...], count: int) -> NDArray[np.void]:
        """Returns `count` documents, of dtype DOCUMENT. key: the seed with which they are drawn at
        random."""
        found = np.zeros(count, DOCUMENT)
        chance = _generator(*key, DOCUMENTS)
        most = (WORDS_MAX // WORDS_MIN).bit_length() - 1
        halvings = np.minimum(_trailing_zeros(chance.random_raw(-(-count // self.batch))), most)
        found["halvings"] = np.repeat(halvings, self.batch)[:count]
        found["label"] = chance.random_raw(count) % np.uint64(self.classes)
        used = np.arange(WORDS_MAX) < (WORDS_MIN << found["halvings"])[:, np.newaxis]
        words = zipf(chance.random_raw(used.size)[used.ravel()], self.features)
        labels = np.repeat(found["label"], WORDS_MIN << found["halvings"])
        typical = words - words % self.classes + labels
        chosen = chance.random_raw(used.size)[used.ravel()] % np.uint64(TYPICAL_ONE_IN) == 0
        found["words"] = NO_WORD
        found["words"][used] = np.where(chosen & (typical < self.features), typical, words)
        times = _generator(*key, TIMES).random_raw(count) >> np.uint64(54)  # 0 to 1023
        found["compute_ns"] = self.compute_ns // 2 + self.compute_ns * times.astype("i8") // 1023
        return found

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns the worker's documents: DOCUMENT of shape (samples,)."""
        return self.documents(key, self.samples)

    def held_out(self, seed: int, job: int) -> NDArray[np.void]:
        """Returns the documents on which the testbed evaluates models. No worker has them."""
        return _held_out(self, seed, job)

    def room(self, inputs: NDArray[Any]) -> NDArray[np.int64]:
        """Returns memory for one `result`, as a flat array of int64."""
        return np.zeros(self.result.itemsize // 8, np.int64)

    def rows_of(self, documents: NDArray[np.void], step: int) -> NDArray[np.void]:
        """Returns the documents of step `step`. documents: all documents of the worker."""
        places = np.arange(step * self.batch, (step + 1) * self.batch) % len(documents)
        return documents[places]

    def update(self, model: NDArray[np.int32], rows: NDArray[np.void]) -> NDArray[np.int32]:
        """Returns the update of a step, which is to be added to the model: int32 of shape
        (elements,). It is the rate times the negative subgradient of the hinge loss, summed over
        the documents of the step. rows: these documents."""
        weights = model.reshape(self.features, self.classes)
        found = np.zeros(self.elements, np.int32)
        for row in rows:
            scores = scores_of(weights, row)
            rival = rival_of(scores, row)
            if rival < 0:
                continue
            words = row["words"][: WORDS_MIN << int(row["halvings"])]
            change = max(1, self.rate >> int(row["halvings"]))
            np.add.at(found, words * self.classes + row["label"], change)
            np.subtract.at(found, words * self.classes + rival, change)
        return found


@lru_cache(maxsize=8)
def _held_out(work: AsyncSgd, seed: int, job: int) -> NDArray[np.void]:
    """Returns `AsyncSgd.held_out`, which is asked for after every run of a job."""
    found = work.documents((seed, job, HELD_OUT), HELD_OUT_DOCUMENTS)
    found.flags.writeable = False
    return found


def scores_of(weights: NDArray, row: NDArray[np.void]) -> NDArray[np.int64]:
    """Returns the document's score for each class: the mean weight of its words, times WORDS_MIN,
    rounded down."""
    words = row["words"][: WORDS_MIN << int(row["halvings"])]
    return weights[words].sum(axis=0, dtype=np.int64) >> int(row["halvings"])


def rival_of(scores: NDArray[np.int64], row: NDArray[np.void]) -> int:
    """Returns the wrong class with the highest score, if this score is more than the right class's
    score minus a margin of 1. Returns -1 otherwise."""
    margins = scores + SCALE
    margins[row["label"]] = scores[row["label"]]
    rival = int(np.argmax(margins))
    return -1 if margins[rival] <= scores[row["label"]] else rival


def zipf(raw: NDArray[np.uint64], features: int) -> NDArray[np.int64]:
    """Returns a word from 0 to features - 1 for each random number. The probability of word w is
    proportional to 1 / (w + 1)."""
    shares = SHARES_MAX // np.arange(1, features + 1, dtype=np.uint64)
    ends = np.cumsum(shares)
    return np.searchsorted(ends, raw % ends[-1], side="right")


SHARES_MAX = np.uint64(1 << 32)


def norm_of(update: NDArray[np.int32]) -> int:
    """Returns the Euclidean length of an update in units, rounded up."""
    wide = np.abs(update.astype(np.int64)).astype(np.uint64)
    each = wide * wide  # below 2^63, but not so their sum
    low = np.uint64(0xFFFFFFFF)
    squares = (int((each >> np.uint64(32)).sum()) << 32) + int((each & low).sum())
    root = isqrt(squares)
    return root + (root * root < squares)


def _generator(*key: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(key))


def _trailing_zeros(raw: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Returns, for each number, how many of its lowest bits are 0."""
    lowest = raw & (~raw + np.uint64(1))
    exponents: NDArray[np.int64] = np.frexp(lowest.astype(np.float64))[1].astype(np.int64)
    return np.maximum(exponents - 1, 0)

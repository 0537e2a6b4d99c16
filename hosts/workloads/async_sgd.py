"""Asynchronous training of a small classifier: what a worker brings to a run, and the arithmetic of
one step.

The task is made from a seed. A document is a bag of words whose frequencies follow Zipf's law; in
those of class c, words whose number is c modulo the number of classes are more frequent than in
others. A linear classifier learns with the multi-class hinge loss of Crammer and Singer (JMLR
2001). All numbers are integers, weights in units of 1 / SCALE, so that a run can be repeated bit
for bit on any machine.

A step takes `batch` documents of one length, which is drawn anew for each step: 8 words or more,
each doubling half as likely. A step on long documents touches more words, so its update is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads.base import InputKey

SCALE = 1 << 16
"""Units in a weight of 1."""
WORDS_MIN, WORDS_MAX = 8, 256
"""Words of a document."""
NO_WORD = -1
DOCUMENTS, TIMES, HELD_OUT = range(1001, 1004)
"""Names of streams of random numbers."""
HELD_OUT_DOCUMENTS = 256
TYPICAL_ONE_IN = 4
"""On average, one in this many of a document's words is drawn from the words of its class."""
TRIES_PER_UPDATE = 4
"""A worker can tell of so many steps for each update that a run commits."""

DOCUMENT = np.dtype(
    [("words", "i4", (WORDS_MAX,)), ("halvings", "i4"), ("label", "i4"), ("compute_ns", "i8")]
)
"""words: NO_WORD after the last. halvings: a document has WORDS_MIN * 2^halvings words. compute_ns:
how long the step takes that begins with this document."""

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
"""One update in a server's log. version: what the model became with the last update of its group;
read: the version that its gradient was computed of. at_ns: on the server's clock. replicated: the
version that the replica was known to have when it was committed, and -1 where there is no replica.
epoch: how often another server had taken over."""

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
"""One step in a worker's own account. version: where it was committed; epoch: of the model that it
read."""
UNUSED, EMPTY, COMMITTED, STALE, LARGE, LOST, OVER = range(7)
"""Outcomes of a step. EMPTY: no document was wrong, so that there was nothing to send; STALE: it
would have been older than the bound; LARGE: its norm alone is beyond the replica's bound; LOST:
with the server that failed; OVER: the run ended first."""


@dataclass(frozen=True)
class AsyncSgd:
    """One training run. features: the number of words of the vocabulary; classes: the number of
    classes of documents; samples: documents of each worker; batch: documents of a step; rate: units
    that a document of WORDS_MIN words moves a weight for each time that a word is in it;
    compute_ns: a step's mean time; updates, time_ns: the run ends when so many updates are
    committed, or so long after its first request if time_ns is not 0. See also base.Work."""

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
        """Weights of the model."""
        return self.features * self.classes

    @property
    def steps_max(self) -> int:
        """Steps that a worker's account has room for."""
        return TRIES_PER_UPDATE * self.updates

    @property
    def result(self) -> np.dtype:
        """Returns what a worker holds when the run is over: the model, the server's log, its own
        account. commits, steps: how many of `log` and `account` are used."""
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
        """DOCUMENTs of shape (count,), named by a key."""
        found = np.zeros(count, DOCUMENT)
        chance = _generator(*key, DOCUMENTS)
        most = (WORDS_MAX // WORDS_MIN).bit_length() - 1
        halvings = np.minimum(_trailing_zeros(chance.random_raw(-(-count // self.batch))), most)
        found["halvings"] = np.repeat(halvings, self.batch)[:count]
        found["label"] = chance.random_raw(count) % np.uint64(self.classes)
        words = zipf(chance.random_raw(count * WORDS_MAX).reshape(count, WORDS_MAX), self.features)
        typical = words - words % self.classes + found["label"][:, np.newaxis]
        chosen = chance.random_raw(count * WORDS_MAX).reshape(count, WORDS_MAX)
        is_typical = (chosen % np.uint64(TYPICAL_ONE_IN) == 0) & (typical < self.features)
        found["words"] = np.where(is_typical, typical, words)
        places = np.arange(WORDS_MAX)
        found["words"][places >= (WORDS_MIN << found["halvings"])[:, np.newaxis]] = NO_WORD
        times = _generator(*key, TIMES).random_raw(count) >> np.uint64(54)  # 0 to 1023
        found["compute_ns"] = self.compute_ns // 2 + self.compute_ns * times.astype("i8") // 1023
        return found

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """The worker's documents: DOCUMENT of shape (samples,)."""
        return self.documents(key, self.samples)

    def held_out(self, seed: int, job: int) -> NDArray[np.void]:
        """Documents of nobody, by which models are judged."""
        return self.documents((seed, job, HELD_OUT), HELD_OUT_DOCUMENTS)

    def room(self, inputs: NDArray[Any]) -> NDArray[np.int64]:
        """Memory for a `result`, flat."""
        return np.zeros(self.result.itemsize // 8, np.int64)

    def rows_of(self, documents: NDArray[np.void], step: int) -> NDArray[np.void]:
        """The documents of a worker's step."""
        places = np.arange(step * self.batch, (step + 1) * self.batch) % len(documents)
        return documents[places]

    def update(self, model: NDArray[np.int32], rows: NDArray[np.void]) -> NDArray[np.int32]:
        """Returns what a step adds to the model, int32 of shape (elements,): the rate times the
        negative subgradient of the hinge loss, summed over its documents."""
        weights = model.reshape(self.features, self.classes)
        found = np.zeros((self.features, self.classes), np.int32)
        for row in rows:
            scores = scores_of(weights, row)
            rival = rival_of(scores, row)
            if rival < 0:
                continue
            words = row["words"][: WORDS_MIN << int(row["halvings"])]
            change = max(1, self.rate >> int(row["halvings"]))
            np.add.at(found[:, row["label"]], words, change)
            np.subtract.at(found[:, rival], words, change)
        return found.reshape(-1)


def scores_of(weights: NDArray, row: NDArray[np.void]) -> NDArray[np.int64]:
    """Returns the score of each class: the mean weight of the document's words, times WORDS_MIN,
    rounded down."""
    words = row["words"][: WORDS_MIN << int(row["halvings"])]
    return weights[words].sum(axis=0, dtype=np.int64) >> int(row["halvings"])


def rival_of(scores: NDArray[np.int64], row: NDArray[np.void]) -> int:
    """The other class that comes within a margin of 1 of the right one, and closest; -1 if none
    does."""
    margins = scores + SCALE
    margins[row["label"]] = scores[row["label"]]
    rival = int(np.argmax(margins))
    return -1 if margins[rival] <= scores[row["label"]] else rival


def zipf(raw: NDArray[np.uint64], features: int) -> NDArray[np.int64]:
    """Maps random numbers to words from 0 to features - 1. The probability of word w is
    proportional to 1 / (w + 1)."""
    shares = SHARES_MAX // np.arange(1, features + 1, dtype=np.uint64)
    ends = np.cumsum(shares)
    return np.searchsorted(ends, raw % ends[-1], side="right")


SHARES_MAX = np.uint64(1 << 32)


def norm_of(update: NDArray[np.int32]) -> int:
    """The Euclidean length of an update in units, rounded up."""
    wide = np.abs(update.astype(np.int64)).astype(np.uint64)
    each = wide * wide  # below 2^63, but not so their sum
    low = np.uint64(0xFFFFFFFF)
    squares = (int((each >> np.uint64(32)).sum()) << 32) + int((each & low).sum())
    root = isqrt(squares)
    return root + (root * root < squares)


def _generator(*key: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(key))


def _trailing_zeros(raw: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Returns for each number how many of its last bits are 0."""
    lowest = raw & (~raw + np.uint64(1))
    exponents: NDArray[np.int64] = np.frexp(lowest.astype(np.float64))[1].astype(np.int64)
    return np.maximum(exponents - 1, 0)

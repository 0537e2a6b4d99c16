"""The order in which the all-reduces of a script are carried out, and how all ranks agree on it.

An all-reduce without a priority keeps its place: it begins after all earlier ones and before all
later ones. The consecutive all-reduces with priorities between two such places may overtake each
other. Before each turn of these, all ranks vote: they sum a few integers, which say of each
all-reduce whether the rank has begun it. Of the all-reduces that all ranks have begun, the one with
the highest priority gets the turn. A turn has one piece, or several small ones that have as many
values as one piece together. Every rank derives this from the same sums, so none decides alone.

All ranks begin the same all-reduces in the same order. Hence the oldest all-reduce in question is
the same at all ranks, and every rank that votes has begun it. A vote therefore always has a result.
The integers also contain a mark of each all-reduce, by which at least one rank notices if the ranks
disagree about it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.training.jobs import Job, Piece

PIECE_ELEMENTS = 65_536
"""The largest number of values in a piece of an all-reduce with a priority, and in a turn. An
urgent all-reduce waits for at most one turn of others."""
AHEAD = 64
"""A vote is about this number of all-reduces: the oldest ones that have a piece left."""
SUM_MAX = 2**31 - 1
VOTE_DTYPE = "int32"


def vote_elements(elements: int) -> int:
    """Returns the number of integers in a vote, 0 if there is no room for a vote. elements: the
    largest number of values in a reduction. No all-reduce of integers has a piece of this length
    (tensors.py). So workers notice it if some ranks vote while others reduce."""
    return 2 * min(AHEAD, elements // 2)


class Disagreement(RuntimeError):
    """Raised if the ranks did not begin the same all-reduces. The message is one line."""


@dataclass(frozen=True)
class Vote:
    """A vote about the next turn.

    jobs: the jobs that this rank has begun and that have a piece left, beginning with the oldest.
    workers: the number of ranks. ahead: the number of jobs that a vote is about. most: the largest
    number of values in a turn.
    """

    jobs: Sequence[Job]
    workers: int
    ahead: int
    most: int = PIECE_ELEMENTS

    def values(self) -> NDArray[np.int32]:
        """Returns this rank's integers: for each job, whether it has begun (1 or 0), and then for
        each job its mark."""
        found = np.zeros((2, self.ahead), np.int32)
        for n, job in enumerate(self.jobs):
            found[:, n] = 1, self._mark(job)
        return found.reshape(-1)

    def elected(self, sums: NDArray[np.int32]) -> list[Job]:
        """Returns the jobs whose pieces have the next turn. A job is named once for each piece.
        sums: the sums of all ranks' integers. Raises Disagreement if they show that the ranks did
        not begin the same all-reduces."""
        begun, marks = sums.reshape(2, -1)
        common = list(takewhile(lambda n: begun[n] == self.workers, range(len(self.jobs))))
        alike = all(marks[n] == self.workers * self._mark(self.jobs[n]) for n in common)
        if not common or not alike:
            raise Disagreement(
                "the ranks disagree about an all-reduce with a priority: all ranks have to begin "
                "the same all-reduces in the same order, with the same sizes, types and priorities"
            )
        return _turn([self.jobs[n] for n in common], self.most)

    def _mark(self, job: Job) -> int:
        """Returns a number by which two jobs can be told apart. The sum over all ranks fits into 32
        bits, and equals `workers` times the mark at every rank only if all marks are equal."""
        pieces = [(each.elements, each.dtype) for each in job.pieces]
        text = f"{job.priority} {job.asked} {job.agreement.number} {pieces}"
        return crc32(text.encode()) % (SUM_MAX // self.workers + 1)


def _turn(jobs: Sequence[Job], most: int) -> list[Job]:
    """Returns the jobs whose pieces have a turn, beginning with the most urgent one."""
    found: list[Job] = []
    elements = 0
    for job in sorted(jobs, key=_urgency, reverse=True):  # of equals, the older one first
        for piece in job.pieces[job.asked :]:
            elements += piece.elements
            if found and elements > most:
                return found
            found.append(job)
    return found


def _urgency(job: Job) -> int:
    assert job.priority is not None, "votes are about jobs with priorities"
    return job.priority


class Order:
    """The jobs that have a piece left, in the order in which they were added. Several threads may
    use it. workers: the number of ranks. elements: the largest number of values in a reduction."""

    def __init__(self, workers: int, elements: int) -> None:
        self._workers, self._ahead = workers, vote_elements(elements) // 2
        self._most = min(PIECE_ELEMENTS, elements)
        self._jobs: list[Job] = []
        self._closed = False
        self._changed = threading.Condition()

    def add(self, job: Job) -> None:
        """Adds a job with at least one piece."""
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()

    def close(self) -> None:
        """Lets `oldest` return None when no jobs are left."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def oldest(self) -> Job | None:
        """Waits until there is a job, and returns the oldest one. Returns None if there is none and
        the order is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            return self._jobs[0] if self._jobs else None

    def vote(self) -> Vote:
        """Returns a vote about the next turn. The oldest job must have a priority."""
        with self._changed:
            candidates = takewhile(lambda job: job.priority is not None, self._jobs[: self._ahead])
            return Vote(list(candidates), self._workers, self._ahead, self._most)

    def take(self, job: Job) -> tuple[Piece, bool]:
        """Removes the next piece of a job. Returns the piece, and whether it overtakes an older
        job."""
        with self._changed:
            overtakes = job is not self._jobs[0]
            piece = job.pieces[job.asked]
            job.asked += 1
            if job.asked == len(job.pieces):
                self._jobs.remove(job)
            return piece, overtakes

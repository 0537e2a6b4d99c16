"""Verification of rounds: what every worker received against an independent computation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from agglab.hosts import own_worker
from agglab.testbed.backend import Backend
from agglab.testbed.received import Received
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.systems.common import tensor
from agglab.testbed.verify import Verdict, verify

NOTHING = Received(None)


@dataclass(frozen=True)
class Attempt:
    """What came of one attempt at a round. members: who took part, by rank of the job; received:
    rank -> what that worker had; over: whether all of them came to the end."""

    number: int
    members: tuple[int, ...]
    received: Mapping[int, Received]
    over: bool


class Judge:
    """Asks the system what results have to be."""

    def __init__(self, backend: Backend, resolved: ResolvedScenario) -> None:
        self._backend = backend
        self._system, self._resolved = resolved.system, resolved

    def collect(self, job: Job, number: int, members: Sequence[int], over: bool) -> Attempt:
        """What the members have received, which the next attempt would replace. Of a round that
        was broken off, only those who had come to its end have received anything."""
        taken = {rank: self._backend.received(job.number, rank, number) for rank in members}
        received = {rank: one or NOTHING for rank, one in taken.items() if one is not None or over}
        return Attempt(number, tuple(members), received, over)

    def verdict(self, job: Job, attempt: Attempt) -> Verdict:
        """What every member received, each element of it. A place that is wrong has the rank in the
        job."""
        active = replace(self._resolved.whole(job), members=attempt.members)

        def inputs(start: int, count: int) -> list[npt.NDArray[Any]]:
            return [
                tensor(self._resolved.seed, job, rank, attempt.number, start, count)
                for rank in attempt.members
            ]

        verdict = verify(
            inputs,
            self._system.truth(self._resolved, active, own_worker.combine_of(job.worker)),
            list(attempt.received.values()),
            job.elements,
            job.dtype,
            self._system.block(self._resolved),
            self._system.returns_sums(job.dtype),
        )
        if verdict.first is None:
            return verdict
        rank = list(attempt.received)[verdict.first.rank]
        return replace(verdict, first=replace(verdict.first, rank=rank))

    def digest(self, job: Job, attempt: Attempt) -> str | None:
        """SHA-256 of what the first member received and is determined to the bit, by which runs are
        compared."""
        with_sums = self._system.returns_sums(job.dtype)
        first = attempt.received[attempt.members[0]].exact(with_sums)
        return None if first is None else hashlib.sha256(first.tobytes()).hexdigest()

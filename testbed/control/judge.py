"""Verification of rounds: what every worker received against an independent computation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agglab.testbed import workloads
from agglab.testbed.backend import Backend
from agglab.testbed.received import Received
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.verify import Verdict

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
    """Asks a job's workload what it is to have received."""

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
        workload = workloads.KINDS[job.work.kind]
        return workload.verdict(self._resolved, active, attempt.number, attempt.received)

    def digest(self, job: Job, attempt: Attempt) -> str | None:
        """SHA-256 of what the first member received and is determined to the bit, by which runs are
        compared."""
        with_sums = self._system.returns_sums(job.dtype)
        first = attempt.received[attempt.members[0]].exact(with_sums)
        return None if first is None else hashlib.sha256(first.tobytes()).hexdigest()

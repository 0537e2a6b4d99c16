"""Verifies rounds: compares what every worker received with a separate computation of what it
should have received."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agglab.testbed.run.backend import Backend
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.testbed.scenario.workloads.correctness import Verdict
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.received_arrays import Received

NOTHING = Received(None)


@dataclass(frozen=True)
class Attempt:
    """The results of one attempt at a round, which may have failed. members: the ranks, in the job,
    of the workers that took part. received: what each worker received, by rank. over: whether all
    members completed the round."""

    number: int
    members: tuple[int, ...]
    received: Mapping[int, Received]
    over: bool


class Judge:
    """Compares what each worker received with what the job's workload says it should have
    received."""

    def __init__(self, backend: Backend, resolved: ResolvedScenario) -> None:
        self._backend = backend
        self._system, self._resolved = resolved.system, resolved

    def collect(self, job: Job, number: int, members: Sequence[int], over: bool) -> Attempt:
        """Returns what the members have received. This must be called before the next attempt,
        which would overwrite the data. After an aborted round, only members that had completed it
        have received anything."""
        taken = {rank: self._backend.received(job.number, rank, number) for rank in members}
        received = {rank: one or NOTHING for rank, one in taken.items() if one is not None or over}
        return Attempt(number, tuple(members), received, over)

    def verdict(self, job: Job, attempt: Attempt) -> Verdict:
        """Verifies every element that every member received. A wrong element is reported with the
        rank that its worker has in the job."""
        active = replace(self._resolved.whole(job), members=attempt.members)
        workload = workloads.KINDS[job.work.kind]
        return workload.verdict(self._resolved, active, attempt.number, attempt.received)

    def digest(self, job: Job, attempt: Attempt) -> str | None:
        """Returns the SHA-256 of the first member's results, as far as the workload determines
        every bit of them; None if it determines none. Hashes of different runs can be compared."""
        with_sums = self._system.returns_sums(job.dtype)
        first = attempt.received[attempt.members[0]].exact(with_sums)
        return None if first is None else hashlib.sha256(first.tobytes()).hexdigest()

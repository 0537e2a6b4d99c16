"""Verifies rounds: compares what every worker received with a separate computation of what it
should have received, and stores the verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from agglab.testbed.run.backend import Backend
from agglab.testbed.run.outcome import JobResult, Round
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.testbed.scenario.workloads.correctness import Verdict
from agglab.testbed.schema.faults import AtTime, Fault
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.systems.received_arrays import Received

NOTHING = Received(None)


def has_time(virtual: bool, jobs: Sequence[Job], faults: Sequence[Fault]) -> bool:
    """Returns whether rounds may be verified as soon as they end. Verification takes processor
    time, which other jobs need, and real time, in which faults may be due. It takes no virtual
    time."""
    timed = any(isinstance(fault.trigger, AtTime) for fault in faults)
    return virtual or (len(jobs) == 1 and not timed)


@dataclass(frozen=True)
class Attempt:
    """What one attempt at a round brought, which may have failed. job: the job with the members
    that took part. received: what each worker received, by its rank in the job."""

    job: ActiveJob
    number: int
    received: Mapping[int, Received]


class Verifier:
    """Writes the verdict of every round into its job's result and into the log, immediately or at
    the end of the run."""

    def __init__(
        self,
        backend: Backend,
        resolved: ResolvedScenario,
        note: Callable[..., None],
        at_once: bool,
    ) -> None:
        self._backend, self._resolved = backend, resolved
        self._note, self._at_once = note, at_once
        self._broken_off: list[tuple[JobResult, Attempt]] = []
        self._rounds: list[tuple[JobResult, Round]] = []

    def round_over(self, result: JobResult, done: Round) -> None:
        """Takes a completed round for verification. Rounds of one job must be given in their
        order."""
        self._rounds.append((result, done))
        if self._at_once:
            self.finish()

    def broken_off(self, result: JobResult, number: int, members: Sequence[int]) -> None:
        """Takes the results that some members received in a round that other members did not
        complete. The results are read now, because the next attempt would overwrite them."""
        attempt = self._collect(result.job, number, members, over=False)
        if attempt.received:
            self._broken_off.append((result, attempt))
        if self._at_once:
            self.finish()

    def finish(self) -> None:
        """Verifies all rounds that were taken and not yet verified."""
        for result, attempt in _taken(self._broken_off):
            self._verify_broken_off(result, attempt)
        for result, done in _taken(self._rounds):
            self._verify_round(result, done)

    def _verify_round(self, result: JobResult, done: Round) -> None:
        attempt = self._collect(result.job, done.number, done.members, over=True)
        verdict = self._verdict(attempt)
        result.verdicts.append(verdict)
        self._note(
            "verified",
            of=result.job.name,
            round=done.number,
            exact=verdict.exact,
            wrong_sums=verdict.wrong_sums,
            wrong_results=verdict.wrong_results,
            sums_sha256=self._digest(attempt),
        )

    def _verify_broken_off(self, result: JobResult, attempt: Attempt) -> None:
        verdict = self._verdict(attempt)
        result.broken_off.append((attempt.number, verdict))
        self._note(
            "verified_broken_off",
            of=result.job.name,
            round=attempt.number,
            ranks=list(attempt.received),
            wrong_sums=verdict.wrong_sums,
            wrong_results=verdict.wrong_results,
        )

    def _collect(self, job: Job, number: int, members: Sequence[int], over: bool) -> Attempt:
        """Returns what the members have received. This must be called before the next attempt,
        which would overwrite the data. over: whether all members completed the round; after an
        aborted one, only members that had completed it have received anything."""
        taken = {rank: self._backend.received(job.number, rank, number) for rank in members}
        received = {rank: one or NOTHING for rank, one in taken.items() if one is not None or over}
        active = replace(self._resolved.whole(job), members=tuple(members))
        return Attempt(active, number, received)

    def _verdict(self, attempt: Attempt) -> Verdict:
        """Verifies every element that every member received. A wrong element is reported with the
        rank that its worker has in the job."""
        workload = workloads.KINDS[attempt.job.job.work.kind]
        return workload.verdict(self._resolved, attempt.job, attempt.number, attempt.received)

    def _digest(self, attempt: Attempt) -> str | None:
        """Returns the SHA-256 of the first member's results, as far as the workload determines
        every bit of them; None if it determines none. Hashes of different runs can be compared."""
        right = self._resolved.system.right_results(self._resolved, attempt.job, None)
        first = attempt.received[attempt.job.members[0]].exact(right.with_sums)
        return None if first is None else hashlib.sha256(first.tobytes()).hexdigest()


T = TypeVar("T")


def _taken(waiting: list[T]) -> list[T]:
    """Returns the items of the list, and empties the list."""
    taken = waiting[:]
    waiting.clear()
    return taken

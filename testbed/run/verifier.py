"""Decides when results are verified, and stores the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from agglab.testbed.run.outcome import JobResult, Round
from agglab.testbed.run.round_verification import Attempt, Judge
from agglab.testbed.schema.faults import AtTime, Fault
from agglab.testbed.schema.jobs import Job


def has_time(virtual: bool, jobs: Sequence[Job], faults: Sequence[Fault]) -> bool:
    """Returns whether rounds may be verified as soon as they end. Verification takes processor
    time, which other jobs need, and real time, in which faults may be due. It takes no virtual
    time."""
    timed = any(isinstance(fault.trigger, AtTime) for fault in faults)
    return virtual or (len(jobs) == 1 and not timed)


class Verifier:
    """Writes the verdict of every round into its job's result and into the log, immediately or at
    the end of the run."""

    def __init__(self, judge: Judge, note: Callable[..., None], at_once: bool) -> None:
        self._judge, self._note, self._at_once = judge, note, at_once
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
        attempt = self._judge.collect(result.job, number, members, over=False)
        if attempt.received:
            self._broken_off.append((result, attempt))
        if self._at_once:
            self.finish()

    def finish(self) -> None:
        """Verifies all rounds that were taken and not yet verified."""
        for result, attempt in _taken(self._broken_off):
            self._judge_broken_off(result, attempt)
        for result, done in _taken(self._rounds):
            self._judge_round(result, done)

    def _judge_round(self, result: JobResult, done: Round) -> None:
        attempt = self._judge.collect(result.job, done.number, done.members, over=True)
        verdict = self._judge.verdict(result.job, attempt)
        result.verdicts.append(verdict)
        self._note(
            "verified",
            of=result.job.name,
            round=done.number,
            exact=verdict.exact,
            wrong_sums=verdict.wrong_sums,
            wrong_results=verdict.wrong_results,
            sums_sha256=self._judge.digest(result.job, attempt),
        )

    def _judge_broken_off(self, result: JobResult, attempt: Attempt) -> None:
        verdict = self._judge.verdict(result.job, attempt)
        result.broken_off.append((attempt.number, verdict))
        self._note(
            "verified_broken_off",
            of=result.job.name,
            round=attempt.number,
            ranks=list(attempt.received),
            wrong_sums=verdict.wrong_sums,
            wrong_results=verdict.wrong_results,
        )


T = TypeVar("T")


def _taken(waiting: list[T]) -> list[T]:
    """Returns the items of the list, and empties the list."""
    taken = waiting[:]
    waiting.clear()
    return taken

"""Runs one job from its start to its end, as a process of the scheduler."""

from __future__ import annotations

import signal
from collections.abc import Callable

from agglab.testbed.base.worker_id import Event
from agglab.testbed.run.agent_group import AgentGroup, JobFailed
from agglab.testbed.run.controller_runner import ControllerRunner
from agglab.testbed.run.history import FaultHistory
from agglab.testbed.run.outcome import Failure, JobResult, Round
from agglab.testbed.run.recovery import Recovery
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.round_failure import RoundFailure, failure_of
from agglab.testbed.run.rounds import Rounds
from agglab.testbed.run.scheduler import FOREVER_NS, Process, RunClock, S
from agglab.testbed.run.session import JobSession
from agglab.testbed.systems.base import ActiveJob


class JobProcess:
    """Starts a job's agents, lets them run its rounds, and stops them. round_s: a function that
    returns how long an attempt at a round may take. rests: whether the job waits before each
    further round until another part clears `resting`. controlling: the runner of the job's
    controller, which is called before every attempt at a round."""

    def __init__(
        self,
        result: JobResult,
        group: AgentGroup,
        session: JobSession,
        recovery: Recovery,
        clock: RunClock,
        roster: Roster,
        rounds: Rounds,
        history: FaultHistory,
        round_s: Callable[[ActiveJob], float],
        rests: bool,
        controlling: ControllerRunner | None = None,
    ) -> None:
        self.result, self.job = result, result.job
        self.prepared = False
        """Whether the job's agents are ready."""
        self.resting = False
        """Whether the job waits between two rounds."""
        self._group, self._session, self._recovery = group, session, recovery
        self._clock, self._roster, self._rounds = clock, roster, rounds
        self._history, self._round_s, self._rests = history, round_s, rests
        self._controlling = controlling
        self._began_ns = self._rested_ns = 0

    def steps(self) -> Process[None]:
        """Runs the whole job."""
        try:
            yield from self._group.start(sorted(self._group.needed))
            self.prepared = True
            # The job's own start counts from the run's.
            start_ns = yield from self._clock.start()
            yield from self._clock.sleep_until(start_ns + round(self.job.start_s * S))
            self.result.started_ns = self._clock.now_ns()
            self._roster.join(self.job)
            yield from self._all_rounds(start_ns)
        except JobFailed as failed:
            self.result.failure = self._failure(failed)
        self.result.ended_ns = self._clock.now_ns()
        if self.result.failure is None:
            yield from self._group.settle()
        yield from self._group.stop()
        self._roster.leave(self.job)

    def _failure(self, failed: JobFailed) -> Failure:
        host = None if failed.rank is None else self._group.agent(failed.rank).host
        after_s = self._history.since_s(self._began_ns)
        return Failure(self.job.name, failed.reason, host, after_s, failed.report, self._killed())

    def _killed(self) -> bool:
        """Returns whether somebody outside the run has killed an agent's program."""
        return any(
            event.get("status") == -signal.SIGKILL
            and self._history.comes_back(self._group.agent(rank), event["t_ns"]) is None
            for rank, event in self._group.dead.items()
        )

    def _all_rounds(self, start_ns: int) -> Process[None]:
        end_s = self.job.end_s
        for number in range(self.job.rounds):
            if number:
                yield from self._rest()
            if end_s is not None and self._clock.now_ns() >= start_ns + end_s * S:
                return
            while (share := self._roster.take_share(self.job)) is None:
                yield FOREVER_NS
            if not self._session.fits(share):
                yield from self._session.begin(share)
            yield from self._round_to_its_end(number)

    def _rest(self) -> Process[None]:
        self.resting, since_ns = self._rests, self._clock.now_ns()
        while self.resting:
            yield FOREVER_NS
        self._rested_ns = self._clock.now_ns() - since_ns

    def _round_to_its_end(self, number: int) -> Process[None]:
        """Tries the round until an attempt succeeds. Raises JobFailed if the workload's on_failure
        allows no further attempt."""
        attempts = 0
        while True:
            if self._controlling:
                self._controlling.begin_round(number)
            if not attempts:
                self._began_ns = self._clock.now_ns()
            attempts += 1
            self._rounds.begins(self.result, number, self._group.members)
            ended, failure = yield from self._attempt(number)
            if failure is None:
                break
            self._rounds.broken_off(self.result)
            yield from self._recovery.recover(failure, number)
        members, began_ns = self._group.members, self._began_ns
        done = Round(number, members, ended, began_ns, attempts, self._rested_ns)
        self._rounds.over(self.result, done)

    def _attempt(self, number: int) -> Process[tuple[dict[int, Event], RoundFailure | None]]:
        group, on_failure = self._group, self.job.on_failure
        if dead := group.needed & group.dead.keys():
            return {}, failure_of(group.dead[min(dead)], group, on_failure)
        timeout_s = self._round_s(self._roster.active(self.job))
        deadline = self._clock.after_s(timeout_s)
        marks = self._history.marks(self.job, number)
        members = set(group.members)
        for rank in group.members:
            group.send(rank, command="round", round=number, **({"marks": marks} if marks else {}))
        ended: dict[int, Event] = {}
        while len(ended) < len(members):
            event = yield deadline
            if event is None:
                if self._clock.now_ns() >= deadline:
                    return ended, RoundFailure(
                        f"round {number} was not complete after {timeout_s:g} s"
                    )
                continue
            ours = event.get("rank") in members
            if ours and event["event"] == "round" and event["round"] == number:
                ended[event["rank"]] = event
            elif failure := failure_of(event, group, on_failure):
                return ended, failure
        return ended, None

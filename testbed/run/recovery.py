"""Prepares the repetition of a round that was aborted, or explains why it cannot be repeated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from agglab.testbed.run.agent_group import ANSWER_S, AgentGroup, JobFailed, how
from agglab.testbed.run.history import FaultHistory
from agglab.testbed.run.outcome import JobResult
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.round_failure import RoundFailure, explained
from agglab.testbed.run.rounds import Rounds
from agglab.testbed.run.scheduler import FOREVER_NS, Process, RunClock
from agglab.testbed.run.session import JobSession
from agglab.testbed.systems.base import ActiveJob, MissingChunks, Waiting

WaitingOf: TypeAlias = Mapping[str, Iterable[Waiting]]
Diagnose: TypeAlias = Callable[[ActiveJob, WaitingOf, WaitingOf], Mapping[str, MissingChunks]]
"""A function that takes a job, what its workers wait for by host, and what its servers wait for. It
returns which chunks each host or switch still owes."""


class Recovery:
    """Prepares the rounds of one job to be repeated, as its `on_failure` says."""

    def __init__(
        self,
        result: JobResult,
        group: AgentGroup,
        session: JobSession,
        clock: RunClock,
        roster: Roster,
        rounds: Rounds,
        history: FaultHistory,
        diagnose: Diagnose,
    ) -> None:
        self._result, self._job = result, result.job
        self._group, self._session, self._clock = group, session, clock
        self._roster, self._rounds = roster, rounds
        self._history, self._diagnose = history, diagnose

    def recover(self, failure: RoundFailure, number: int) -> Process[None]:
        """Does everything that must happen before the round can be repeated. Raises JobFailed if
        the round cannot be repeated."""
        yield from self._abort(failure, number)
        self._rounds.left(self._result, number, self._group.members)
        reason, rank = self._explained(failure)
        if self._job.on_failure == "fail" or failure.unrecoverable:
            raise JobFailed(reason, rank, failure.report)
        self._result.restarts += 1
        if self._result.restarts > self._job.restarts_max:
            count = self._job.restarts_max
            raise JobFailed(f"{reason}; the job gave up after {count} restarts", rank)
        if self._job.on_failure == "survivors":
            self._go_on_without(failure, reason, rank)
        else:
            yield from self._revive(failure, reason)
            self._rounds.left(self._result, number, self._group.members)  # who was silent till now
        yield from self._session.begin_again()

    def _abort(self, failure: RoundFailure, number: int) -> Process[None]:
        """Makes every living member leave the round. A member that does not answer counts as
        silent. Servers are asked what they wait for."""
        group = self._group
        members = set(group.members) - failure.dead.keys() - failure.waiting.keys()
        servers = group.servers.keys() - group.dead.keys()
        for rank in members:
            group.send(rank, command="abort")
        for rank in servers:
            group.send(rank, command="report")
        asked = members | servers
        deadline = self._clock.after_s(ANSWER_S)
        while asked:
            event = yield deadline
            if event is None and self._clock.now_ns() >= deadline:
                break
            if event is None or event.get("rank", -1) not in asked:
                continue
            rank = event["rank"]
            if event["event"] in ("aborted", "failed"):
                failure.left_by(rank, event)
                if event.get("round", number) is None:
                    failure.finished.add(rank)
            elif event["event"] == "served":
                failure.unserved[rank] = event.get("waiting", [])
            elif event["event"] == "ended":
                failure.dead[rank] = how("", event)
            else:
                continue
            asked.discard(rank)
        failure.silent = asked

    def _explained(self, failure: RoundFailure) -> tuple[str, int | None]:
        """Returns one line about the failure, and the rank of the agent that is to blame, if one
        is."""
        if failure.unrecoverable:
            return failure.first, None
        group = self._group
        workers = failure.waiting.keys() - group.servers.keys()
        waiting = {group.agent(rank).host: failure.waiting[rank] for rank in sorted(workers)}
        unserved: dict[str, list[Waiting]] = {}
        for server, entries in failure.unserved.items():
            unserved.setdefault(group.agent(server).host, []).extend(entries)
        missing = self._diagnose(self._roster.active(group.job), waiting, unserved)
        done = {group.agent(rank).host for rank in failure.finished}
        missing = {name: owes for name, owes in missing.items() if name not in done}
        reason, rank = explained(failure, missing, group)
        return f"{reason}{self._history.so_far()}", rank

    def _go_on_without(self, failure: RoundFailure, reason: str, rank: int | None) -> None:
        """Removes the dead and silent members from the job. If there are none, removes the member
        from which most is still missing, unless a switch has lost everything that was sent."""
        group, gone = self._group, failure.gone
        if not gone and rank is not None and not failure.emptied:
            gone = {rank}
        if lost := gone & group.servers.keys():
            raise JobFailed(reason, min(lost))
        if len(gone) >= len(group.members):
            raise JobFailed(f"{reason}; no worker is left", rank)
        left_out = sorted(gone & set(group.members))
        self._roster.leave_out(group.job, left_out)
        self._result.lost += left_out

    def _revive(self, failure: RoundFailure, reason: str) -> Process[None]:
        """Restarts the dead agents, except those that the fault which killed them restarts or has
        already restarted. Waits for agents that have not answered, because they may still do so."""
        group = self._group
        ours, theirs = [], set()
        for rank in sorted(failure.dead.keys() & group.dead.keys()):
            back = self._history.comes_back(group.agent(rank), group.dead[rank]["t_ns"])
            if back is False:
                raise JobFailed(reason, rank)
            if back:
                theirs.add(rank)
            else:
                ours.append(rank)
        if ours:
            yield from group.start(ours)
        yield from self._until_heard(failure.silent, reason)
        if theirs:
            yield from self._until_back(theirs)

    def _until_heard(self, silent: Collection[int], reason: str) -> Process[None]:
        ranks = set(silent)
        deadline = self._clock.after_s(self._job.give_up_s)
        while ranks:
            event = yield deadline
            if event is None and self._clock.now_ns() >= deadline:
                raise JobFailed(reason, min(ranks))
            if event and event["event"] in ("aborted", "failed", "round", "served"):
                ranks.discard(event.get("rank", -1))

    def _until_back(self, ranks: Collection[int]) -> Process[None]:
        """Waits until the faults of these agents have ended and the agents are ready."""
        while any(self._history.keeps_out(self._group.agent(rank)) for rank in ranks):
            yield FOREVER_NS
        yield from self._group.until_back(ranks)

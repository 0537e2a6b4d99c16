"""What has to happen before a round that was broken off can run again, or why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from agglab.testbed.control.crew import ANSWER_S, Crew, JobFailed, how
from agglab.testbed.control.history import FaultHistory
from agglab.testbed.control.outcome import JobResult
from agglab.testbed.control.roster import Roster
from agglab.testbed.control.round_failure import RoundFailure, explained
from agglab.testbed.control.rounds import Rounds
from agglab.testbed.control.scheduler import FOREVER_NS, Process, RunClock
from agglab.testbed.control.session import JobSession
from agglab.testbed.systems.base import Absent, ActiveJob, Waiting

WaitingOf: TypeAlias = Mapping[str, Iterable[Waiting]]
Diagnose: TypeAlias = Callable[[ActiveJob, WaitingOf, WaitingOf], Mapping[str, Absent]]
"""(job, what workers wait for by host, what servers wait for) -> what each host or switch owes."""


class Recovery:
    """Of one job, as its `on_failure` says."""

    def __init__(
        self,
        result: JobResult,
        crew: Crew,
        session: JobSession,
        clock: RunClock,
        roster: Roster,
        rounds: Rounds,
        history: FaultHistory,
        diagnose: Diagnose,
    ) -> None:
        self._result, self._job = result, result.job
        self._crew, self._session, self._clock = crew, session, clock
        self._roster, self._rounds = roster, rounds
        self._history, self._diagnose = history, diagnose

    def recover(self, failure: RoundFailure, number: int) -> Process[None]:
        """Do all that must be done before the round can run again. Raises JobFailed."""
        yield from self._abort(failure)
        self._rounds.left(self._result, number, self._crew.members)
        reason, rank = self._explained(failure)
        if self._job.on_failure == "fail" or failure.unrecoverable:
            raise JobFailed(reason, rank, failure.report)
        self._result.restarts += 1
        if self._result.restarts > self._job.restarts_max:
            count = self._job.restarts_max
            raise JobFailed(f"{reason}; given up after {count} restarts", rank)
        if self._job.on_failure == "survivors":
            self._go_on_without(failure, reason, rank)
        else:
            yield from self._revive(failure, reason)
            self._rounds.left(self._result, number, self._crew.members)  # who was silent till now
        yield from self._session.begin_again()

    def _abort(self, failure: RoundFailure) -> Process[None]:
        """Every living member leaves the round; who does not answer is silent. Servers are asked
        for what they wait for, too."""
        crew = self._crew
        members = set(crew.members) - failure.dead.keys() - failure.waiting.keys()
        servers = crew.servers.keys() - crew.dead.keys()
        for rank in members:
            crew.send(rank, command="abort")
        for rank in servers:
            crew.send(rank, command="report")
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
                failure.waiting[rank] = event.get("waiting", [])
            elif event["event"] == "served":
                failure.unserved[rank] = event.get("waiting", [])
            elif event["event"] == "ended":
                failure.dead[rank] = how("", event)
            else:
                continue
            asked.discard(rank)
        failure.silent = asked

    def _explained(self, failure: RoundFailure) -> tuple[str, int | None]:
        """One line, and the rank of the agent to blame, if one is."""
        if failure.unrecoverable:
            return failure.first, None
        crew = self._crew
        workers = failure.waiting.keys() - crew.servers.keys()
        waiting = {crew.agent(rank).host: failure.waiting[rank] for rank in sorted(workers)}
        unserved: dict[str, list[Waiting]] = {}
        for server, entries in failure.unserved.items():
            unserved.setdefault(crew.agent(server).host, []).extend(entries)
        absent = self._diagnose(self._roster.active(crew.job), waiting, unserved)
        reason, rank = explained(failure, absent, crew)
        return f"{reason}{self._history.so_far()}", rank

    def _go_on_without(self, failure: RoundFailure, reason: str, rank: int | None) -> None:
        """Leave out the dead and the silent; if there are none, the one who owes most, unless a
        switch has lost what all had sent."""
        crew, gone = self._crew, failure.gone
        if not gone and rank is not None and not failure.emptied:
            gone = {rank}
        if lost := gone & crew.servers.keys():
            raise JobFailed(reason, min(lost))
        if len(gone) >= len(crew.members):
            raise JobFailed(f"{reason}; nobody is left", rank)
        left_out = sorted(gone & set(crew.members))
        self._roster.leave_out(crew.job, left_out)
        self._result.lost += left_out

    def _revive(self, failure: RoundFailure, reason: str) -> Process[None]:
        """The dead are started again, by us or by their fault's end, which may have been while we
        waited for the others; the silent may yet answer."""
        crew = self._crew
        ours, theirs = [], set()
        for rank in sorted(failure.dead.keys() & crew.dead.keys()):
            back = self._history.comes_back(crew.agent(rank), crew.dead[rank]["t_ns"])
            if back is False:
                raise JobFailed(reason, rank)
            if back:
                theirs.add(rank)
            else:
                ours.append(rank)
        if ours:
            yield from crew.start(ours)
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
        """Until their fault has ended and they are ready."""
        while any(self._history.keeps_out(self._crew.agent(rank)) for rank in ranks):
            yield FOREVER_NS
        yield from self._crew.until_back(ranks)

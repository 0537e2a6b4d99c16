"""The agents of one job: who they are, who lives, and what is said to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from agglab.hosts.part import WORKER
from agglab.testbed.backend import Backend
from agglab.testbed.control.outcome import JobResult
from agglab.testbed.control.roster import Roster
from agglab.testbed.control.scheduler import Process, RunClock
from agglab.testbed.worker_id import Event, WorkerId

ANSWER_S = 5.0


class JobFailed(Exception):
    """Ends a job. rank: of the agent that is to blame, if one is. report: what more there is to
    show a person."""

    def __init__(self, reason: str, rank: int | None, report: str = "") -> None:
        super().__init__(reason)
        self.reason, self.rank, self.report = reason, rank, report


class Crew:
    """Workers have the ranks of the job; servers have ranks above those of all workers. start_s:
    how long a program may take to be ready."""

    def __init__(
        self, result: JobResult, backend: Backend, clock: RunClock, roster: Roster, start_s: float
    ) -> None:
        self.job = result.job
        self._result = result
        self._backend, self._clock, self._roster = backend, clock, roster
        self._start_s = start_s
        self._servers = {
            agent.rank: WorkerId(self.job.number, agent.host, agent.role, agent.rank)
            for agent in roster.agents(self.job)
            if agent.role != WORKER
        }
        self._spare = {agent.rank for agent in roster.agents(self.job) if agent.spare}
        result.servers = {rank: known.host for rank, known in self._servers.items()}
        self._dead: dict[int, Event] = {}
        self.forgetful = False
        """An agent has been started again and knows nothing of the session."""

    @property
    def members(self) -> tuple[int, ...]:
        """Ranks of the workers that take part."""
        return self._roster.active(self.job).members

    @property
    def servers(self) -> Mapping[int, WorkerId]:
        """By rank: who only answers, schedulers among them."""
        return self._servers

    @property
    def needed(self) -> set[int]:
        """The ranks of all without whom no round ends: one that is spare is not missed when it has
        died."""
        return {*self.members, *self._servers} - (self._spare & self._dead.keys())

    @property
    def dead(self) -> Mapping[int, Event]:
        """Rank -> how its program ended."""
        return self._dead

    def agent(self, rank: int) -> WorkerId:
        """Whom a rank belongs to."""
        return self._servers.get(rank) or WorkerId(self.job.number, self.job.hosts[rank])

    def ranks_at(self, host: str) -> list[int]:
        """The ranks of the agents on a host, the worker's first."""
        ranks = [*range(len(self.job.hosts)), *self._servers]
        return [rank for rank in ranks if self.agent(rank).host == host]

    def called(self, rank: int) -> str:
        """For people: `h2: worker 1`."""
        if known := self._servers.get(rank):
            alike = [other for other, agent in self._servers.items() if agent.role == known.role]
            return f"{known.host}: {known.role} {alike.index(rank)}"
        return f"{self.job.hosts[rank]}: worker {rank}"

    def note(self, event: Event) -> None:
        """Take every event of this job, before anybody else does: who lives, and what was
        counted."""
        if event.get("stats"):
            served = event["rank"] in self._servers
            (self._result.served if served else self._result.reports).append(event)
        if event["event"] == "ended":
            self._dead[event["rank"]] = event
        elif event["event"] == "ready" and self._dead.pop(event["rank"], None):
            self.forgetful = True

    def send(self, rank: int, **command: Any) -> None:
        """A command of hosts.agent."""
        self._backend.command(self.agent(rank), command)

    def start(self, ranks: Collection[int]) -> Process[None]:
        """Start the programs of these agents, until they are ready. Raises JobFailed."""
        agents = {agent.rank: agent for agent in self._roster.agents(self.job)}
        for rank in ranks:
            self._backend.start_worker(self.agent(rank), agents[rank].configuration)
        yield from self.until_ready(ranks)

    def until_ready(self, ranks: Collection[int], or_dead: bool = False) -> Process[None]:
        """Until each of the ranks is ready. Raises JobFailed if one takes too long, or ends
        (or_dead: whoever has ended is not waited for)."""
        deadline = self._clock.after_s(self._start_s)
        waiting = set(ranks)
        while waiting := waiting - (self._dead.keys() if or_dead else set()):
            event = yield deadline
            if event is None:
                if self._clock.now_ns() >= deadline:
                    self._too_late(min(waiting))
                continue
            rank = event.get("rank", -1)
            if rank not in waiting:
                continue
            if event["event"] == "ready":
                waiting.discard(rank)
            elif event["event"] == "failed" or (event["event"] == "ended" and not or_dead):
                raise JobFailed(how(self.called(rank), event), rank, str(event.get("report", "")))

    def _too_late(self, rank: int) -> NoReturn:
        raise JobFailed(f"{self.called(rank)} not ready after {self._start_s:g} s", rank)

    def until_back(self, ranks: Collection[int]) -> Process[None]:
        """Until programs that somebody else starts again are ready. Raises JobFailed if that takes
        too long."""
        deadline = self._clock.after_s(self._start_s)
        while late := set(ranks) & self._dead.keys():
            yield deadline
            if self._clock.now_ns() >= deadline:
                raise JobFailed(f"{self.called(min(late))} did not come back", min(late))

    def until_answered(self, ranks: Collection[int], answers: Collection[str]) -> Process[None]:
        """Until each of the ranks has sent one of these events, but not for long."""
        asked = set(ranks)
        deadline = self._clock.after_s(ANSWER_S)
        while asked and self._clock.now_ns() < deadline:
            event = yield deadline
            if event and event["event"] in answers:
                asked.discard(event.get("rank", -1))

    def stop(self) -> Process[None]:
        """Stop all programs. Who sends what belongs to no round of its own is asked before for what
        it has counted; whoever does not answer has counted nothing."""
        listening = {agent.rank for agent in self._roster.agents(self.job) if agent.listens}
        asked = (listening | self._servers.keys()) - self._dead.keys()
        for rank in asked:
            self.send(rank, command="report")
        yield from self.until_answered(asked, ("served", "ended"))
        for rank in [*range(len(self.job.hosts)), *self._servers]:
            self.send(rank, command="stop")


def how(who: str, event: Event) -> str:
    """How an agent failed: `h2: worker 1 ended early with status -9`, or its own words."""
    if event["event"] == "ended":
        return f"{who} ended early with status {event['status']}".strip()
    return f"{who}: {event['error']}"

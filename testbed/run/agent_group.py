"""The agents of one job: all agents, those that are alive, and how commands reach them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from agglab.hosts.part import WORKER
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.outcome import JobResult
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.scheduler import Process, RunClock

ANSWER_S = 5.0
SETTLE_S = 2.0
"""The longest time that a job waits at its end for packets to be acknowledged, in seconds."""


class JobFailed(Exception):
    """Raised to end a job. rank: the rank of the agent that is to blame, if there is one. report:
    additional text for people."""

    def __init__(self, reason: str, rank: int | None, report: str = "") -> None:
        super().__init__(reason)
        self.reason, self.rank, self.report = reason, rank, report


class AgentGroup:
    """The agents of one job. Workers have their ranks in the job; servers have ranks above those of
    all workers. start_s: how long a program may take to become ready, in seconds."""

    def __init__(
        self, result: JobResult, backend: Backend, clock: RunClock, roster: Roster, start_s: float
    ) -> None:
        self.job = result.job
        self._result = result
        self._backend, self._clock, self._roster = backend, clock, roster
        self._start_s = start_s
        agents = roster.agents(self.job)
        self._servers = {
            agent.rank: WorkerId(self.job.number, agent.host, agent.role, agent.rank)
            for agent in agents
            if agent.role != WORKER
        }
        self._spare = {agent.rank for agent in agents if agent.spare}
        result.servers = {rank: known.host for rank, known in self._servers.items()}
        self._dead: dict[int, Event] = {}
        self._told_to_stop = False
        self.forgetful = False
        """Whether an agent has been restarted and therefore knows nothing of the session."""

    @property
    def members(self) -> tuple[int, ...]:
        """The ranks of the workers that take part."""
        return self._roster.active(self.job).members

    @property
    def servers(self) -> Mapping[int, WorkerId]:
        """The agents that only answer workers, which are servers and schedulers, by rank."""
        return self._servers

    @property
    def needed(self) -> set[int]:
        """The ranks of all agents without which no round can end. Spare agents that have died are
        not included."""
        return {*self.members, *self._servers} - (self._spare & self._dead.keys())

    @property
    def dead(self) -> Mapping[int, Event]:
        """For each dead agent, by rank, the event that reported the end of its program."""
        return self._dead

    def agent(self, rank: int) -> WorkerId:
        """Returns the agent with this rank."""
        return self._servers.get(rank) or WorkerId(self.job.number, self.job.hosts[rank])

    def ranks_at(self, host: str) -> list[int]:
        """Returns the ranks of the agents on a host. The rank of the worker comes first."""
        ranks = [*range(len(self.job.hosts)), *self._servers]
        return [rank for rank in ranks if self.agent(rank).host == host]

    def called(self, rank: int) -> str:
        """Returns the name by which messages call the agent, such as `h2: worker 1`."""
        if known := self._servers.get(rank):
            alike = [other for other, agent in self._servers.items() if agent.role == known.role]
            return f"{known.host}: {known.role} {alike.index(rank)}"
        return f"{self.job.hosts[rank]}: worker {rank}"

    def note(self, event: Event) -> None:
        """Records from an event which agents are alive and what they counted. This method must
        receive every event of the job before any other part of the run's control does."""
        if event.get("stats"):
            served = event["rank"] in self._servers
            (self._result.served if served else self._result.reports).append(event)
        if event["event"] == "ended":
            self._dead[event["rank"]] = event
            if self._result.ended_ns is not None and not self._told_to_stop:
                self._result.died_after_rounds.append(self.called(event["rank"]))
        elif event["event"] == "ready" and self._dead.pop(event["rank"], None):
            self.forgetful = True

    def send(self, rank: int, **command: Any) -> None:
        """Sends a command of hosts.agent to the agent with this rank."""
        self._backend.command(self.agent(rank), command)

    def start(self, ranks: Collection[int]) -> Process[None]:
        """Starts the programs of these agents and waits until they are ready. Raises JobFailed."""
        agents = {agent.rank: agent for agent in self._roster.agents(self.job)}
        for rank in ranks:
            self._backend.start_worker(self.agent(rank), agents[rank].configuration)
        yield from self.until_ready(ranks)

    def until_ready(self, ranks: Collection[int], or_dead: bool = False) -> Process[None]:
        """Waits until each of the ranks is ready. Raises JobFailed if one takes too long or ends.
        or_dead: whether to stop waiting for an agent whose program has ended, instead of raising
        JobFailed."""
        deadline = self._clock.after_s(self._start_s)
        waiting = set(ranks) - (self._dead.keys() if or_dead else set())
        while waiting:
            event = yield deadline
            if event is None:
                if self._clock.now_ns() >= deadline:
                    self._too_late(min(waiting))
                continue
            rank = event.get("rank", -1)
            if rank not in waiting:
                continue
            if event["event"] == "ready" or (event["event"] == "ended" and or_dead):
                waiting.discard(rank)
            elif event["event"] in ("failed", "ended"):
                raise JobFailed(how(self.called(rank), event), rank, str(event.get("report", "")))

    def _too_late(self, rank: int) -> NoReturn:
        raise JobFailed(f"{self.called(rank)} was not ready within {self._start_s:g} s", rank)

    def until_back(self, ranks: Collection[int]) -> Process[None]:
        """Waits until these agents are ready again after another part has restarted their programs.
        Raises JobFailed if that takes too long."""
        deadline = self._clock.after_s(self._start_s)
        while late := set(ranks) & self._dead.keys():
            yield deadline
            if self._clock.now_ns() >= deadline:
                raise JobFailed(
                    f"{self.called(min(late))} did not come back after its restart", min(late)
                )

    def until_answered(self, ranks: Collection[int], answers: Collection[str]) -> Process[None]:
        """Waits until each of the ranks has sent one of the events in `answers`, but at most
        ANSWER_S seconds."""
        asked = set(ranks)
        deadline = self._clock.after_s(ANSWER_S)
        while asked and self._clock.now_ns() < deadline:
            event = yield deadline
            if event and event["event"] in answers:
                asked.discard(event.get("rank", -1))

    def settle(self) -> Process[None]:
        """Waits until all packets that agents have sent each other are acknowledged, but at most
        SETTLE_S seconds. Does not wait if an agent has died, because packets to it are never
        acknowledged. What one agent waited for may have made another send, so all are asked again
        until none has to wait. Records in the job's result whether the time was enough."""
        deadline, waited = self._clock.after_s(SETTLE_S), True
        while waited and not self._dead and self._clock.now_ns() < deadline:
            asked, waited = self._answering, False
            for rank in asked:
                self.send(rank, command="settle")
            while asked and self._clock.now_ns() < deadline:
                event = yield deadline
                if event and event["event"] in ("settled", "ended"):
                    asked.discard(event.get("rank", -1))
                    waited |= event.get("waited", False)
        self._result.settled = self._clock.now_ns() < deadline

    @property
    def _answering(self) -> set[int]:
        """The ranks of the live agents that answer others outside their own rounds."""
        listening = {agent.rank for agent in self._roster.agents(self.job) if agent.listens}
        return (listening | self._servers.keys()) - self._dead.keys()

    def stop(self) -> Process[None]:
        """Stops all programs. Before that, asks for the counters of servers and of agents that
        answer others outside their own rounds. An agent that does not answer counts as zero."""
        asked = self._answering
        for rank in asked:
            self.send(rank, command="report")
        yield from self.until_answered(asked, ("served", "ended"))
        self._told_to_stop = True
        for rank in [*range(len(self.job.hosts)), *self._servers]:
            self.send(rank, command="stop")


def how(who: str, event: Event) -> str:
    """Returns how an agent failed: a text such as `h2: worker 1 exited early with status -9`, or
    the agent's own message."""
    if event["event"] == "ended":
        return f"{who} exited early with status {event['status']}".strip()
    return f"{who}: {event['error']}"

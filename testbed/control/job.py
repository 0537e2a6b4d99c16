"""One job from its start to its end, as a generator: it says until when it waits and is sent the
next event that concerns it, or None when that time has come."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

from agglab.hosts.part import SERVER
from agglab.testbed.backend import Backend, Event, WorkerId
from agglab.testbed.control.outcome import Failure, JobResult, Round
from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.base import Absent, Agent, NoSession, Share, Waiting

S = 1_000_000_000
FOREVER_NS = 1 << 62
ANSWER_S = 5.0

T = TypeVar("T")
Process: TypeAlias = Generator[int, "Event | None", T]


class Run(Protocol):
    """What a job needs of the run around it."""

    backend: Backend
    start_s: float
    rests: bool
    """Jobs wait between rounds until they are told to go on."""

    def agents(self, job: JobProcess) -> Sequence[Agent]:
        """Of the members as they are now, by rank, then servers."""

    def join(self, job: JobProcess) -> None:
        """Compete with other jobs from now on."""

    def take_share(self, job: JobProcess) -> Share | None:
        """What is due to the job of what jobs share; None while it has to wait."""

    def begin_session(self, job: JobProcess) -> Mapping[str, Any]:
        """Keys of the agents' configuration for a new session. Raises NoSession."""

    def leave(self, job: JobProcess) -> None: ...

    def install(self) -> None:
        """Fill all switches anew for the jobs as they are now."""

    def absent(
        self,
        job: JobProcess,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        """Host or switch -> what it owes in a round that does not end, who owes most first."""

    def marks(self, job: JobProcess, number: int) -> list[int]:
        """Chunk counts of a round that some fault waits for."""

    def round_timeout_s(self, job: JobProcess) -> float: ...

    def round_begins(self, job: JobProcess, number: int) -> None: ...

    def round_over(self, job: JobProcess, done: Round | None) -> None: ...

    def broken_off(self, job: JobProcess, number: int) -> None:
        """Judge what members have received of a round that others have not come to the end of."""

    def comes_back(self, worker: WorkerId) -> bool | None:
        """Of a worker that a fault has killed: whether it will be started again; None if no fault
        has."""

    def since_fault_s(self, otherwise_ns: int) -> float:
        """Seconds since the last fault began, or since `otherwise_ns` if none has."""

    def faults_so_far(self) -> str:
        """` (after ...)`, or nothing."""


@dataclass
class RoundFailure:
    """Why a round cannot end, and what is known of it. hopeless: running it again would not help.
    emptied: it is a switch that forgot. dead: rank -> how its program ended. waiting, unserved:
    what workers and servers wait for, in the words of the system."""

    first: str
    hopeless: bool = False
    emptied: bool = False
    worker: str | None = None
    report: str = ""
    dead: dict[int, str] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    waiting: dict[int, list[Any]] = field(default_factory=dict)
    unserved: dict[int, list[Any]] = field(default_factory=dict)


class JobFailed(Exception):
    """Ends a job; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class JobProcess:
    """The state of one job, and the generator `steps` that moves it."""

    def __init__(self, tenant: Tenant, run: Run, result: JobResult) -> None:
        self.tenant = tenant
        self.result = result
        self.members = list(range(len(tenant.hosts)))
        self.ready = False
        self.resting = False
        """Between two rounds, for as long as others take."""
        self._servers: dict[int, WorkerId] = {}
        self.share: Share | None = None
        self._run = run
        self._session_share: Share | None = None
        self._began_ns = 0
        self._dead: dict[int, Event] = {}
        self._forgetful = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """Of the members, by rank."""
        return tuple(self.tenant.hosts[rank] for rank in self.members)

    def worker(self, rank: int) -> WorkerId:
        """The agent of that rank; servers have ranks above those of all workers."""
        if rank in self._servers:
            return self._servers[rank]
        return WorkerId(self.tenant.number, self.tenant.hosts[rank])

    @property
    def _agents(self) -> set[int]:
        """The ranks of all without whom no round ends."""
        return {*self.members, *self._servers}

    def note(self, event: Event) -> None:
        """Called with every event of this job before `steps` is sent it: who is alive."""
        if event.get("stats"):
            served = event["rank"] in self._servers
            (self.result.served if served else self.result.reports).append(event)
        if event["event"] == "ended":
            self._dead[event["rank"]] = event
        elif event["event"] == "ready" and self._dead.pop(event["rank"], None):
            self._forgetful = True  # a new program, which knows nothing of the session

    def steps(self, origin: Mapping[str, int]) -> Process[None]:
        """The whole job. origin: holds `start_ns`, the first round's start, once there is one."""
        try:
            self._servers = {
                agent.rank: WorkerId(self.tenant.number, agent.host, agent.role)
                for agent in self._run.agents(self)
                if agent.role == SERVER
            }
            self.result.servers = {rank: known.host for rank, known in self._servers.items()}
            yield from self._start_workers(sorted(self._agents))
            self.ready = True
            yield from self._until(origin)
            self._run.join(self)
            yield from self._rounds(origin["start_ns"])
        except JobFailed as failed:
            self.result.failure = failed.failure
        self.result.ended_ns = self._now()
        yield from self._ask_listeners()
        for rank in [*range(len(self.tenant.hosts)), *self._servers]:
            self._send(rank, command="stop")
        self._run.leave(self)

    def _rounds(self, start_ns: int) -> Process[None]:
        end_s = self.tenant.end_s
        for number in range(self.tenant.workload.rounds):
            if number:
                yield from self._rest()
            if end_s is not None and self._now() >= start_ns + end_s * S:
                return
            while (share := self._run.take_share(self)) is None:
                yield FOREVER_NS
            if self._forgetful or share != self._session_share:
                yield from self._new_session(share)
            if self.result.started_ns is None:
                self.result.started_ns = self._now()
            yield from self._round_to_its_end(number)

    def _rest(self) -> Process[None]:
        self.resting = self._run.rests
        while self.resting:
            yield FOREVER_NS

    def _ask_listeners(self) -> Process[None]:
        """Who sends what belongs to no round of its own, for what it has counted; whoever does not
        answer has counted nothing."""
        listening = {agent.rank for agent in self._run.agents(self) if agent.listens}
        asked = (listening | self._servers.keys()) - self._dead.keys()
        for rank in asked:
            self._send(rank, command="report")
        deadline = self._now() + round(ANSWER_S * S)
        while asked and self._now() < deadline:
            event = yield deadline
            if event and event["event"] in ("served", "ended"):
                asked = asked - {event.get("rank", -1)}

    def _until(self, origin: Mapping[str, int]) -> Process[None]:
        """Until the job's own start, which counts from the first round of the run."""
        while "start_ns" not in origin:
            yield FOREVER_NS
        at_ns = origin["start_ns"] + round(self.tenant.start_s * S)
        while self._now() < at_ns:
            yield at_ns

    def _start_workers(self, ranks: list[int]) -> Process[None]:
        agents = {agent.rank: agent for agent in self._run.agents(self)}
        for rank in ranks:
            self._run.backend.start_worker(self.worker(rank), agents[rank].configuration)
        yield from self._await("ready", set(ranks), self._run.start_s)

    def _await(
        self, event: str, ranks: set[int], within_s: float, or_dead: bool = False
    ) -> Process[None]:
        """Until each of the ranks has sent the event; JobFailed if one takes too long, or ends
        (or_dead: whoever has ended is not waited for)."""
        deadline = self._now() + round(within_s * S)
        waiting = set(ranks)
        while waiting := waiting - (self._dead.keys() if or_dead else set()):
            heard = yield deadline
            if heard is None:
                if self._now() < deadline:
                    continue
                rank = min(waiting)
                self._fail(f"{self._called(rank)} not {event} after {within_s:g} s", rank)
            elif heard.get("rank") in waiting:
                if heard["event"] == event:
                    waiting.discard(heard["rank"])
                elif heard["event"] == "failed" or (heard["event"] == "ended" and not or_dead):
                    self._fail(_how(self._called(heard["rank"]), heard), heard["rank"], heard)

    def _new_session(self, share: Share) -> Process[None]:
        """All members in a session for whose packets nothing older can be taken."""
        run, fresh = self._run, self._session_share is None
        self._session_share = self.share = share
        run.install()
        try:
            session = run.begin_session(self)
        except NoSession as error:
            self._fail(str(error), None)
        agents = run.agents(self)
        begun_with = agents[0].configuration["settings"]
        if fresh and session.items() <= begun_with.items() and not self._forgetful:
            return
        self._forgetful = False
        for agent in agents:
            settings = {**session, **agent.session}
            members = list(self.members)
            self._send(agent.rank, command="configure", members=members, settings=settings)
        # Who dies meanwhile is the next attempt's failure, where there can be one.
        recovers = self.tenant.workload.on_failure != "fail"
        yield from self._await("ready", self._agents, run.start_s, or_dead=recovers)

    def _round_to_its_end(self, number: int) -> Process[None]:
        """Attempts until one succeeds; JobFailed when the workload's on_failure allows no more."""
        self._began_ns = self._now()
        attempts = 0
        while True:
            attempts += 1
            self._run.round_begins(self, number)
            ended, failure = yield from self._attempt(number)
            if failure is None:
                break
            self._run.round_over(self, None)
            yield from self._recover(failure, number)
        done = Round(number, tuple(self.members), ended, self._began_ns, attempts)
        self.result.rounds.append(done)
        self._run.round_over(self, done)

    def _attempt(self, number: int) -> Process[tuple[dict[int, Event], RoundFailure | None]]:
        for rank in sorted(self._agents):
            if rank in self._dead:
                return {}, self._round_failure(self._dead[rank])
        timeout_s = self._run.round_timeout_s(self)
        deadline = self._now() + round(timeout_s * S)
        marks = self._run.marks(self, number)
        extra = {"marks": marks} if marks else {}
        for rank in self.members:
            self._send(rank, command="round", round=number, **extra)
        ended: dict[int, Event] = {}
        while len(ended) < len(self.members):
            event = yield deadline
            if event is None and self._now() >= deadline:
                return ended, RoundFailure(f"round {number} not over after {timeout_s:g} s")
            if event is None:
                continue
            ours = event.get("rank") in self.members
            if ours and event["event"] == "round" and event["round"] == number:
                ended[event["rank"]] = event
            elif failure := self._round_failure(event):
                return ended, failure
        return ended, None

    def _round_failure(self, event: Event) -> RoundFailure | None:
        """What an event during a round means for it; None if nothing."""
        if event["event"] == "switch_emptied":
            if self.tenant.workload.on_failure == "fail":
                return None
            return RoundFailure(f"switch {event['switch']} has lost what it held", emptied=True)
        rank = event.get("rank", -1)
        if rank not in self._agents or event["event"] not in ("failed", "ended"):
            return None
        failure = RoundFailure(_how(self._called(rank), event), report=event.get("report", ""))
        failure.worker = self.worker(rank).host
        if event["event"] == "ended":
            failure.dead[rank] = _how("", event)
        else:
            failure.hopeless = event.get("missing") is None
            failure.waiting[rank] = event.get("waiting", [])
        return failure

    def _recover(self, failure: RoundFailure, number: int) -> Process[None]:
        """Everything that must be before the round can run again. JobFailed if it cannot."""
        policy = self.tenant.workload.on_failure
        yield from self._abort(failure)
        self._run.broken_off(self, number)
        absent = self._absent(failure)
        reason, worker = self._explained(failure, absent)
        if failure.hopeless:
            reason, worker = failure.first, None
        if policy == "fail" or failure.hopeless:
            self._fail(reason, worker, {"report": failure.report})
        self.result.restarts += 1
        if self.result.restarts > self.tenant.workload.restarts_max:
            count = self.tenant.workload.restarts_max
            self._fail(f"{reason}; given up after {count} restarts", worker)
        if policy == "survivors":
            self._go_on_without(failure, reason, worker)
        else:
            yield from self._revive(failure, reason, worker)
            self._run.broken_off(self, number)  # of those who were silent until now
        assert self._session_share is not None, "there was a session"
        yield from self._new_session(self._session_share)

    def _abort(self, failure: RoundFailure) -> Process[None]:
        """Every living member leaves the round; who does not answer is silent. Servers are asked
        for what they wait for, too."""
        members = set(self.members) - failure.dead.keys() - failure.waiting.keys()
        servers = self._servers.keys() - self._dead.keys()
        for rank in members:
            self._send(rank, command="abort")
        for rank in servers:
            self._send(rank, command="report")
        asked = members | servers
        deadline = self._now() + round(ANSWER_S * S)
        while asked:
            event = yield deadline
            if event is None:
                if self._now() >= deadline:
                    break
                continue
            rank = event.get("rank", -1)
            if rank not in asked:
                continue
            if event["event"] in ("aborted", "failed"):
                failure.waiting[rank] = event.get("waiting", [])
                asked.discard(rank)
            elif event["event"] == "served":
                failure.unserved[rank] = event.get("waiting", [])
                asked.discard(rank)
            elif event["event"] == "ended":
                failure.dead[rank] = _how("", event)
                asked.discard(rank)
        failure.silent = asked & members

    def _absent(self, failure: RoundFailure) -> Mapping[str, Absent]:
        waiting = {self.tenant.hosts[rank]: entries for rank, entries in failure.waiting.items()}
        unserved = {self._servers[r].host: entries for r, entries in failure.unserved.items()}
        return self._run.absent(self, waiting, unserved)

    def _explained(
        self, failure: RoundFailure, absent: Mapping[str, Absent]
    ) -> tuple[str, int | None]:
        """One line, and the rank of the worker to name: the dead, the silent, who owes most."""
        hosts = self.tenant.hosts
        owing = [hosts.index(name) for name in absent if name in hosts]
        named = [*sorted(failure.dead), *sorted(failure.silent), *owing]
        if not named:
            others = [f"switch {name} {owes}" for name, owes in absent.items()]
            where = f"; {others[0]} of {self.tenant.name}" if others else ""
            return f"{failure.first}{where}{self._run.faults_so_far()}", None
        rank = named[0]
        parts = []
        if rank in failure.dead:
            parts.append(failure.dead[rank].strip())
        elif rank in failure.silent:
            parts.append("answers nothing")
        if owes := absent.get(self.worker(rank).host):
            parts.append(f"{owes} of {self.tenant.name}")
        what = f"{self._called(rank)} {' and '.join(parts)}"
        return f"{what}{self._run.faults_so_far()}", rank

    def _go_on_without(self, failure: RoundFailure, reason: str, worker: int | None) -> None:
        """Leave out the dead and the silent; if there are none, the one who owes most, unless a
        switch has lost what all had sent."""
        gone = failure.dead.keys() | failure.silent
        if lost := gone & self._servers.keys():
            self._fail(reason, min(lost))
        if not gone and worker is not None and not failure.emptied:
            gone = {worker}
        if len(gone) >= len(self.members):
            self._fail(f"{reason}; nobody is left", worker)
        for rank in sorted(gone & set(self.members)):
            self.members.remove(rank)
            self.result.lost.append(rank)

    def _revive(self, failure: RoundFailure, reason: str, worker: int | None) -> Process[None]:
        """The dead are started again, by us or by their fault's end; the silent may yet answer."""
        give_up_s = self.tenant.workload.give_up_s
        ours, theirs = [], set()
        for rank in failure.dead:
            back = self._run.comes_back(self.worker(rank))
            if back is False:
                self._fail(reason, rank)
            elif back:
                theirs.add(rank)
            else:
                ours.append(rank)
        if ours:
            yield from self._start_workers(ours)
        if failure.silent:
            yield from self._await_silent(failure.silent, give_up_s, reason)
        if theirs:
            yield from self._await_return(theirs)

    def _await_silent(self, ranks: set[int], within_s: float, reason: str) -> Process[None]:
        deadline = self._now() + round(within_s * S)
        while ranks:
            event = yield deadline
            if event is None and self._now() >= deadline:
                self._fail(reason, min(ranks))
            if event and event["event"] in ("aborted", "failed", "round"):
                ranks.discard(event.get("rank", -1))

    def _await_return(self, ranks: set[int]) -> Process[None]:
        """Until their fault has ended and they are ready; JobFailed if that takes too long."""
        while any(self._run.comes_back(self.worker(rank)) for rank in ranks):
            yield FOREVER_NS
        deadline = self._now() + round(self._run.start_s * S)
        while late := ranks & self._dead.keys():
            yield deadline
            if self._now() >= deadline:
                self._fail(f"{self._called(min(late))} did not come back", min(late))

    def _fail(self, reason: str, rank: int | None, event: Mapping[str, Any] = {}) -> NoReturn:
        host = None if rank is None else self.worker(rank).host
        after_s = self._run.since_fault_s(self._began_ns)
        report = str(event.get("report", ""))
        raise JobFailed(Failure(self.tenant.name, reason, host, after_s, report))

    def _called(self, rank: int) -> str:
        if rank in self._servers:
            return f"{self._servers[rank].host}: server {rank - len(self.tenant.hosts)}"
        return f"{self.tenant.hosts[rank]}: worker {rank}"

    def _send(self, rank: int, **command: Any) -> None:
        self._run.backend.command(self.worker(rank), command)

    def _now(self) -> int:
        return self._run.backend.now_ns()


def _how(who: str, event: Event) -> str:
    """`h2: worker 1 ended early with status -9`, or its own words."""
    if event["event"] == "ended":
        return f"{who} ended early with status {event['status']}".strip()
    return f"{who}: {event['error']}"

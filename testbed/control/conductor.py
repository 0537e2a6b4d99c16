"""Runs all jobs and faults of a scenario on a backend, real or virtual: a loop over its events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agglab.testbed import usage
from agglab.testbed.backend import Backend, Event, WorkerId
from agglab.testbed.control.fault import FaultProcess
from agglab.testbed.control.job import JobProcess, Process
from agglab.testbed.control.judge import Attempt, Judge
from agglab.testbed.control.outcome import JobResult, Outcome, Round, Span
from agglab.testbed.control.turns import exhaust, may_rest
from agglab.testbed.faults import AtChunk, Attack, AtTime, Fault, WorkerCrash
from agglab.testbed.own_entries import Fill, as_planned
from agglab.testbed.plan import Entries
from agglab.testbed.progress import Progress
from agglab.testbed.record import EventLog
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import (
    Absent,
    ActiveJob,
    Agent,
    Share,
    Waiting,
)
from agglab.testbed.usage import Usage

ROUND_S, LINK_BOUNDS = 60.0, 20.0
IDLE_NS = 100_000_000
"""How long at most to wait for events, so that progress is drawn."""


class Conductor:
    """One run: what its jobs (job.py) and its faults (fault.py) ask for as `Run`."""

    def __init__(
        self,
        resolved: ResolvedScenario,
        backend: Backend,
        log: EventLog,
        progress: Progress,
        fill: Fill = as_planned,
    ) -> None:
        jobs, faults = resolved.jobs, resolved.faults
        self.backend = backend
        self.start_s = resolved.scenario.timeouts.start_s
        self.log = log
        self.jobs = [JobProcess(tenant, self, JobResult(tenant)) for tenant in jobs]
        self.faults = [FaultProcess(fault, self) for fault in faults]
        self.outcome = Outcome([job.result for job in self.jobs])
        self._system, self._resolved, self._progress = resolved.system, resolved, progress
        self._fill = fill
        self._chunks = {job.number: resolved.chunks(job) for job in jobs}
        self._judge = Judge(backend, resolved)
        # Verifying takes processors, and time in which faults may be due; but no virtual time.
        timed = any(isinstance(fault.trigger, AtTime) for fault in faults)
        self._judge_at_once = resolved.virtual or (len(jobs) == 1 and not timed)
        self.rests = may_rest(jobs, faults)
        self._broken_off: list[tuple[JobResult, Attempt]] = []
        self._sessions = self._system.sessions(resolved)
        self._origin: dict[str, int] = {}
        self._processes: dict[object, Process[None]] = {}
        self._deadlines: dict[object, int] = {}
        self._pending: deque[Event] = deque()
        self._installed: list[ActiveJob] | None = None
        self._entries: Mapping[str, Entries] = {}
        self._rounds_under_way = 0
        self._before: Usage = usage.NOTHING
        self._under_way_since: tuple[int, Mapping[str, int]] | None = None

    def run(self) -> Outcome:
        """Until every job has ended. Raises what the backend raises when it cannot go on."""
        return exhaust(self.turns())

    def turns(self) -> Generator[None, None, Outcome]:
        """`run` in turns, so that several runs, each on a backend of its own, can take theirs one
        after the other. Yields when all agents are ready and no time counts yet, and then before
        each further round, where the run may rest (turns.py). At a yield no round is under way, and
        nothing is due until the next turn."""
        for job in self.jobs:
            job.share = self._sessions.reserved(job.tenant)
        self.install()
        # Faults first: what is due at the same time as a round's start comes before it.
        actors: list[FaultProcess | JobProcess] = [*self.faults, *self.jobs]
        for actor in actors:
            self._processes[actor] = actor.steps(self._origin)
            self._advance(actor, None)
        while any(job in self._processes for job in self.jobs):
            if self._all_prepared():
                yield
                self._start_the_clock()
            self._drain()
            for job in self.jobs:
                if job.resting:
                    yield
                    job.resting = False
                    self._advance(job, None)
            until = min(self._deadlines.values())
            events = self.backend.wait(min(until, self.backend.now_ns() + IDLE_NS))
            for event in events:
                self._take(event)
                self._drain()
            self._expire()
            if self._progress.due():
                for event in self.backend.progress():
                    self._progress.event(event)
                self._progress.draw()
        self._finish()
        return self.outcome

    def _nothing_under_way(self) -> None:
        """The span is over. The clock is read outside the counters, so that it is never too short
        for what was carried."""
        if self._under_way_since is not None:
            begin_ns, before = self._under_way_since
            carried = {
                name: count - before[name] for name, count in self.backend.carried_bytes().items()
            }
            self.outcome.spans.append(Span(begin_ns, self.backend.now_ns(), carried))
            self._under_way_since = None

    def _finish(self) -> None:
        self._nothing_under_way()
        for result, attempt in self._broken_off:
            self._judge_broken_off(result, attempt)
        for job in self.jobs:
            for done in job.result.rounds[len(job.result.verdicts) :]:
                self._judge_round(job.result, done)
        never = (str(m) for m in self.faults if m.began_ns is None)
        self.outcome.never_begun = list(dict.fromkeys(never))  # one of a host, not of each job
        self.outcome.begun = [m.fault for m in self.faults if m.began_ns is not None]
        sent = sum((fault.sent for fault in self.faults), Counter[str]())
        self.outcome.attacked = dict(sorted(sent.items()))
        for fault in self.faults:
            if isinstance(fault.fault.action, Attack):
                count = self.outcome.injected.get(fault.target, 0) + fault.sent.total()
                self.outcome.injected[fault.target] = count

    def _all_prepared(self) -> bool:
        """The workers of all jobs are ready, or have failed to be, and times do not count yet."""
        unstarted = "start_ns" not in self._origin
        return unstarted and all(job.ready or job not in self._processes for job in self.jobs)

    def _start_the_clock(self) -> None:
        self._origin["start_ns"] = self.backend.now_ns()
        self.tell("started", at_ns=self._origin["start_ns"])

    def _take(self, event: Event) -> None:
        fields = {k: v for k, v in event.items() if k not in ("event", "t_ns", "report")}
        if "t_ns" in event:
            fields["agent_ns"] = event["t_ns"]
        if event["event"] == "round":
            fields["chunks"] = self._chunks[event["job"]]
        self.log.add(event["event"], **fields)
        if event["event"] in ("progress", "round"):
            self._progress.event(event)
        for job in self.jobs:
            if job.tenant.number == event["job"]:
                job.note(event)
        self._pending.append(event)

    def _drain(self) -> None:
        """Deliver what waits; what comes of it is delivered after it."""
        while self._pending:
            event = self._pending.popleft()
            for actor in list(self._processes):
                if not isinstance(actor, JobProcess) or event.get("job") in (
                    None,
                    actor.tenant.number,
                ):
                    self._advance(actor, event)

    def _expire(self) -> None:
        now_ns = self.backend.now_ns()
        for actor in [actor for actor, due in self._deadlines.items() if due <= now_ns]:
            self._advance(actor, None)

    def _advance(self, actor: object, event: Event | None) -> None:
        process = self._processes.get(actor)
        if process is None:
            return
        try:
            self._deadlines[actor] = process.send(event)
        except StopIteration:
            del self._processes[actor]
            self._deadlines.pop(actor, None)

    # What faults ask for.

    def tell(self, event: str, **content: Any) -> None:
        """Record an event and let everybody know."""
        self.log.add(event, **content)
        self._pending.append({"event": event, **content})

    def start_again(self, worker: WorkerId) -> None:
        job = next(job for job in self.jobs if job.tenant.number == worker.job)
        agents = self._system.agents(self._resolved, self._resolved.whole(job.tenant, job.share))
        agent = next(
            each for each in agents if (each.host, each.role) == (worker.host, worker.role)
        )
        self.backend.start_worker(worker, agent.configuration)

    def fill(self, switch: str) -> None:
        self.backend.install(switch, self._fill(switch, self._entries[switch]))
        self.tell("switch_emptied", switch=switch)

    def foreign_frames(self, fault: Fault) -> Iterator[tuple[str, bytes]]:
        assert isinstance(fault.action, Attack)
        key = f"{self._resolved.seed}/attack/{fault.number}"
        return self._system.attack(key, self._resolved, fault.action.host)

    # What jobs ask for.

    def agents(self, job: JobProcess) -> Sequence[Agent]:
        return self._system.agents(self._resolved, self._active(job))

    def join(self, job: JobProcess) -> None:
        self._sessions.join(job.tenant)

    def take_share(self, job: JobProcess) -> Share | None:
        before = self._sessions.held(job.tenant)
        held = self._sessions.take(job.tenant)
        if held != before:
            told = dict(self._sessions.changed(job.tenant))
            self.tell(told.pop("event"), of=job.tenant.name, **told)
        return held

    def begin_session(self, job: JobProcess) -> Mapping[str, Any]:
        return self._sessions.begin(job.tenant)

    def leave(self, job: JobProcess) -> None:
        self._sessions.leave(job.tenant)
        job.share = self._sessions.reserved(job.tenant)
        self.install()
        self.tell("job_end", of=job.tenant.name)

    def install(self) -> None:
        jobs = [self._active(job) for job in self.jobs if job.share is not None]
        if jobs == self._installed:
            return
        self._installed = jobs
        self._entries = self._system.tables(self._resolved.graph, jobs)
        for switch, entries in self._entries.items():
            self.backend.install(switch, self._fill(switch, entries))

    def _active(self, job: JobProcess) -> ActiveJob:
        return ActiveJob(job.tenant, self.jobs.index(job), tuple(job.members), job.share)

    def absent(
        self,
        job: JobProcess,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        active, graph = self._active(job), self._resolved.graph
        return self._system.diagnose(self.backend, graph, active, waiting, unserved)

    def marks(self, job: JobProcess, number: int) -> list[int]:
        triggers = [m.fault.trigger for m in self.faults if m.began_ns is None]
        return [
            trigger.chunk + 1
            for trigger in triggers
            if isinstance(trigger, AtChunk)
            and (trigger.job, trigger.round) == (job.tenant.number, number)
        ]

    def round_timeout_s(self, job: JobProcess) -> float:
        configured = self._resolved.scenario.timeouts.round_s
        bound_s = self._system.bounds(self._resolved, self._active(job)).link_s
        return configured or ROUND_S + LINK_BOUNDS * bound_s + job.tenant.workload.give_up_s

    def round_begins(self, job: JobProcess, number: int) -> None:
        if self._rounds_under_way == 0:
            self._before = self.backend.usage()
        if self._under_way_since is None:
            self._under_way_since = (self.backend.now_ns(), self.backend.carried_bytes())
        self._rounds_under_way += 1
        self.log.add(
            "round_begin",
            of=job.tenant.name,
            job=job.tenant.number,
            round=number,
            ranks=list(job.members),
        )
        self._progress.begin_round(job.tenant.number, number, self.backend.now_ns())

    def round_over(self, job: JobProcess, done: Round | None) -> None:
        self._rounds_under_way -= 1
        if self._rounds_under_way == 0:
            used = self.backend.usage().since(self._before)
            self.outcome.usage = self.outcome.usage + used
        if done is None:
            self.tell("round_broken_off", of=job.tenant.name)
            return
        if self._rounds_under_way == 0:
            self._nothing_under_way()
        self._progress.end_round(job.tenant.number, done.time_s)
        if self._judge_at_once:
            self._judge_round(job.result, done)

    def _judge_round(self, result: JobResult, done: Round) -> None:
        attempt = self._judge.collect(result.tenant, done.number, done.members, over=True)
        verdict = self._judge.verdict(result.tenant, attempt)
        result.verdicts.append(verdict)
        self.log.add(
            "verified",
            of=result.tenant.name,
            round=done.number,
            exact=verdict.exact,
            wrong_sums=verdict.wrong_sums,
            wrong_results=verdict.wrong_results,
            sums_sha256=self._judge.digest(result.tenant, attempt),
        )

    def broken_off(self, job: JobProcess, number: int) -> None:
        attempt = self._judge.collect(job.tenant, number, job.members, over=False)
        if not attempt.received:
            return
        if self._judge_at_once:
            self._judge_broken_off(job.result, attempt)
        else:
            self._broken_off.append((job.result, attempt))

    def _judge_broken_off(self, result: JobResult, attempt: Attempt) -> None:
        verdict = self._judge.verdict(result.tenant, attempt)
        result.broken_off.append((attempt.number, verdict))
        self.log.add(
            "verified_broken_off",
            of=result.tenant.name,
            round=attempt.number,
            ranks=list(attempt.received),
            wrong_sums=verdict.wrong_sums,
            wrong_results=verdict.wrong_results,
        )

    def comes_back(self, worker: WorkerId) -> bool | None:
        for fault in self.faults:
            action = fault.fault.action
            killed = isinstance(action, WorkerCrash) and WorkerId(action.job, action.host) == worker
            if killed and fault.began_ns is not None and not fault.ended:
                return fault.fault.duration_s is not None
        return None

    def since_fault_s(self, otherwise_ns: int) -> float:
        begun = [m.began_ns for m in self.faults if m.began_ns is not None]
        return (self.backend.now_ns() - max(begun, default=otherwise_ns)) / 1e9

    def faults_so_far(self) -> str:
        start_ns = self._origin.get("start_ns", 0)
        begun = [
            f"{m.name} {m.target} {(m.began_ns - start_ns) / 1e9:.3g} s after the start"
            for m in self.faults
            if m.began_ns is not None
        ]
        return f" (faults: {', '.join(dict.fromkeys(begun))})" if begun else ""


__all__ = ["Conductor"]

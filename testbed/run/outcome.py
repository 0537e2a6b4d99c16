"""The outcome of a run, job by job, as values from which metrics.json is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.base.processor_time import NOTHING, Usage
from agglab.testbed.base.worker_id import Event
from agglab.testbed.scenario.workloads.correctness import Verdict
from agglab.testbed.schema.faults import Fault
from agglab.testbed.schema.jobs import Job


@dataclass(frozen=True)
class Round:
    """One round that was completed. members: the ranks of the workers that took part. ended: the
    `round` event of each worker, by rank.

    began_ns: when the round was first started. attempts: how often it was started, 1 if nothing
    went wrong. rested_ns: how long the round waited for other runs' turns before it began.
    """

    number: int
    members: tuple[int, ...]
    ended: Mapping[int, Event]
    began_ns: int
    attempts: int
    rested_ns: int = 0

    @property
    def start_ns(self) -> int:
        """The time at which the first worker started the first attempt."""
        start = min(int(event["start_ns"]) for event in self.ended.values())
        return min(start, self.began_ns) if self.attempts > 1 else start

    @property
    def end_ns(self) -> int:
        """The time at which the last worker ended."""
        return max(int(event["end_ns"]) for event in self.ended.values())

    @property
    def time_s(self) -> float:
        """The seconds from the first worker's start of the first attempt to the last worker's
        end."""
        return float(self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True)
class Failure:
    """Why a job could not finish. worker: the host of the missing worker, if there is one.

    after_s: seconds since the last fault began, or since the round was started if no fault had
    begun. report: additional text for people. killed: whether SIGKILL ended an agent's program
    although no fault of the scenario says so.
    """

    job: str
    reason: str
    worker: str | None
    after_s: float
    report: str = ""
    killed: bool = False


@dataclass
class ControlCounts:
    """What a job's controller did. steps: how often it was called. deadlines: how many of these
    calls were at a deadline. missed: for how many deadlines the changes were complete too late.
    entries: how many entries it added and removed at all switches. latest_ns: the longest time from
    a deadline until its changes were complete."""

    steps: int = 0
    deadlines: int = 0
    missed: int = 0
    entries: int = 0
    latest_ns: int = 0


@dataclass
class JobResult:
    """One job's history; `verdicts` correspond to `rounds`. lost: the ranks of members that the job
    has left out and continued without.

    broken_off: for each aborted round in which some workers received results, its number and the
    verdict on these results. reports: every event with a worker's counts (`stats`) of a round, or
    of the part of a round before the worker left it. Rounds that failed or were aborted are
    included, because they used the network as well. servers: the servers' hosts by rank, if the
    system has servers. served: the events with the servers' counts. control: the counts of the
    job's controller, if the system has one. settled: whether no packets between its agents were
    under way when they were stopped. died_after_rounds: the agents whose programs ended after the
    last round without being told to, as messages call them. Nobody knows their last counts.
    """

    job: Job
    rounds: list[Round] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    broken_off: list[tuple[int, Verdict]] = field(default_factory=list)
    restarts: int = 0
    lost: list[int] = field(default_factory=list)
    reports: list[Event] = field(default_factory=list)
    servers: dict[int, str] = field(default_factory=dict)
    served: list[Event] = field(default_factory=list)
    control: ControlCounts | None = None
    failure: Failure | None = None
    settled: bool = True
    died_after_rounds: list[str] = field(default_factory=list)
    started_ns: int | None = None
    ended_ns: int | None = None

    @property
    def judged(self) -> list[tuple[int, Verdict]]:
        """All verdicts of the job, each with the number of its round."""
        whole = zip((done.number for done in self.rounds), self.verdicts, strict=False)
        return [*self.broken_off, *whole]


@dataclass(frozen=True)
class Span:
    """A period in which at least one job was in a round, on the backend's clock. carried: bytes
    that left the queue of each direction in that period."""

    begin_ns: int
    end_ns: int
    carried: Mapping[str, int]


@dataclass
class Outcome:
    """The results of all jobs, what the processors did during rounds, and which faults never began.

    spans: when attempts at rounds began and ended, and what links carried. An aborted attempt lasts
    until the next one begins or the run ends, because links still carry the frames that it left in
    their queues. begun: the faults that began. attacked: frames that attacks sent, by kind.
    injected: the same frames by the host that sent them. start_ns: the moment from which the
    scenario's times count.
    """

    jobs: list[JobResult]
    usage: Usage = NOTHING
    spans: list[Span] = field(default_factory=list)
    never_begun: list[str] = field(default_factory=list)
    begun: list[Fault] = field(default_factory=list)
    attacked: dict[str, int] = field(default_factory=dict)
    injected: dict[str, int] = field(default_factory=dict)
    start_ns: int = 0

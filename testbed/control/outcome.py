"""What a run came to, job by job, as values; metrics.json is computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.faults import Fault
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.usage import NOTHING, Usage
from agglab.testbed.verify import Verdict
from agglab.testbed.worker_id import Event


@dataclass(frozen=True)
class Round:
    """One round that ended. members: who took part, by rank. ended: rank -> its `round` event.

    began_ns: when it was first started; attempts: how often it was, 1 if nothing went wrong;
    rested_ns: how long others had their turns before it.
    """

    number: int
    members: tuple[int, ...]
    ended: Mapping[int, Event]
    began_ns: int
    attempts: int
    rested_ns: int = 0

    @property
    def time_s(self) -> float:
        """From the first worker's start, of the first attempt, to the last worker's end."""
        start = min(event["start_ns"] for event in self.ended.values())
        if self.attempts > 1:
            start = min(start, self.began_ns)
        return float(max(event["end_ns"] for event in self.ended.values()) - start) / 1e9


@dataclass(frozen=True)
class Failure:
    """Why a job could not end. worker: the host of who is missing, if one is.

    after_s: since the last fault began, or since the round was started where none had. report: what
    more there is to show a person.
    """

    job: str
    reason: str
    worker: str | None
    after_s: float
    report: str = ""


@dataclass
class ControlCounts:
    """What a job's controller did. steps: how often it was asked; deadlines: of them those for
    which a deadline had come; missed: those whose changes were in place too late; entries: that it
    added and took away, at all switches; latest_ns: after a deadline changes were in place."""

    steps: int = 0
    deadlines: int = 0
    missed: int = 0
    entries: int = 0
    latest_ns: int = 0


@dataclass
class JobResult:
    """One job's history; `verdicts` follow `rounds`. lost: ranks that survivors went on without.

    broken_off: round and verdict of what some workers had received when others had not.
    reports: every event with a worker's counts (`stats`) of a round, or of the part of it until the
    worker left it: also of rounds that failed or were broken off, for they used the network too.
    servers: rank -> host, where a system has them; served: the events with their counts.
    control: of a job whose system has a controller.
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
    started_ns: int | None = None
    ended_ns: int | None = None

    @property
    def judged(self) -> list[tuple[int, Verdict]]:
        """Every verdict, with its round."""
        whole = zip((done.number for done in self.rounds), self.verdicts, strict=False)
        return [*self.broken_off, *whole]


@dataclass(frozen=True)
class Span:
    """A time in which rounds of any job were under way, on the backend's clock. carried: bytes that
    left the queue of each direction meanwhile."""

    begin_ns: int
    end_ns: int
    carried: Mapping[str, int]


@dataclass
class Outcome:
    """All jobs, what the processors did during rounds, and which faults never began.

    spans: when attempts at rounds began and were over, and what links carried. One that was broken
    off is over when the next begins, or the run ends: till then links carry what it left in their
    queues. begun: the faults that did. attacked: frames that attacks sent, by kind; injected: by
    host. start_ns: since when times count.
    """

    jobs: list[JobResult]
    usage: Usage = NOTHING
    spans: list[Span] = field(default_factory=list)
    never_begun: list[str] = field(default_factory=list)
    begun: list[Fault] = field(default_factory=list)
    attacked: dict[str, int] = field(default_factory=dict)
    injected: dict[str, int] = field(default_factory=dict)
    start_ns: int = 0

"""What a run came to, job by job, as values; metrics.json is computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.backend import Event
from testbed.scenario.jobs import Tenant
from testbed.usage import NOTHING, Usage
from testbed.verify import Verdict


@dataclass(frozen=True)
class Round:
    """One round that ended. members: who took part, by rank. ended: rank -> its `round` event.

    began_ns: when it was first started; attempts: how often it was, 1 if nothing went wrong.
    """

    number: int
    members: tuple[int, ...]
    ended: Mapping[int, Event]
    began_ns: int
    attempts: int

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
class JobResult:
    """One job's history; `verdicts` follow `rounds`. lost: ranks that survivors went on without."""

    tenant: Tenant
    rounds: list[Round] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    restarts: int = 0
    lost: list[int] = field(default_factory=list)
    failure: Failure | None = None
    started_ns: int | None = None
    ended_ns: int | None = None


@dataclass
class Outcome:
    """All jobs, what the processors did during rounds, and which faults never began.

    under_way_ns: when attempts at rounds, of any job, began and were over, on the backend's clock.
    One that was broken off is over when the next begins, or the run ends: till then links carry
    what it left in their queues.
    """

    jobs: list[JobResult]
    usage: Usage = NOTHING
    under_way_ns: list[tuple[int, int]] = field(default_factory=list)
    never_begun: list[str] = field(default_factory=list)

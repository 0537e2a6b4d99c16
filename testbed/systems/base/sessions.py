"""What the jobs of a run share, and the sessions of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base.active_job import Share

FIRST_SESSION = 1
NOTHING_SHARED = 0


class NoSession(Exception):
    """Raised if no new session can begin. The message is one line that says why."""


class Sessions(Protocol):
    """What the jobs of one run share, such as slots, and the sessions of each job. A job's `share`
    is the value that `take` returned. The tables of switches and the keys of a session depend on
    it."""

    def join(self, job: Job) -> None:
        """Lets the job compete for shares from now on."""

    def leave(self, job: Job) -> None: ...

    def reserved(self, job: Job) -> Share | None:
        """Returns what switches reserve for the job before it joins and after it has left; None for
        nothing."""

    def held(self, job: Job) -> Share | None: ...

    def take(self, job: Job) -> Share | None:
        """Returns as much of the job's share as is free; None if the job has to wait. It is called
        between two rounds."""

    def changed(self, job: Job) -> Mapping[str, Any]:
        """Returns an event for the log that reports the job's new share: the key `event`, and
        others."""

    def begin(self, job: Job) -> Mapping[str, Any]:
        """Returns the keys of agents' configuration for a new session. During this session, no
        packet of an older session can be mistaken for a current one. Raises NoSession."""


class NumberedSessions:
    """Sessions of jobs that share nothing. Each session has a number that tells its packets from
    those of others."""

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}

    def join(self, job: Job) -> None: ...

    def leave(self, job: Job) -> None: ...

    def reserved(self, job: Job) -> Share | None:
        return NOTHING_SHARED

    def held(self, job: Job) -> Share | None:
        return NOTHING_SHARED

    def take(self, job: Job) -> Share | None:
        return NOTHING_SHARED

    def changed(self, job: Job) -> Mapping[str, Any]:
        raise AssertionError("a share that never changes")

    def begin(self, job: Job) -> Mapping[str, Any]:
        self._begun[job.number] = self._begun.get(job.number, 0) + 1
        return {"session": self._begun[job.number]}

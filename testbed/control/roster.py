"""The jobs of a run as they are now: who takes part, and what each has of what jobs share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agglab.hosts.part import WORKER
from agglab.testbed.control.filling import Filler
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.systems.base import ActiveJob, Agent, Share
from agglab.testbed.worker_id import WorkerId


class Roster:
    """Every change of it that concerns switches fills them anew. tell: is given an event whenever
    a job's share has changed or a job has left."""

    def __init__(
        self, resolved: ResolvedScenario, filler: Filler, tell: Callable[..., None]
    ) -> None:
        self._system, self._resolved = resolved.system, resolved
        self._filler, self._tell = filler, tell
        self._sessions = self._system.sessions(resolved)
        self._active = {
            job.number: resolved.whole(job, self._sessions.reserved(job)) for job in resolved.jobs
        }

    def active(self, job: Job) -> ActiveJob:
        """The job with the members and the share that it has now."""
        return self._active[job.number]

    def agents(self, job: Job) -> Sequence[Agent]:
        """Of the members, by rank, then servers."""
        return self._system.agents(self._resolved, self.active(job))

    def everybody(self, job: int) -> Mapping[WorkerId, Agent]:
        """The agents of the job of that number, with those that are members no longer."""
        active = self._active[job]
        whole = self._resolved.whole(active.job, active.share)
        return {
            WorkerId(job, agent.host, agent.role, 0 if agent.role == WORKER else agent.rank): agent
            for agent in self._system.agents(self._resolved, whole)
        }

    def configuration(self, worker: WorkerId) -> Mapping[str, Any]:
        """What an agent's program is started with, also one that is a member no longer."""
        return self.everybody(worker.job)[worker].configuration

    def fill_switches(self) -> None:
        """For the jobs that have a share."""
        self._filler.fill_for([job for job in self._active.values() if job.share is not None])

    def leave_out(self, job: Job, ranks: Collection[int]) -> None:
        """Members that the job goes on without."""
        members = tuple(rank for rank in self.active(job).members if rank not in ranks)
        self._change(job, members=members)

    def join(self, job: Job) -> None:
        """The job competes with others from now on."""
        self._sessions.join(job)

    def take_share(self, job: Job) -> Share | None:
        """What is due to the job now; None while it has to wait. It counts from the next session
        on."""
        before = self._sessions.held(job)
        held = self._sessions.take(job)
        if held != before:
            told = dict(self._sessions.changed(job))
            self._tell(told.pop("event"), of=job.name, **told)
        return held

    def begin_session(self, job: Job, share: Share) -> Mapping[str, Any]:
        """Settings of a new session with this share. Raises NoSession."""
        self._change(job, share=share)
        self.fill_switches()
        return self._sessions.begin(job)

    def leave(self, job: Job) -> None:
        """The job is over; others may have what it had."""
        self._sessions.leave(job)
        self._change(job, share=self._sessions.reserved(job))
        self.fill_switches()
        self._tell("job_end", of=job.name)

    def _change(self, job: Job, **changes: Any) -> None:
        self._active[job.number] = replace(self.active(job), **changes)

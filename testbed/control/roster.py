"""The jobs of a run as they are now: who takes part, and what each has of what jobs share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agglab.testbed.backend import WorkerId
from agglab.testbed.control.filling import Filler
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.base import ActiveJob, Agent, Share


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

    def active(self, job: Tenant) -> ActiveJob:
        """The job with the members and the share that it has now."""
        return self._active[job.number]

    def agents(self, job: Tenant) -> Sequence[Agent]:
        """Of the members, by rank, then servers."""
        return self._system.agents(self._resolved, self.active(job))

    def configuration(self, worker: WorkerId) -> Mapping[str, Any]:
        """What an agent's program is started with, also one that is a member no longer."""
        active = next(each for each in self._active.values() if each.job.number == worker.job)
        whole = self._resolved.whole(active.job, active.share)
        agents = self._system.agents(self._resolved, whole)
        return next(
            agent.configuration
            for agent in agents
            if (agent.host, agent.role) == (worker.host, worker.role)
        )

    def fill_switches(self) -> None:
        """For the jobs that have a share."""
        self._filler.fill_for([job for job in self._active.values() if job.share is not None])

    def leave_out(self, job: Tenant, ranks: Collection[int]) -> None:
        """Members that the job goes on without."""
        members = tuple(rank for rank in self.active(job).members if rank not in ranks)
        self._change(job, members=members)

    def join(self, job: Tenant) -> None:
        """The job competes with others from now on."""
        self._sessions.join(job)

    def take_share(self, job: Tenant) -> Share | None:
        """What is due to the job now; None while it has to wait. It counts from the next session
        on."""
        before = self._sessions.held(job)
        held = self._sessions.take(job)
        if held != before:
            told = dict(self._sessions.changed(job))
            self._tell(told.pop("event"), of=job.name, **told)
        return held

    def begin_session(self, job: Tenant, share: Share) -> Mapping[str, Any]:
        """Settings of a new session with this share. Raises NoSession."""
        self._change(job, share=share)
        self.fill_switches()
        return self._sessions.begin(job)

    def leave(self, job: Tenant) -> None:
        """The job is over; others may have what it had."""
        self._sessions.leave(job)
        self._change(job, share=self._sessions.reserved(job))
        self.fill_switches()
        self._tell("job_end", of=job.name)

    def _change(self, job: Tenant, **changes: Any) -> None:
        self._active[job.number] = replace(self.active(job), **changes)

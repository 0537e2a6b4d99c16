"""The current state of a run's jobs: which members each job has, and which share of the resources
that jobs share, such as the memory of switches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agglab.hosts.part import WORKER
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.run.table_writer import TableWriter
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob, Agent, Share


class Roster:
    """The jobs of a run with their members and shares. Every change that affects switches writes
    their entries again. tell: a function that is called with an event whenever a job's share has
    changed or a job has left."""

    def __init__(
        self, resolved: ResolvedScenario, table_writer: TableWriter, tell: Callable[..., None]
    ) -> None:
        self._system, self._resolved = resolved.system, resolved
        self._table_writer, self._tell = table_writer, tell
        self._sessions = self._system.sessions(resolved)
        self._active = {
            job.number: resolved.whole(job, self._sessions.reserved(job)) for job in resolved.jobs
        }
        self._agents: dict[int, Sequence[Agent]] = {}
        """What `agents` has returned since the job's last change."""

    def active(self, job: Job) -> ActiveJob:
        """Returns the job with its current members and share."""
        return self._active[job.number]

    def agents(self, job: Job) -> Sequence[Agent]:
        """Returns the agents of the members by rank, then the servers."""
        if job.number not in self._agents:
            self._agents[job.number] = self._system.agents(self._resolved, self.active(job))
        return self._agents[job.number]

    def everybody(self, job: int) -> Mapping[WorkerId, Agent]:
        """Returns all agents of the job with that number, including former members."""
        active = self._active[job]
        whole = self._resolved.whole(active.job, active.share)
        return {
            WorkerId(job, agent.host, agent.role, 0 if agent.role == WORKER else agent.rank): agent
            for agent in self._system.agents(self._resolved, whole)
        }

    def configuration(self, worker: WorkerId) -> Mapping[str, Any]:
        """Returns the configuration with which an agent's program is started. The agent may be a
        former member."""
        return self.everybody(worker.job)[worker].configuration

    def fill_switches(self) -> None:
        """Writes the entries of all switches for the jobs that have a share."""
        self._table_writer.write_for(
            [job for job in self._active.values() if job.share is not None]
        )

    def leave_out(self, job: Job, ranks: Collection[int]) -> None:
        """Removes members from the job, which continues without them."""
        members = tuple(rank for rank in self.active(job).members if rank not in ranks)
        self._change(job, members=members)

    def join(self, job: Job) -> None:
        """Lets the job compete with other jobs for shares from now on."""
        self._sessions.join(job)

    def take_share(self, job: Job) -> Share | None:
        """Returns the share to which the job is entitled now, or None while it has to wait. The
        share takes effect when the job's next session begins."""
        before = self._sessions.held(job)
        held = self._sessions.take(job)
        if held != before:
            told = dict(self._sessions.changed(job))
            self._tell(told.pop("event"), of=job.name, **told)
        return held

    def begin_session(self, job: Job, share: Share) -> Mapping[str, Any]:
        """Returns the settings of a new session with this share. Raises NoSession."""
        self._change(job, share=share)
        self.fill_switches()
        return self._sessions.begin(job)

    def leave(self, job: Job) -> None:
        """Ends the job and releases its share to others."""
        self._sessions.leave(job)
        self._change(job, share=self._sessions.reserved(job))
        self.fill_switches()
        self._tell("job_end", of=job.name)

    def _change(self, job: Job, **changes: Any) -> None:
        before, now = self.active(job), replace(self.active(job), **changes)
        self._active[job.number] = now
        if now != before:
            self._agents.pop(job.number, None)

"""Defines WorkerId, by which events and samples are assigned to the agents of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agglab.hosts.part import WORKER

Event = dict[str, Any]


@dataclass(frozen=True)
class WorkerId:
    """One agent of one job. A host has at most one worker of a job, whose rank here is 0. It may
    have any number of the job's servers and schedulers, which have different ranks."""

    job: int
    host: str
    role: str = WORKER
    rank: int = 0

    @classmethod
    def of(cls, event: Event) -> WorkerId:
        """Returns the agent that sent an event."""
        role = event.get("role", WORKER)
        return cls(event["job"], event["name"], role, 0 if role == WORKER else event["rank"])

    @property
    def name(self) -> str:
        """The agent's name in files and messages: `h2`, `h2-job2`, `h2-server-4`."""
        job = f"-job{self.job}" if self.job > 1 else ""
        return f"{self.host}{job}" + ("" if self.role == WORKER else f"-{self.role}-{self.rank}")

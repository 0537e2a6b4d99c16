"""A job at some moment of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agglab.testbed.schema.jobs import Job

Share = Any
"""A job's part of a resource that jobs share, such as the slots of switches. Only the system knows
what it contains. Shares can be compared with ==."""


@dataclass(frozen=True)
class ActiveJob:
    """A job at some moment of a run. index: its position in the run's list of jobs, which is also
    its index in counters. members: the ranks of the workers that take part. share: the share that
    Sessions gave it."""

    job: Job
    index: int
    members: tuple[int, ...]
    share: Share = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the members, by rank."""
        return tuple(self.job.hosts[rank] for rank in self.members)

"""Defines Known, which holds what is known about a scenario although it may contain mistakes. With
it, checks can look for further mistakes."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.scenario.metric_names import NO_COMPARISON, ComparisonContext
from agglab.testbed.schema.jobs import Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import EVERYTHING, Trust
from agglab.testbed.systems.base import System
from agglab.topologies import Topology


@dataclass(frozen=True)
class Known:
    """What is known about a scenario. graph: None if the topology cannot be built. jobs: the jobs,
    whose hosts are known if `hosts_known` says so. system: the system whose keys and limits apply.
    comparison: the contenders, if several runs are compared."""

    scenario: Scenario
    graph: Topology | None
    jobs: tuple[Job, ...]
    system: System
    trust: Trust = EVERYTHING
    comparison: ComparisonContext = NO_COMPARISON

    @property
    def job_names_known(self) -> bool:
        return self.trust("jobs", *(f"jobs[{i}].name" for i in range(len(self.scenario.jobs))))

    @property
    def all_hosts_known(self) -> bool:
        return len(self.jobs_with_hosts) == len(self.jobs)

    @property
    def jobs_with_hosts(self) -> tuple[Job, ...]:
        """The jobs whose hosts are known."""
        return tuple(job for job in self.jobs if self.hosts_known(job))

    def hosts_known(self, job: Job) -> bool:
        """Returns whether the job's hosts are known. They are unknown if the job's patterns match
        nothing, which is reported as a separate mistake."""
        path = f"jobs[{self.jobs.index(job)}].workers"
        return self.trust("jobs") and self.trust.whole(path) and bool(job.hosts)

    def workload_known(self, job: Job, key: str) -> bool:
        """Returns whether this key of the job's own `workload` and of the scenario's `workload` was
        read without error."""
        index = self.jobs.index(job)
        return self.trust(f"workload.{key}", f"jobs[{index}].workload.{key}")

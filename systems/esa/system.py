"""The system ESA: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agglab.systems.pooling.base import Pooling
from agglab.systems.pooling.counters import COUNTERS, EVICTED
from agglab.systems.pooling.keys import PoolingKeys
from agglab.testbed.schema.jobs import Finding, stated
from agglab.testbed.schema.key import keys_list
from agglab.testbed.schema.kinds import Whole
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import ActiveJob

PRIORITY_MAX = 255
WITH_EVICTED = {**COUNTERS, "evicted": EVICTED}


@dataclass(frozen=True)
class EsaKeys(PoolingKeys):
    """The keys of the section `esa`."""

    priorities: tuple[int, ...] = keys_list(
        "priorities",
        Whole(0, PRIORITY_MAX),
        "one for each job, in the order of the jobs; 0 for the jobs that have none",
    )


class Esa(Pooling):
    name = "esa"
    summary = (
        "slots that all jobs share; a chunk of a higher priority takes over a lower one's slot"
    )
    choose_when = (
        "Take it where jobs that share one switch, or the layers of one job, differ in "
        "importance: urgent chunks get the slots, and the others wait or go to their server."
    )
    options = EsaKeys
    preempts = True
    counters = WITH_EVICTED

    def priority(self, own: PoolingKeys, job: ActiveJob) -> int:
        priorities = own.priorities if isinstance(own, EsaKeys) else ()
        return priorities[job.index] if job.index < len(priorities) else 0

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        own, jobs = self.keys_of(scenario), len(stated(scenario))
        if not isinstance(own, EsaKeys) or not trust("jobs", self.name):
            return
        if len(own.priorities) > jobs:
            what = f"{len(own.priorities)} priorities for {jobs} jobs"
            yield f"{self.name}.priorities", what, "at most one for each job"


SYSTEM = Esa

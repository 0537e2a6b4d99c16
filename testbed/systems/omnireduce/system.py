"""OmniReduce's answers to what the testbed asks of a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agglab.hosts.systems.omnireduce import wire
from agglab.hosts.systems.omnireduce.endpoint import OWN_COUNTERS
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import SHARED_KEYS, Abilities, ActiveJob, Again
from agglab.testbed.systems.common import meanings
from agglab.testbed.systems.omnireduce import attack
from agglab.testbed.systems.omnireduce.load import load
from agglab.testbed.systems.summing.attack import Aim
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.sizes import Sizes


class OmniReduce(Summing):
    name = "omnireduce"
    choose_when = (
        "Take it for tensors of which most blocks are zero: time and bytes follow the blocks that "
        "are not."
    )
    summary = "switches sum in slots what is not zero: a worker sends the blocks that it has"
    abilities = Abilities(keys=frozenset(SHARED_KEYS) - {"workload.worker"})
    endpoints = "agglab.hosts.systems.omnireduce"
    host_counters = meanings(OWN_COUNTERS)
    sizes = Sizes(wire.HEADER_BYTES)

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        graph, seed, lanes = resolved.graph, resolved.seed, resolved.lanes
        return load(graph, seed, lanes, job, number, self.sizes)

    def rounds(self, job: ActiveJob) -> Iterable[int]:
        """Each round has other tensors."""
        return range(job.job.rounds)

    def beyond(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> Again:
        """What is sent again has values, or headers alone."""
        return self._frames(resolved, counts["retransmitted"])

    def answers(self, resolved: ResolvedScenario, packets: int, size: int) -> Again:
        """A packet of headers alone may be answered with values."""
        return self._frames(resolved, packets)

    def _frames(self, resolved: ResolvedScenario, packets: int) -> Again:
        longest = max(self.sizes.full(resolved.lanes), self.sizes.opening)
        return Again(packets * self.sizes.bare, packets * longest)

    def forge(self, aim: Aim, result: int, overhead: int) -> bytes:
        return attack.forge(aim, result, overhead)

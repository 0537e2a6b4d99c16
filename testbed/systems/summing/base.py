"""The answers that follow from switches that sum in slots, for a system to inherit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agglab.hosts.wire import VALUE_BYTES
from agglab.testbed.plan import Entries, Tree
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.jobs import Finding, Tenant
from agglab.testbed.scenario.trust import Trust
from agglab.testbed.systems import common
from agglab.testbed.systems.base import (
    Absent,
    ActiveJob,
    Again,
    Agent,
    Bounds,
    Cells,
    Combine,
    Registers,
    Setting,
    Source,
    System,
    TruthOf,
    Waiting,
)
from agglab.testbed.systems.summing import agents, attack, keys, trees
from agglab.testbed.systems.summing import counters as counted
from agglab.testbed.systems.summing.bounds import Load, bounds
from agglab.testbed.systems.summing.diagnosis import diagnose
from agglab.testbed.systems.summing.sessions import SlotSessions
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.truth import truth_of
from agglab.topologies import Topology

DYNAMIC = "partition: dynamic changes windows, and so the exponents sent, as jobs come and go"


class Summing(System):
    """Its program has the name of the system, and `LANES` and `SLOTS`."""

    sizes: Sizes
    endpoints: str
    """Module of the workers' endpoints."""
    counters = counted.COUNTERS
    attack_kinds = attack.KINDS

    @abstractmethod
    def load(self, setting: Setting, job: ActiveJob, number: int) -> Load:
        """Of the round of that number."""

    def rounds(self, job: ActiveJob) -> Iterable[int]:
        """Those whose loads differ."""
        return (0,)

    @abstractmethod
    def forge(self, aim: attack.Aim, result: int, overhead: int) -> bytes:
        """See attack.Forge."""

    # A scenario.

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        return keys.check(scenario, trust, self.sizes)

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        try:
            trees.tree_of(graph, job)
        except ValueError as error:
            return str(error)
        return ""

    def resolve(self, scenario: Scenario, slowest_bps: int) -> Scenario:
        return keys.resolve(scenario, slowest_bps, self.sizes)

    def lanes(self, scenario: Scenario) -> int:
        """As the scenario says, or the most that its MTU allows."""
        return common.lanes_of(scenario, self.sizes.header_bytes)

    def chunks(self, scenario: Scenario, job: Tenant) -> int:
        return -(-job.workload.elements // self.lanes(scenario))

    def chunk_bits(self, scenario: Scenario) -> int:
        return self.sizes.full(self.lanes(scenario)) * 8

    def memory_bytes(self, scenario: Scenario) -> int:
        return 2 * scenario.switch.slots * self.lanes(scenario) * VALUE_BYTES

    # Network and agents.

    def source(self, scenario: Scenario) -> Source:
        parameters = {"LANES": self.lanes(scenario), "SLOTS": scenario.switch.slots}
        return Source(self.name, parameters)

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        return trees.tables(graph, jobs)

    def agents(self, setting: Setting, job: ActiveJob) -> Sequence[Agent]:
        return agents.agents(setting, job, self.endpoints)

    def sessions(self, setting: Setting) -> SlotSessions:
        return SlotSessions(setting)

    # What should happen.

    def round_bytes(self, setting: Setting, job: ActiveJob, number: int) -> Mapping[str, int]:
        return self.load(setting, job, number).sent

    def bounds(self, setting: Setting, job: ActiveJob) -> Bounds:
        """Of the round that needs least."""
        tree = _tree(setting, job)
        found = [
            bounds(setting, job.job, tree, self.load(setting, job, number), self.sizes)
            for number in self.rounds(job)
        ]
        return Bounds(
            found[0].payload_s,
            min(each.link_s for each in found),
            min(each.lossy_s for each in found),
            max(each.window_share for each in found),
        )

    def beyond(
        self, setting: Setting, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> Again:
        """A contribution that is sent again is an opening, or carries values."""
        sizes = self.sizes.opening, self.sizes.full(setting.lanes)
        return Again(*(counts["retransmitted"] * size for size in sorted(sizes)))

    def unpredictable(self, scenario: Scenario) -> str:
        return DYNAMIC if scenario.switch.partition == "dynamic" else ""

    def sent_again(
        self,
        setting: Setting,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, Again]:
        def answers(packets: int, size: int) -> Again:
            return self.answers(setting, packets, size)

        return trees.sent_again(_tree(setting, job), job.index, more, counters, answers)

    def answers(self, setting: Setting, packets: int, size: int) -> Again:
        """How many bytes a switch sent again that so many packets asked for, of so many bytes."""
        return Again(size, size)

    def returns_sums(self, dtype: str) -> bool:
        return dtype == "float32"

    def block(self, setting: Setting) -> int:
        return setting.lanes

    def truth(self, setting: Setting, job: ActiveJob, combine: Combine | None) -> TruthOf:
        return truth_of(job.job.workload.dtype, setting.lanes, combine)

    # What switches did.

    def arrivals(self) -> tuple[str, ...]:
        return counted.ARRIVALS

    def owed(
        self, setting: Setting, job: ActiveJob, switch: str, cells: Mapping[str, Cells]
    ) -> int:
        return counted.owed(cells, job.index, _tree(setting, job), switch)

    # When something is wrong.

    def diagnose(
        self,
        source: Registers,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        first_slot, _ = job.share
        entries = {host: [(c, s, t) for c, s, t in waits] for host, waits in waiting.items()}
        return diagnose(source, trees.tree_of(graph, job), first_slot, entries)

    def attack(self, key: str, setting: Setting, host: str) -> Iterator[tuple[str, bytes]]:
        return attack.frames(key, setting, host, self.forge)


def _tree(setting: Setting, job: ActiveJob) -> Tree:
    return trees.tree_of(setting.graph, job)

"""SwitchML's answers to what the testbed asks of a system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agglab.hosts import wire
from agglab.testbed.plan import Entries, Tree
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.jobs import Finding, Tenant
from agglab.testbed.scenario.trust import Trust
from agglab.testbed.systems.base import (
    SHARED_KEYS,
    Abilities,
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
from agglab.testbed.systems.switchml import agents, attack, bounds, keys, trees
from agglab.testbed.systems.switchml import counters as counted
from agglab.testbed.systems.switchml.diagnosis import diagnose
from agglab.testbed.systems.switchml.sessions import SwitchMLSessions
from agglab.testbed.systems.switchml.truth import truth_of
from agglab.topologies import Topology

DYNAMIC = "partition: dynamic changes windows, and so the exponents sent, as jobs come and go"


class SwitchML(System):
    name = "switchml"
    summary = "switches on a tree sum chunks in slots; floats as integers with a shared exponent"
    is_default = True
    abilities = Abilities(keys=frozenset(SHARED_KEYS))
    counters = counted.COUNTERS
    attack_kinds = attack.KINDS

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        return keys.check(scenario, trust)

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        try:
            trees.tree_of(graph, job)
        except ValueError as error:
            return str(error)
        return ""

    def resolve(self, scenario: Scenario, slowest_bps: int) -> Scenario:
        return keys.resolve(scenario, slowest_bps)

    def chunks(self, scenario: Scenario, job: Tenant) -> int:
        return -(-job.workload.elements // keys.lanes_of(scenario))

    def chunk_bits(self, scenario: Scenario) -> int:
        return wire.frame_bytes(keys.lanes_of(scenario)) * 8

    def memory_bytes(self, scenario: Scenario) -> int:
        return 2 * scenario.switch.slots * keys.lanes_of(scenario) * wire.VALUE_BYTES

    def source(self, scenario: Scenario) -> Source:
        parameters = {"LANES": keys.lanes_of(scenario), "SLOTS": scenario.switch.slots}
        return Source(self.name, parameters)

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        return trees.tables(graph, jobs)

    def agents(self, setting: Setting, job: ActiveJob) -> Sequence[Agent]:
        return agents.agents(setting, job)

    def sessions(self, setting: Setting) -> SwitchMLSessions:
        return SwitchMLSessions(setting)

    def round_bytes(self, setting: Setting, job: ActiveJob) -> Mapping[str, int]:
        size = bounds.round_bytes(setting.scenario, job.job)
        both = (way for up_and_down in trees.ways(_tree(setting, job)) for way in up_and_down)
        return dict.fromkeys(both, size)

    def bounds(self, setting: Setting, job: ActiveJob) -> Bounds:
        tree = _tree(setting, job)
        return bounds.bounds(setting.scenario, setting.graph, job.job, tree)

    def beyond(
        self, setting: Setting, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> Again:
        """A contribution that is sent again is an opening, or carries values."""
        sizes = wire.opening_frame_bytes(), wire.frame_bytes(setting.lanes)
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
        return trees.sent_again(_tree(setting, job), job.index, more, counters)

    def returns_sums(self, dtype: str) -> bool:
        return dtype == "float32"

    def block(self, setting: Setting) -> int:
        return setting.lanes

    def truth(self, setting: Setting, job: ActiveJob, combine: Combine | None) -> TruthOf:
        return truth_of(job.job.workload.dtype, setting.lanes, combine)

    def arrivals(self) -> tuple[str, ...]:
        return counted.ARRIVALS

    def owed(
        self, setting: Setting, job: ActiveJob, switch: str, cells: Mapping[str, Cells]
    ) -> int:
        return counted.owed(cells, job.index, _tree(setting, job), switch)

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
        return attack.frames(key, setting, host)


def _tree(setting: Setting, job: ActiveJob) -> Tree:
    return trees.tree_of(setting.graph, job)

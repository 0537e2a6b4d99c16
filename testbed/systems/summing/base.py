"""The class Summing, which systems inherit whose switches sum in slots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from agglab.hosts.wire import VALUE_BYTES
from agglab.testbed.schema.jobs import Finding, Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems import common
from agglab.testbed.systems.base import (
    ActiveJob,
    Agent,
    Bounds,
    ByteRange,
    Cells,
    Choices,
    Combine,
    Counter,
    Evidence,
    MissingChunks,
    ResolvedScenario,
    RightResults,
    SlotMeter,
    Source,
    SwitchWork,
    System,
    Traffic,
    Unpredictable,
    Waiting,
    everywhere,
)
from agglab.testbed.systems.plan import Entries, Tree
from agglab.testbed.systems.summing import agents, attack, keys, meter, trees
from agglab.testbed.systems.summing import counters as counted
from agglab.testbed.systems.summing.bounds import Load, bounds
from agglab.testbed.systems.summing.diagnosis import diagnose
from agglab.testbed.systems.summing.sessions import SlotSessions
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.truth import truth_of
from agglab.topologies import Topology

DYNAMIC = "partition: dynamic changes the windows, and so the exponents sent, when jobs come and go"


class Summing(System):
    """A system whose switches sum in slots. Its program has the system's name, and the parameters
    `LANES` and `SLOTS`."""

    sizes: Sizes
    counters: Mapping[str, Counter] = counted.COUNTERS
    attack_kinds = attack.KINDS

    def sizes_of(self, scenario: Scenario) -> Sizes:
        """Returns the sizes of packets, which may depend on the scenario."""
        return self.sizes

    @abstractmethod
    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        """Returns the load of this round."""

    def rounds(self, job: ActiveJob) -> Iterable[int]:
        """Returns the numbers of rounds whose loads differ. All other rounds have one of these
        loads."""
        return (0,)

    @abstractmethod
    def forge(self, context: attack.AttackContext, result: int, overhead: int) -> bytes:
        """Returns a payload (see attack.Forge)."""

    # A scenario.

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        return keys.check(scenario, trust, self.sizes_of(scenario))

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        try:
            trees.tree_of(graph, job)
        except ValueError as error:
            return str(error)
        return ""

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        return keys.resolve(scenario, slowest_bps, delays_s, self.sizes_of(scenario))

    def lanes(self, scenario: Scenario) -> int:
        """Returns the number of lanes that the scenario states, or the largest number that its MTU
        allows."""
        return common.lanes_of(scenario, self.sizes_of(scenario).header_bytes)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // self.lanes(scenario))

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        return self.sizes_of(resolved.scenario).full(resolved.lanes) * 8

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        return 2 * resolved.slots * resolved.lanes * VALUE_BYTES

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        return everywhere(self.source(self.name, scenario))

    def source(self, program: str, scenario: Scenario, **more: int) -> Source:
        """Returns a program with these additional parameters, and the registers of its slots."""
        parameters = {"LANES": self.lanes(scenario), "SLOTS": scenario.switch.slots, **more}
        cells = parameters["SLOTS"] * parameters.get("SETS", 2)
        return Source(program, parameters, dict.fromkeys(("tags", "contributors", "finals"), cells))

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        return trees.tables(graph, jobs)

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        return agents.agents(resolved, job, self.endpoints)

    def sessions(self, resolved: ResolvedScenario) -> SlotSessions:
        return SlotSessions(resolved)

    # What should happen.

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        if resolved.scenario.switch.partition == "dynamic":
            raise Unpredictable(DYNAMIC)
        return Traffic(
            lambda number: self.load(resolved, job, number).sent,
            partial(self.extra_bytes, resolved, job),
            partial(self.retransmitted_bytes, resolved, job),
        )

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        """Returns the bounds of the round that takes the least time."""
        tree, sizes = _tree(resolved, job), self.sizes_of(resolved.scenario)
        loads = [self.load(resolved, job, number) for number in self.rounds(job)]
        found = [bounds(resolved, job.job, tree, load, sizes) for load in loads]
        return Bounds(
            found[0].payload_s,
            min(each.link_s for each in found),
            min(each.lossy_s for each in found),
            max(each.window_share for each in found),
        )

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the least and the most bytes of contributions that were sent again. A
        contribution is an opening or has values."""
        own = self.sizes_of(resolved.scenario)
        sizes = own.opening, own.full(resolved.lanes)
        return ByteRange(*(counts["retransmitted"] * size for size in sorted(sizes)))

    def retransmitted_bytes(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, ByteRange]:
        """Returns the retransmitted bytes (see Traffic)."""
        answers = partial(self.answers, resolved)
        return trees.retransmitted_bytes(_tree(resolved, job), job.index, more, counters, answers)

    def answers(self, resolved: ResolvedScenario, packets: int, size: int) -> ByteRange:
        """Returns the least and the most bytes of a switch's repeated answers, which it sends when
        it receives a packet again. packets, size: the number and the bytes of these packets, as the
        switch counted them. By default each answer is as long as the packet that it answers."""
        return ByteRange(size, size)

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        dtype, lanes = job.job.dtype, resolved.lanes
        return RightResults(truth_of(dtype, lanes, combine), lanes, dtype == "float32")

    # What switches did.

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        def expected_frames(job: ActiveJob, switch: str, cells: Mapping[str, Cells]) -> int:
            return counted.expected_frames(cells, job.index, _tree(resolved, job), switch)

        return SwitchWork(counted.ARRIVALS, (), expected_frames, share=lambda servers: 1.0)

    # When something is wrong.

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        first_slot, _ = job.share
        entries = {host: [tuple(each) for each in waits] for host, waits in waiting.items()}
        return diagnose(source, trees.tree_of(graph, job), first_slot, entries)

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        return meter.slot_meter(resolved)

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        return attack.frames(key, resolved, host, self.forge)


def _tree(resolved: ResolvedScenario, job: ActiveJob) -> Tree:
    return trees.tree_of(resolved.graph, job)

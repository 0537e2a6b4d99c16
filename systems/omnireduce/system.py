"""The system OmniReduce: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agglab.hosts.wire import VALUE_BYTES
from agglab.systems.omnireduce import attack, wire
from agglab.systems.omnireduce.gain import gain_limits
from agglab.systems.omnireduce.lanes import lanes_for
from agglab.systems.omnireduce.load import (
    entry_capacity,
    load,
    longest_bytes,
    saved,
    taken_for_saved,
)
from agglab.systems.omnireduce.worker import OWN_COUNTERS
from agglab.testbed.scenario.graph import bare
from agglab.testbed.scenario.job_list import jobs_of
from agglab.testbed.schema.jobs import Finding
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems import common
from agglab.testbed.systems.base import (
    SHARED_KEYS,
    Abilities,
    ActiveJob,
    Agent,
    ByteRange,
    Choices,
    Counter,
    ResolvedScenario,
    SwitchWork,
)
from agglab.testbed.systems.common import meanings, with_settings
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries, Replica
from agglab.testbed.systems.summing.attack import AttackContext
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.counters import COUNTERS
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.topologies import Topology

APART_GROUP, NO_LINK = 0x7FFF, 510
"""The multicast group of p4/omnireduce.p4 for the copies of a fused packet, and their port.
simple_switch_grpc reserves all groups above this one. The copies do not leave by the port, because
they are recirculated."""
BMV2_ROOM_BYTES = 512
"""The number of bytes by which a packet may grow in BMv2. If it grows more, it overruns its buffer.
An answer to headers alone grows by all its values."""
BMV2_LANES_MAX = BMV2_ROOM_BYTES // VALUE_BYTES
APART = (Replica(NO_LINK, 2), Replica(NO_LINK, 3))
TAKEN_APART = Counter("taken_apart", "how often a fused packet was split into two")


class OmniReduce(Summing):
    name = "omnireduce"
    choose_when = (
        "Take it for tensors of which most blocks are zero: time and bytes depend only on the "
        "blocks that are not."
    )
    summary = "switches sum in slots; a worker sends only the blocks that are not zero"
    abilities = Abilities(keys=frozenset(SHARED_KEYS) - {"workload.worker"})
    host_counters = meanings(OWN_COUNTERS)
    messages = Messages(
        wire.HEADER,
        wire.Kind,
        ["RESULT"],
        ["slot", "tag"],
        {"RESULT": wire.RESULT, "BARE": wire.BARE, "FUSED": wire.FUSED},
    )
    counters = COUNTERS | {"taken_apart": TAKEN_APART}
    sizes = Sizes(wire.HEADER_BYTES)

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        if not trust("switch.lanes", "switch.target") or scenario.switch.target != "bmv2":
            return
        lanes = scenario.switch.lanes or BMV2_LANES_MAX
        if lanes > BMV2_LANES_MAX:
            what = f"{lanes} lanes: in BMv2 a packet can grow by {BMV2_ROOM_BYTES} bytes only"
            yield "switch.lanes", what, f"at most {BMV2_LANES_MAX} with target bmv2"

    def lanes(self, scenario: Scenario) -> int:
        """Returns the number of lanes that the scenario states, or else the one with which workers
        send the fewest bytes."""
        if scenario.switch.lanes:
            return scenario.switch.lanes
        jobs = jobs_of(scenario, bare(scenario.topology), self)
        return lanes_for(jobs, self._most_lanes(scenario))

    def _most_lanes(self, scenario: Scenario) -> int:
        most = common.lanes_that_fit(scenario, self.sizes.header_bytes)
        return min(most, BMV2_LANES_MAX) if scenario.switch.target == "bmv2" else most

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        lanes = self.lanes(scenario)
        fitting = replace(scenario, switch=replace(scenario.switch, lanes=lanes))
        return super().resolve(fitting, slowest_bps, delays_s)

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        """Returns the table entries. They include the multicast group of the two copies that a
        switch makes of a fused packet."""
        return {
            switch: replace(entries, groups={**entries.groups, APART_GROUP: APART})
            for switch, entries in super().tables(graph, jobs).items()
        }

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        longest = {"longest_bytes": longest_bytes(resolved.graph)}
        return [with_settings(agent, longest) for agent in super().agents(resolved, job)]

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        graph, seed, lanes = resolved.graph, resolved.seed, resolved.lanes
        return load(graph, seed, lanes, job, number, self.sizes)

    def gain_limits(self, resolved: ResolvedScenario, job: ActiveJob) -> Iterator[str]:
        return gain_limits(resolved, job, self._most_lanes(resolved.scenario))

    def rounds(self, job: ActiveJob) -> Iterable[int]:
        """Returns the numbers of the rounds whose loads differ. Each round has other tensors."""
        return range(job.job.rounds)

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the least and the most bytes that a host sent beyond the prediction. Packets that
        were sent again have values or only headers. In addition, fewer packets may have been fused
        than the prediction assumes."""
        room = entry_capacity(resolved.graph, resolved.lanes)
        taken = sum(
            taken_for_saved(resolved.seed, resolved.lanes, room, job, number, self.sizes)[host]
            for number in self.rounds(job)
        )
        alone = taken - saved(counts["openings_fused"], counts["blocks_fused"], self.sizes)
        again = self._frames(resolved, counts["retransmitted"])
        return ByteRange(alone + again.least, alone + again.most)

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        return replace(super().switch_work(resolved), passes_within=("taken_apart",))

    def answers(self, resolved: ResolvedScenario, packets: int, size: int) -> ByteRange:
        """Returns the least and the most bytes of answers to these packets. A packet of headers
        alone may be answered with values."""
        return self._frames(resolved, packets)

    def _frames(self, resolved: ResolvedScenario, packets: int) -> ByteRange:
        longest = max(self.sizes.full(resolved.lanes), self.sizes.opening)
        return ByteRange(packets * self.sizes.bare, packets * longest)

    def forge(self, context: AttackContext, result: int, overhead: int) -> bytes:
        return attack.forge(context, result, overhead)


SYSTEM = OmniReduce

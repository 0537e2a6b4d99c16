"""Base class of every system whose agents send packets to each other while switches only forward.
It defines the bytes, the bounds and the right results. A subclass only has to say who sends how
much to whom, which agents there are, and in which order it adds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np

from agglab.hosts import wire
from agglab.hosts.driver import default_window
from agglab.hosts.part import WORKER
from agglab.testbed.schema.jobs import Finding, Job, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.target_names import TARGETS
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems import spoofing
from agglab.testbed.systems.base import (
    NOTHING_SHARED,
    Abilities,
    ActiveJob,
    Agent,
    Array,
    Bounds,
    ByteRange,
    Cells,
    Choices,
    Combine,
    Counts,
    JobChoices,
    ResolvedScenario,
    RightResults,
    System,
    Traffic,
    Truth,
    integer_sum,
)
from agglab.testbed.systems.common import (
    agent_configuration,
    check_lanes,
    independent_loss,
    lanes_of,
)
from agglab.testbed.systems.forwarding import (
    Flow,
    bytes_by_direction,
    path_s,
    rates,
    retransmitted_bytes,
    slowest_crossing_s,
)
from agglab.testbed.systems.frames import OVER_UDP
from agglab.topologies import Topology

KEYS = frozenset({"switch.lanes", "workload.window", "workload.first_timeout"})


class BetweenHosts(System):
    """A system whose switches only forward. transport: the protocol below its packets.
    header_bytes: the length of the system's own header. window_max: the largest window that it
    supports."""

    abilities = Abilities(targets=TARGETS, keys=KEYS)
    attack_kinds = spoofing.KINDS
    transport = OVER_UDP
    header_bytes: int
    window_max: int

    @abstractmethod
    def flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns what agents send each other in a round without loss. Flows between agents of one
        host are included."""

    def least_flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns the least that agents must send in a round, which may be less than `flows`."""
        return self.flows(resolved, job)

    def added(self, inputs: Sequence[Array], start: int, elements: int) -> Array:
        """Returns the sum of a block of all workers' float32 values, added in this system's order;
        by default, in the order of the ranks. start: the block's position in a tensor of `elements`
        elements."""
        return one_after_another(inputs)

    def forged(
        self, resolved: ResolvedScenario, job: ActiveJob, chance: Random, agent: Agent
    ) -> bytes:
        """Returns a payload with which an outsider attacks an agent. The default is random bytes. A
        subclass can return a payload that the agent would accept from a peer."""
        return chance.randbytes(self.header_bytes + wire.VALUE_BYTES * resolved.lanes)

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        def agents(job: Job) -> Sequence[Agent]:
            return self.agents(resolved, resolved.whole(job, NOTHING_SHARED))

        def forge(job: Job) -> spoofing.Forge:
            return partial(self.forged, resolved, resolved.whole(job, NOTHING_SHARED))

        return spoofing.frames(key, resolved, host, agents, forge, self.transport)

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from check_lanes(scenario, trust, self.header_bytes)
        window = scenario.workload.window
        if trust("workload.window") and window is not None and window > self.window_max:
            what = f"a window of {window} packets is more than {self.name} supports"
            yield "workload.window", what, f"at most {self.window_max}"

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        lanes = self.lanes(scenario)
        usual = default_window(self.frame_bytes(lanes), self.window_max, slowest_bps, delays_s)
        window = scenario.workload.window or usual
        jobs = [JobChoices(job.workload.window or window) for job in stated(scenario)]
        return Choices(jobs, lanes, window)

    def lanes(self, scenario: Scenario) -> int:
        """Returns the number of lanes that the scenario states, or the largest number that its MTU
        allows."""
        return lanes_of(scenario, self.header_bytes)

    def frame_bytes(self, lanes: int) -> int:
        """Returns the size of a packet with values, as an Ethernet frame without its checksum."""
        return wire.LOWER_HEADER_BYTES + self.header_bytes + wire.VALUE_BYTES * lanes

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        return self.frame_bytes(resolved.lanes) * 8

    def configuration(
        self,
        resolved: ResolvedScenario,
        job: Job,
        host: str,
        port: int,
        rank: int,
        role: str = WORKER,
    ) -> dict[str, Any]:
        """Returns the keys of hosts.agent for one agent, without `settings`."""
        return agent_configuration(resolved, job, self.endpoints, host, port, rank, role)

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        return Traffic(
            partial(self.round_bytes, resolved, job),
            partial(self.extra_bytes, resolved, job),
            partial(self.retransmitted_bytes, resolved, job),
        )

    def round_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, number: int
    ) -> Mapping[str, int]:
        """Returns the bytes of a round without loss (see Traffic)."""
        return bytes_by_direction(resolved.graph, self.flows(resolved, job))

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Counts
    ) -> ByteRange:
        """Returns the bytes that a host sent beyond the prediction (see Traffic). By default these
        are frames that were sent again, where the last frame of a chunk may be shorter."""
        return ByteRange(0, counts["retransmitted"] * self.chunk_bits(resolved) // 8)

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        graph, flows = resolved.graph, self.least_flows(resolved, job)
        sizes = bytes_by_direction(graph, flows)
        crossed = {name: rate for name, rate in rates(graph) if sizes.get(name)}
        slowest_bps = min(crossed.values(), default=min(rate for _, rate in rates(graph)))
        frame = self.chunk_bits(resolved) // 8
        between = [flow for flow in flows if flow.source != flow.target]
        shortest_s = min((trip_s(graph, flow, frame) for flow in between), default=0.0)
        in_flight_s = self.in_flight_bytes(resolved, job) * 8 / slowest_bps
        tensor_bits = job.job.elements * wire.VALUE_BYTES * 8
        return Bounds(
            payload_s=tensor_bits / slowest_bps,
            link_s=slowest_crossing_s(graph, sizes),
            lossy_s=lossy_crossing_s(graph, sizes),
            window_share=min(1.0, in_flight_s / shortest_s) if shortest_s else 1.0,
        )

    def in_flight_bytes(self, resolved: ResolvedScenario, job: ActiveJob) -> float:
        """Returns how many bytes a worker may have in flight."""
        return job.job.window * self.chunk_bits(resolved) / 8

    def retransmitted_bytes(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, ByteRange]:
        """Returns the retransmitted bytes (see Traffic)."""
        return retransmitted_bytes(resolved.graph, self.flows(resolved, job), more)

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        """Returns what results must be: integers modulo 2^32, and float32 bit for bit, added in the
        system's order."""
        if job.job.dtype != "float32":
            return RightResults(integer_sum)
        elements = job.job.elements
        return RightResults(lambda start, inputs: Truth(self.added(inputs, start, elements)))


def one_after_another(inputs: Iterable[Array]) -> Array:
    """Returns the float32 sum of blocks, each added to the sum of those before it."""
    total: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for block in inputs:
            total = block.astype(np.float32) if total is None else total + block
    assert total is not None, "a job has a worker"
    return total


def trip_s(graph: Topology, flow: Flow, frame_bytes: int) -> float:
    """Returns the time of a round trip through empty queues: a frame of this size goes from the
    flow's source to its target, and an acknowledgement comes back."""
    there = path_s(graph, flow.source, flow.target, frame_bytes)
    return there + path_s(graph, flow.target, flow.source, wire.LOWER_HEADER_BYTES)


def lossy_crossing_s(graph: Topology, sizes: Mapping[str, int]) -> float:
    """Returns the least expected time of a round with losses, in seconds. sizes: the bytes that the
    round puts on each direction. Every frame crosses a link with loss probability p 1 / (1 - p)
    times on average."""
    ways = {name: way for link in graph.links for name, _, _, way in link.directions()}
    return max(
        (
            size * 8 / rate / (1 - independent_loss(ways[name]))
            for name, size in sizes.items()
            if name in ways and (rate := ways[name].rate_bps)
        ),
        default=0.0,
    )

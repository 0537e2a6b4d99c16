"""The system of ring all-reduce: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import numpy as np

from agglab.hosts import shared
from agglab.hosts import wire as base_wire
from agglab.hosts.part import WORKER
from agglab.systems.ring import wire
from agglab.systems.ring.worker import ACKNOWLEDGE_EVERY, OWN_COUNTERS, packets_of_round
from agglab.testbed.schema.jobs import Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    ActiveJob,
    Agent,
    Array,
    ByteRange,
    Cells,
    Evidence,
    MissingChunks,
    ResolvedScenario,
    Waiting,
)
from agglab.testbed.systems.between_hosts import BetweenHosts, one_after_another
from agglab.testbed.systems.common import meanings
from agglab.testbed.systems.forwarding import Flow
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan.paths import path
from agglab.testbed.systems.withheld import blame_switches
from agglab.topologies import Topology

ACKNOWLEDGEMENT_BYTES = base_wire.LOWER_HEADER_BYTES + wire.HEADER_BYTES


class Ring(BetweenHosts):
    name = "ring"
    summary = "reduce-scatter and all-gather from host to host; switches only forward"
    choose_when = (
        "Take it where switches only forward and there is no host to spare: each of n workers "
        "sends and receives 2(n-1)/n of a tensor, in 2(n-1) consecutive steps."
    )
    host_counters = meanings(OWN_COUNTERS)
    header_bytes = wire.HEADER_BYTES
    messages = Messages(wire.HEADER, wire.Kind, [], ["round", "sequence"])
    window_max = wire.MAX_WINDOW

    def chunks(self, scenario: Scenario, job: Job) -> int:
        elements, workers = job.elements, len(job.hosts)
        return packets_of_round(elements, max(1, workers), self.lanes(scenario))

    def round_trips(self, job: Job) -> int:
        """Returns the number of steps. The last packet of each step is acknowledged, and what it
        brought is sent on in the next."""
        return 2 * (len(job.hosts) - 1)

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        port = base_wire.WORKER_PORT_BASE + job.job.number
        peers = [[resolved.graph.host(name).ip, port] for name in job.hosts]
        settings = {
            "lanes": resolved.lanes,
            "window": job.job.window,
            "session": FIRST_SESSION,
            "peers": peers,
        }
        found = []
        for rank in job.members:
            host = job.job.hosts[rank]
            configuration = self.configuration(resolved, job.job, host, port, rank)
            configuration["settings"] = settings
            found.append(Agent(WORKER, host, rank, configuration, {"peers": peers}, listens=True))
        return found

    def flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns the flows. Each worker sends data to the next worker, and to the one before it an
        acknowledgement for every few packets."""
        return [*self.least_flows(resolved, job), *_acknowledgements(resolved, job)]

    def least_flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns the flows of data without acknowledgements. Since one acknowledgement may be
        enough for a whole batch of packets, there can be almost none."""
        hosts, size = job.hosts, _packets(resolved, job) * wire.frame_bytes(resolved.lanes)
        return [Flow(a, b, size) for a, b in _neighbours(hosts)]

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the bytes that a host sent beyond the prediction: data that was sent again, and
        the difference between the sent and the predicted acknowledgements, which may be negative.
        """
        flows = [flow for flow in _acknowledgements(resolved, job) if flow.source == host]
        predicted = sum(flow.bytes for flow in flows) * job.job.rounds
        data = counts["retransmitted"] * wire.frame_bytes(resolved.lanes)
        size = data + counts["acknowledgement_bytes"] - predicted
        return ByteRange(size, size)

    def retransmitted_bytes(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, ByteRange]:
        """Returns the retransmitted bytes by direction. It is known how many bytes a host sent, but
        not how many of them were acknowledgements.

        On directions other than the host's own link, fewer acknowledgements than predicted may have
        crossed, because a batch has only one and it is never repeated. In that case,
        correspondingly more of the bytes that the host sent may have been data.
        """
        graph, rounds = resolved.graph, job.job.rounds
        again = dict(super().retransmitted_bytes(resolved, job, more, counters))
        own, beyond = {}, {}
        for flow in _acknowledgements(resolved, job):
            own[flow.source] = flow.bytes * rounds
            beyond[flow.source] = path(graph, flow.source, flow.target)[1:]
            for direction in beyond[flow.source]:
                known = again[direction]
                again[direction] = ByteRange(known.least - own[flow.source], known.most)
        for flow in self.least_flows(resolved, job):
            for direction in path(graph, flow.source, flow.target)[1:]:
                if direction not in beyond[flow.source]:
                    known = again[direction]
                    again[direction] = ByteRange(known.least, known.most + own[flow.source])
        return again

    def added(self, inputs: Sequence[Array], start: int, elements: int) -> Array:
        """Returns the sum of each segment. Segment j is added around the ring, beginning with the
        values of worker j."""
        workers, size = len(inputs), inputs[0].size
        total = np.empty(size, np.float32)
        for first in range(workers):
            low = max(0, elements * first // workers - start)
            high = min(size, elements * (first + 1) // workers - start)
            if low < high:
                order = (inputs[(first + step) % workers] for step in range(workers))
                total[low:high] = one_after_another(block[low:high] for block in order)
        return total

    def forged(
        self, resolved: ResolvedScenario, job: ActiveJob, chance: Random, agent: Agent
    ) -> bytes:
        """Returns data of the current round, or an acknowledgement of everything."""
        own, packets = agent.configuration["settings"], _packets(resolved, job)
        elements, workers = job.job.elements, len(job.job.hosts)
        is_float = job.job.dtype == "float32"
        header = np.zeros(1, wire.HEADER)
        header["version"] = wire.VERSION
        header["kind"] = chance.choice((wire.Kind.DATA, wire.Kind.ACKNOWLEDGEMENT))
        header["job"], header["session"] = job.job.number, own["session"]
        header["digest"] = shared.shape_digest(
            elements, workers, own["lanes"], own["window"], is_float, 0
        )
        header["round"] = chance.randrange(job.job.rounds)
        header["sequence"], header["cumulative"] = chance.randrange(packets), packets
        if header["kind"] == wire.Kind.ACKNOWLEDGEMENT:
            return header.tobytes()
        return header.tobytes() + chance.randbytes(base_wire.VALUE_BYTES * own["lanes"])

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        """Returns what each host owes. An agent waits for [rank, first, last]: a range of packets,
        and the rank of the worker from which it expects them.

        If that worker is the one before the agent in the ring, data is missing, which that worker
        may not have received itself. If it is the one behind the agent, acknowledgements of the
        agent's data are missing. Missing acknowledgements show between which two workers something
        is lost. So does missing data from a worker that does not answer at all. The worker in most
        such pairs comes first.
        """
        owing: dict[str, MissingChunks] = {}
        pairs: set[tuple[str, str]] = set()
        behind = dict(_neighbours(job.hosts))
        for host, waits in waiting.items():
            for rank, first, _ in waits:
                other = job.hosts[rank]
                owing.setdefault(other, MissingChunks()).never_sent.add(first)
                if behind[host] == other:
                    pairs.add((host, other))
                elif other not in waiting:
                    pairs.add((other, host))
        found = Counter(host for pair in pairs for host in pair)
        order = sorted(owing.items(), key=lambda item: (-found[item[0]], -item[1].count))
        return blame_switches(source, dict(order))


def _neighbours(hosts: Sequence[str]) -> list[tuple[str, str]]:
    """Returns each host with the host that follows it in the ring; empty for a single host."""
    following = [*hosts[1:], *hosts[:1]]
    return list(zip(hosts, following, strict=True)) if len(hosts) > 1 else []


def _packets(resolved: ResolvedScenario, job: ActiveJob) -> int:
    """Returns the number of data packets that each worker sends in a round."""
    return packets_of_round(job.job.elements, len(job.hosts), resolved.lanes)


def _acknowledgements(resolved: ResolvedScenario, job: ActiveJob) -> list[Flow]:
    """Returns the flows of acknowledgements if packets arrive one by one."""
    size = -(-_packets(resolved, job) // ACKNOWLEDGE_EVERY) * ACKNOWLEDGEMENT_BYTES
    return [Flow(b, a, size) for a, b in _neighbours(job.hosts)]


SYSTEM = Ring

"""The ring's answers to what the testbed asks of a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from agglab.hosts import wire as base_wire
from agglab.hosts.part import WORKER
from agglab.hosts.systems.ring import wire
from agglab.hosts.systems.ring.endpoint import ACKNOWLEDGE_EVERY, OWN_COUNTERS, packets_of_round
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.base import (
    Absent,
    ActiveJob,
    Agent,
    Array,
    Registers,
    Setting,
    Waiting,
)
from agglab.testbed.systems.between_hosts import (
    FIRST_SESSION,
    BetweenHosts,
    meanings,
    one_after_another,
)
from agglab.testbed.systems.forwarding import Flow
from agglab.topologies import Topology

ACKNOWLEDGEMENT_BYTES = base_wire.LOWER_HEADER_BYTES + wire.HEADER_BYTES


class Ring(BetweenHosts):
    name = "ring"
    summary = "reduce-scatter and all-gather from host to host; switches only forward"
    host_counters = meanings(OWN_COUNTERS)
    endpoints = "agglab.hosts.systems.ring"
    header_bytes = wire.HEADER_BYTES
    window_max = wire.MAX_WINDOW

    def chunks(self, scenario: Scenario, job: Tenant) -> int:
        elements, workers = job.workload.elements, len(job.hosts)
        return packets_of_round(elements, max(1, workers), self.lanes(scenario))

    def hosts(self, setting: Setting, job: ActiveJob) -> Sequence[str]:
        return job.hosts

    def agents(self, setting: Setting, job: ActiveJob) -> Sequence[Agent]:
        port = base_wire.WORKER_PORT_BASE + job.job.number
        peers = [[setting.graph.host(name).ip, port] for name in job.hosts]
        settings = {
            "lanes": setting.lanes,
            "window": job.job.workload.window,
            "session": FIRST_SESSION,
            "peers": peers,
        }
        found = []
        for rank in job.members:
            host = job.job.hosts[rank]
            configuration = self.configuration(setting, job.job, host, port, rank)
            configuration["settings"] = settings
            found.append(Agent(WORKER, host, rank, configuration, {"peers": peers}))
        return found

    def flows(self, setting: Setting, job: ActiveJob) -> Sequence[Flow]:
        """Data to the next worker; to the one before, an acknowledgement for every few packets."""
        hosts, elements = job.hosts, job.job.workload.elements
        packets = packets_of_round(elements, len(hosts), setting.lanes)
        data = packets * wire.frame_bytes(setting.lanes)
        acknowledged = -(-packets // ACKNOWLEDGE_EVERY) * ACKNOWLEDGEMENT_BYTES
        flows = []
        for rank, host in enumerate(hosts if len(hosts) > 1 else ()):
            flows.append(Flow(host, hosts[(rank + 1) % len(hosts)], data))
            flows.append(Flow(host, hosts[rank - 1], acknowledged))
        return flows

    def added(self, inputs: Sequence[Array], start: int, elements: int) -> Array:
        """Segment j is added from worker j on, around the ring."""
        workers, size = len(inputs), inputs[0].size
        total = np.empty(size, np.float32)
        for first in range(workers):
            low = max(0, elements * first // workers - start)
            high = min(size, elements * (first + 1) // workers - start)
            if low < high:
                order = (inputs[(first + step) % workers] for step in range(workers))
                total[low:high] = one_after_another(block[low:high] for block in order)
        return total

    def diagnose(
        self,
        source: Registers,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        """An agent waits for [rank, first, last]: packets from that worker, or acknowledgements by
        it. All wait for all in the end; who is waited for and waits for nothing owes most."""
        owing: dict[str, Absent] = {}
        for waits in waiting.values():
            for rank, first, _ in waits:
                owing.setdefault(job.hosts[rank], Absent()).never_sent.add(first)
        silent = {host: owes for host, owes in owing.items() if host not in waiting}
        return dict(sorted((silent or owing).items(), key=lambda item: -item[1].count))

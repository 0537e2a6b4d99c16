"""The parameter server's answers to what the testbed asks of a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agglab.hosts import wire as base_wire
from agglab.hosts.part import SERVER, WORKER
from agglab.hosts.systems.ps import wire
from agglab.hosts.systems.ps.endpoint import (
    MAX_WINDOW,
    OWN_COUNTERS,
    chunks_of_server,
)
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.base import (
    Abilities,
    Absent,
    ActiveJob,
    Again,
    Agent,
    Array,
    Registers,
    Setting,
    Waiting,
)
from agglab.testbed.systems.between_hosts import (
    FIRST_SESSION,
    KEYS,
    BetweenHosts,
    one_after_another,
)
from agglab.testbed.systems.common import meanings
from agglab.testbed.systems.forwarding import Flow, unreachable
from agglab.testbed.systems.ps.keys import PsKeys, dedicated
from agglab.topologies import Topology

SERVER_PORT_BASE = base_wire.WORKER_PORT_BASE - 8192
"""A server's UDP port is this plus its job's number."""


class ParameterServer(BetweenHosts):
    name = "ps"
    summary = "servers sum what workers push; on hosts of their own, or one beside each worker"
    abilities = Abilities(has_servers=True, keys=KEYS)
    options = PsKeys
    host_counters = meanings(OWN_COUNTERS)
    endpoints = "agglab.hosts.systems.ps"
    header_bytes = wire.HEADER_BYTES
    window_max = MAX_WINDOW

    def reserved_hosts(self, scenario: Scenario, graph: Topology) -> Sequence[str]:
        return dedicated(_keys(scenario), [host.name for host in graph.hosts])

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        return unreachable(graph, [host.name for host in graph.hosts])

    def chunks(self, scenario: Scenario, job: Tenant) -> int:
        return -(-job.workload.elements // self.lanes(scenario))

    def servers(self, setting: Setting, job: ActiveJob) -> tuple[str, ...]:
        """Hosts of the servers, by index. A job that lost a worker keeps the servers it had."""
        own = self.reserved_hosts(setting.scenario, setting.graph)
        return tuple(own) or job.job.hosts

    def agents(self, setting: Setting, job: ActiveJob) -> Sequence[Agent]:
        graph, tenant = setting.graph, job.job
        hosts = self.servers(setting, job)
        worker_port = base_wire.WORKER_PORT_BASE + tenant.number
        server_port = SERVER_PORT_BASE + tenant.number
        workers = [[graph.host(name).ip, worker_port] for name in job.hosts]
        servers = [[graph.host(name).ip, server_port] for name in hosts]
        shared = {
            "lanes": setting.lanes,
            "window": tenant.workload.window,
            "session": FIRST_SESSION,
            "servers": len(hosts),
        }
        found = []
        for rank in job.members:
            host = tenant.hosts[rank]
            configuration = self.configuration(setting, tenant, host, worker_port, rank)
            configuration["settings"] = {**shared, "peers": servers}
            found.append(Agent(WORKER, host, rank, configuration))
        for index, host in enumerate(hosts):
            rank = len(tenant.hosts) + index
            configuration = self.configuration(setting, tenant, host, server_port, rank, SERVER)
            configuration["settings"] = {**shared, "index": index, "peers": workers}
            found.append(Agent(SERVER, host, rank, configuration, {"peers": workers}))
        return found

    def flows(self, setting: Setting, job: ActiveJob) -> Sequence[Flow]:
        """What is a server's goes to it, and back."""
        hosts, elements = self.servers(setting, job), job.job.workload.elements
        frame, flows = wire.frame_bytes(setting.lanes), []
        for index, server in enumerate(hosts):
            size = frame * chunks_of_server(elements, len(hosts), setting.lanes, index)
            for worker in job.hosts:
                flows += [Flow(worker, server, size), Flow(server, worker, size)]
        return flows

    def beyond(
        self, setting: Setting, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> Again:
        """Pushes of a worker, and results that a server beside it was asked for again."""
        frames = counts["retransmitted"] + counts["answered_again"]
        size = frames * wire.frame_bytes(setting.lanes)
        return Again(size, size)

    def memory_bytes(self, scenario: Scenario) -> int:
        window = scenario.workload.window or 0
        return 2 * window * self.frame_bytes(scenario) * max(1, scenario.topology.workers)

    def added(self, inputs: Sequence[Array], start: int, elements: int) -> Array:
        """In the order of the ranks."""
        return one_after_another(inputs)

    def diagnose(
        self,
        source: Registers,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        """A server waits for [chunk, rank, ...]: the workers whose values have not come. Where none
        waits, whoever waits for [chunk, server] has not heard the result."""
        found: dict[str, Absent] = {}
        for entries in unserved.values():
            for chunk, *ranks in entries:
                for rank in ranks:
                    found.setdefault(job.hosts[rank], Absent()).never_sent.add(chunk)
        if not found:
            for host, entries in waiting.items():
                for chunk, _ in entries:
                    found.setdefault(host, Absent()).never_heard.add(chunk)
        return dict(sorted(found.items(), key=lambda item: -item[1].count))


def _keys(scenario: Scenario) -> PsKeys:
    own = dict(scenario.options).get(ParameterServer.name)
    return own if isinstance(own, PsKeys) else PsKeys()

"""A system as its user writes one: workers send all they have to a server, which returns the sum.

It knows no losses, so that it stays short: a lost packet ends the round. Python's floats are not
added, integers are. Endpoints: gather_endpoints.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gather_endpoints as wire

from agglab.hosts.part import SERVER, WORKER
from agglab.testbed.scenario import ResolvedScenario, Scenario
from agglab.testbed.schema.jobs import Job, stated
from agglab.testbed.schema.key import key
from agglab.testbed.schema.kinds import Whole
from agglab.testbed.systems import forwarding as plain
from agglab.testbed.systems.base import (
    Abilities,
    ActiveJob,
    Agent,
    Bounds,
    ByteRange,
    Choices,
    Combine,
    HostCounter,
    JobChoices,
    RightResults,
    System,
    Traffic,
    integer_sum,
)
from agglab.testbed.systems.common import agent_configuration
from agglab.topologies import Topology

ENDPOINTS = str(Path(__file__).with_name("gather_endpoints.py"))
WORKER_PORT, SERVER_PORT = 50_000, 51_000


@dataclass(frozen=True)
class Options:
    host: int = key("host", Whole(0, 63), 0, "beside which worker the server runs")


class Gather(System):
    name = "gather"
    summary = "a server adds"
    abilities = Abilities(dtypes=("int32",), has_servers=True, keys=frozenset({"switch.lanes"}))
    options = Options
    host_counters = {"rounds_served": HostCounter("rounds", "rounds a server has summed")}  # noqa: RUF012

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        jobs = [JobChoices() for _ in stated(scenario)]
        return Choices(jobs, lanes=scenario.switch.lanes or 256)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // (scenario.switch.lanes or 256))

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        return 8 * wire.frame_bytes(resolved.lanes)

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        ips = [resolved.graph.host(host).ip for host in job.job.hosts]
        port = job.job.number
        server = (self._server(resolved, job.job), SERVER_PORT + port)
        at = [resolved.graph.host(server[0]).ip, server[1]]
        workers = [[ip, WORKER_PORT + port] for ip in ips]
        agents = []
        for rank in job.members:
            peers = {"session": 1, "lanes": resolved.lanes, "peers": [at]}
            agents.append(self._agent(resolved, job, WORKER, job.job.hosts[rank], rank, peers))
        peers = {"session": 1, "lanes": resolved.lanes, "peers": workers}
        return [*agents, self._agent(resolved, job, SERVER, server[0], len(ips), peers)]

    def _agent(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        role: str,
        host: str,
        rank: int,
        settings: Any,
    ) -> Agent:
        port = (WORKER_PORT if role == WORKER else SERVER_PORT) + job.job.number
        shared = agent_configuration(resolved, job.job, ENDPOINTS, host, port, rank, role)
        return Agent(role, host, rank, {**shared, "settings": settings})

    def _server(self, resolved: ResolvedScenario, job: Job) -> str:
        return job.hosts[resolved.options.host]

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> list[str]:
        own = dict(scenario.options).get(self.name, Options())
        return list(workers[own.host : own.host + 1])

    def _flows(self, resolved: ResolvedScenario, job: ActiveJob) -> list[plain.Flow]:
        server = self._server(resolved, job.job)
        size = wire.round_bytes(job.job.elements, resolved.lanes)
        there = [plain.Flow(host, server, size) for host in job.hosts]
        return there + [plain.Flow(flow.target, flow.source, size) for flow in there]

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        graph, flows = resolved.graph, self._flows(resolved, job)
        frame_bytes = wire.frame_bytes(resolved.lanes)
        return Traffic(
            lambda number: plain.bytes_by_direction(graph, flows),
            lambda host, counts: ByteRange(0, counts["retransmitted"] * frame_bytes),
            lambda more, counters: plain.retransmitted_bytes(graph, flows, more),
        )

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        slowest_bps = min(rate for _, rate in plain.rates(resolved.graph))
        sizes = plain.bytes_by_direction(resolved.graph, self._flows(resolved, job))
        link_s = plain.slowest_crossing_s(resolved.graph, sizes)
        payload_s = job.job.elements * 32 / slowest_bps
        return Bounds(payload_s, link_s, link_s, 1.0)

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        return RightResults(integer_sum)

"""The system of parameter servers: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

import numpy as np

from agglab.hosts import wire as base_wire
from agglab.hosts.part import SERVER, WORKER
from agglab.hosts.shared import shape_digest
from agglab.systems.ps import wire
from agglab.systems.ps.agents import (
    MAX_WINDOW,
    OWN_COUNTERS,
    chunks_of_round,
    chunks_of_server,
)
from agglab.systems.ps.keys import PsKeys
from agglab.testbed.schema.jobs import Finding, Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.target_names import TARGETS
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    Abilities,
    ActiveJob,
    Agent,
    ByteRange,
    Evidence,
    MissingChunks,
    ResolvedScenario,
    Waiting,
)
from agglab.testbed.systems.between_hosts import KEYS, BetweenHosts
from agglab.testbed.systems.common import meanings
from agglab.testbed.systems.forwarding import Flow
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan.paths import unreachable
from agglab.testbed.systems.servers import attacks_from_servers, diagnose
from agglab.testbed.systems.withheld import blame_switches
from agglab.topologies import Topology

SERVER_PORT_BASE = base_wire.WORKER_PORT_BASE - 8192
"""A server's UDP port is this number plus the number of its job."""


class ParameterServer(BetweenHosts):
    name = "ps"
    summary = (
        "servers sum what workers push; they run on hosts of their own, or one beside each worker"
    )
    abilities = Abilities(targets=TARGETS, has_servers=True, keys=KEYS)
    choose_when = (
        "Take it where switches only forward and there are hosts to spare: with as many "
        "servers as workers, a link carries a tensor once in each direction; with fewer, the "
        "servers' links are the bottleneck."
    )
    variants: Mapping[str, Sequence[str]] = {
        "four servers": ("ps.servers=p*",),
        "beside the workers": (),
    }
    options = PsKeys
    host_counters = meanings(OWN_COUNTERS)
    header_bytes = wire.HEADER_BYTES
    messages = Messages(wire.HEADER, wire.Kind, ["RESULT"], ["round", "chunk"])
    window_max = MAX_WINDOW

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        return _keys(scenario).servers

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Returns the hosts that the scenario reserves for servers or, if there are none, the hosts
        of all workers. A job that has lost a worker keeps its servers."""
        return self.reserved_hosts(scenario, graph) or workers

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        yield from attacks_from_servers(scenario, self.name, _keys(scenario).servers, trust)

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        return unreachable(graph, [host.name for host in graph.hosts])

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // self.lanes(scenario))

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        graph, declared = resolved.graph, job.job
        hosts = declared.servers
        worker_port = base_wire.WORKER_PORT_BASE + declared.number
        server_port = SERVER_PORT_BASE + declared.number
        workers = [[graph.host(name).ip, worker_port] for name in job.hosts]
        servers = [[graph.host(name).ip, server_port] for name in hosts]
        shared = {
            "lanes": resolved.lanes,
            "window": declared.window,
            "session": FIRST_SESSION,
            "servers": len(hosts),
        }
        found = []
        for rank in job.members:
            host = declared.hosts[rank]
            configuration = self.configuration(resolved, declared, host, worker_port, rank)
            configuration["settings"] = {**shared, "peers": servers}
            found.append(Agent(WORKER, host, rank, configuration))
        for index, host in enumerate(hosts):
            rank = len(declared.hosts) + index
            configuration = self.configuration(resolved, declared, host, server_port, rank, SERVER)
            configuration["settings"] = {**shared, "index": index, "peers": workers}
            found.append(Agent(SERVER, host, rank, configuration, {"peers": workers}))
        return found

    def flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns the flows. A server's part of each tensor goes to the server and comes back."""
        hosts, elements = job.job.servers, job.job.elements
        frame, flows = wire.frame_bytes(resolved.lanes), []
        for index, server in enumerate(hosts):
            size = frame * chunks_of_server(elements, len(hosts), resolved.lanes, index)
            for worker in job.hosts:
                flows += [Flow(worker, server, size), Flow(server, worker, size)]
        return flows

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the bytes that workers and servers on a host sent again: pushes of a worker, and
        results that a worker requested again from a server."""
        frames = counts["retransmitted"] + counts["answered_again"]
        size = frames * wire.frame_bytes(resolved.lanes)
        return ByteRange(size, size)

    def forged(
        self, resolved: ResolvedScenario, job: ActiveJob, chance: Random, agent: Agent
    ) -> bytes:
        """Returns a result for a worker or a push for a server, in the current round."""
        own, declared = agent.configuration["settings"], job.job
        is_float, servers = declared.dtype == "float32", own["servers"]
        chunks = chunks_of_round(declared.elements, servers, own["lanes"])
        push = wire.Kind.PUSH_FLOAT32 if is_float else wire.Kind.PUSH_INT32
        header = np.zeros(1, wire.HEADER)
        header["version"] = wire.VERSION
        header["kind"] = push if agent.role == SERVER else wire.Kind.RESULT
        header["job"], header["session"] = job.job.number, own["session"]
        header["digest"] = shape_digest(
            declared.elements,
            len(job.job.hosts),
            own["lanes"],
            -(-own["window"] // servers) * servers,
            is_float,
            servers,
        )
        header["round"] = chance.randrange(declared.rounds)
        header["chunk"] = chance.randrange(own.get("index", 0), chunks, servers)
        header["chunks"] = chunks
        return header.tobytes() + chance.randbytes(base_wire.VALUE_BYTES * own["lanes"])

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        workers = resolved.scenario.topology.workers
        return 2 * resolved.window * self.frame_bytes(resolved.lanes) * max(1, workers)

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        """Returns what each host owes. A worker waits for [chunk, server], and a server for [chunk,
        rank, ...] (see servers.py)."""
        return blame_switches(source, diagnose(job, waiting, unserved))


def _keys(scenario: Scenario) -> PsKeys:
    own = dict(scenario.options).get(ParameterServer.name)
    return own if isinstance(own, PsKeys) else PsKeys()


SYSTEM = ParameterServer

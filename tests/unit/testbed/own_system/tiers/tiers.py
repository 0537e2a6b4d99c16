"""A system with two P4 programs, a controller that moves a hot set between rounds, and on one host
two servers and a scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import tiers_endpoints as wire

from agglab.hosts.part import SCHEDULER, SERVER, WORKER
from agglab.testbed.systems import base
from agglab.testbed.systems.base import Abilities, ActiveJob, Agent, Counter, Source
from agglab.testbed.systems.between_hosts import BetweenHosts
from agglab.testbed.systems.forwarding import Flow, bytes_by_direction, path
from agglab.testbed.systems.plan import TableEntry
from agglab.testbed.systems.plan.forwarding import wiring_of

WORKER_PORT, SERVER_PORT, SCHEDULER_PORT, SERVERS = 50_000, 51_000, 52_000, 2
FRAME = wire.LOWER_HEADER_BYTES + wire.HEADER.size + 4 * wire.LANES
BARE = wire.LOWER_HEADER_BYTES + wire.HEADER.size
HOT, EVERY_NS = 24, 2_000_000


class Tiers(BetweenHosts):
    name = "tiers"
    summary = "racks sum what is hot, servers the rest; a scheduler says who sends when"
    abilities = Abilities(
        dtypes=("int32",),
        has_servers=True,
        has_controller=True,
        keys=frozenset({"switch.lanes", "workload.window"}),
    )
    counters = {**BetweenHosts.counters, "summed": Counter("summed", "pushes summed")}  # noqa: RUF012
    endpoints = str(Path(__file__).with_name("tiers_endpoints.py"))
    header_bytes, window_max = wire.HEADER.size, 65535

    def sources(self, scenario) -> Mapping[str, Source]:
        leaf = str(Path(__file__).with_name("leaf.p4"))
        return {"leaf": Source(leaf), "spine": base.SOURCE}

    def role(self, graph, switch: str) -> str:
        homes = {home for home, _ in wiring_of(graph).attached.values()}
        return "leaf" if switch in homes else "spine"

    def reserved_hosts(self, scenario, graph) -> Sequence[str]:
        return [graph.hosts[-1].name]

    def chunks(self, scenario, job) -> int:
        return -(-job.elements // wire.LANES)

    def agents(self, resolved, job: ActiveJob) -> Sequence[Agent]:
        graph, tenant, home = resolved.graph, job.job, resolved.graph.hosts[-1]
        workers = [[graph.host(name).ip, WORKER_PORT] for name in job.hosts]
        servers = [[home.ip, SERVER_PORT + number] for number in range(SERVERS)]
        chief = [home.ip, SCHEDULER_PORT]
        places = [(WORKER, tenant.hosts[r], r, WORKER_PORT, [*servers, chief]) for r in job.members]
        beside = [(SERVER, port) for _, port in servers] + [(SCHEDULER, SCHEDULER_PORT)]
        for rank, (role, port) in enumerate(beside, len(tenant.hosts)):
            places.append((role, home.name, rank, port, workers))
        found = []
        for role, host, rank, port, peers in places:
            shared = self.configuration(resolved, tenant, host, port, rank, role)
            settings = {"session": base.FIRST_SESSION, "peers": peers}
            found.append(Agent(role, host, rank, {**shared, "settings": settings}))
        return found

    def racks(self, graph, job: ActiveJob) -> dict[str, list[str]]:
        """Switch -> the job's workers there."""
        found: dict[str, list[str]] = {}
        for host in job.hosts:
            found.setdefault(wiring_of(graph).attached[host][0], []).append(host)
        return found

    def flows(self, resolved, job: ActiveJob) -> Sequence[Flow]:
        """Of a rack's pushes of what is hot those of its first worker go on."""
        home, chunks = resolved.graph.hosts[-1].name, self.chunks(resolved.scenario, job.job)
        firsts = {hosts[0] for hosts in self.racks(resolved.graph, job).values()}
        batches = -(-chunks // wire.BATCH)
        found = []
        for host in job.hosts:
            pushed = chunks if host in firsts else chunks - HOT
            found.append(Flow(host, home, pushed * FRAME + batches * BARE))
            found.append(Flow(home, host, chunks * FRAME + batches * BARE))
        return found

    def round_bytes(self, resolved, job: ActiveJob, number: int) -> Mapping[str, int]:
        graph, home = resolved.graph, resolved.graph.hosts[-1].name
        sizes = bytes_by_direction(graph, self.flows(resolved, job))
        for hosts in self.racks(graph, job).values():
            for host in hosts[1:]:
                sizes[path(graph, host, home)[0]] += HOT * FRAME
        return sizes

    def controller(self, resolved, job: ActiveJob) -> HotSet:
        return HotSet(self, resolved)


class HotSet:
    """Every round has the HOT chunks after the last round's; between, it looks at the counters."""

    patience_ns = 1_000_000_000

    def __init__(self, system: Tiers, resolved) -> None:
        self._system, self._resolved = system, resolved
        self.deadline_ns, self.seen = EVERY_NS, {}

    def begin_round(self, now_ns: int, number: int, job: ActiveJob, switches):
        graph, chunks = self._resolved.graph, self._system.chunks(self._resolved.scenario, job.job)
        hot = [(number * HOT + n) % chunks for n in range(HOT)]
        return {
            switch: [
                TableEntry(
                    "hot",
                    {"ingress_port": wiring_of(graph).attached[host][1], "chunk": chunk},
                    "add",
                    {"cell": cell, "workers": len(hosts)},
                )
                for host in hosts
                for cell, chunk in enumerate(hot)
            ]
            for switch, hosts in self._system.racks(graph, job).items()
        }

    def step(self, now_ns: int, switches) -> None:
        self.seen = {s: switches.counters(s, "summed") for s in self._resolved.programs}
        self.deadline_ns = now_ns + EVERY_NS

"""NetRPC's answers to what the testbed asks of a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agglab.hosts.part import WORKER
from agglab.hosts.systems.netrpc import service as declared
from agglab.hosts.systems.netrpc import wire
from agglab.hosts.wire import AGGREGATOR, WORKER_PORT_BASE
from agglab.testbed.plan import Entries, Tree
from agglab.testbed.scenario import ResolvedScenario, Scenario
from agglab.testbed.systems.base import (
    SHARED_KEYS,
    Abilities,
    Absent,
    ActiveJob,
    Again,
    Agent,
    Cells,
    Choices,
    Registers,
    Source,
    Waiting,
    everywhere,
)
from agglab.testbed.systems.common import agent_configuration
from agglab.testbed.systems.netrpc import attack, counters, load, plan
from agglab.testbed.systems.netrpc.keys import NetRpcKeys
from agglab.testbed.systems.netrpc.sessions import CallSessions
from agglab.testbed.systems.summing.attack import Aim
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.trees import tree_of
from agglab.topologies import Topology

ALL_REDUCE = "allreduce"


class NetRpc(Summing):
    name = "netrpc"
    summary = "switches execute calls of a service: its methods are rows of a table"
    abilities = Abilities(keys=frozenset(SHARED_KEYS) - {"workload.worker"})
    options = NetRpcKeys
    endpoints = "agglab.hosts.systems.netrpc"
    counters = counters.COUNTERS
    sizes = Sizes(wire.HEADER_BYTES)

    # A scenario.

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        if len(job.job.hosts) > plan.WORKERS_MAX:
            return f"{len(job.job.hosts)} workers: a job has at most {plan.WORKERS_MAX}"
        return super().refused(graph, job)

    def resolve(self, scenario: Scenario, slowest_bps: int) -> Choices:
        found = super().resolve(scenario, slowest_bps)
        jobs = [replace(job, window=min(job.window, wire.POSITIONS)) for job in found.jobs]
        return Choices(jobs, found.lanes, min(found.window, wire.POSITIONS))

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        parameters = {
            "LANES": self.lanes(scenario),
            "SLOTS": scenario.switch.slots,
            "CELLS": _keys(scenario).cells,
        }
        return everywhere(Source(self.name, parameters))

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        services = [declared.load(job.share.service) for job in jobs]
        cells = max((job.share.cells for job in jobs), default=0)
        return plan.tables(graph, jobs, services, cells)

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        number = job.job.number
        settings = {
            "service": _service(resolved, job),
            "lanes": resolved.lanes,
            "window": min(job.job.window, wire.POSITIONS),
            "first_tag": 1,
            "peers": [list(AGGREGATOR)],
        }
        found = []
        for rank in job.members:
            host, port = job.job.hosts[rank], WORKER_PORT_BASE + number
            shared = agent_configuration(resolved, job.job, self.endpoints, host, port, rank)
            found.append(Agent(WORKER, host, rank, {**shared, "settings": settings}))
        return found

    def sessions(self, resolved: ResolvedScenario) -> CallSessions:  # type: ignore[override]
        services = {job.number: _service_of(resolved.scenario) for job in resolved.jobs}
        return CallSessions(resolved, services, _keys(resolved.scenario).cells)

    # What should happen.

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        tree, work = _tree(resolved, job), job.job
        is_float = work.dtype == "float32"
        return load.all_reduce(resolved.graph, tree, job, work.elements, is_float, resolved.lanes)

    def beyond(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> Again:
        """What is sent again has values, or headers alone."""
        packets = counts["retransmitted"]
        return Again(packets * self.sizes.bare, packets * self.sizes.full(resolved.lanes))

    def sent_again(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, Again]:
        return load.sent_again(resolved.graph, _tree(resolved, job), job, more, counters)

    # What switches did.

    def arrivals(self) -> tuple[str, ...]:
        return counters.ARRIVALS

    def owed(
        self, resolved: ResolvedScenario, job: ActiveJob, switch: str, cells: Mapping[str, Cells]
    ) -> int:
        return counters.owed(cells, job.index, len(job.members))

    # When something is wrong.

    def diagnose(
        self,
        source: Registers,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        return {}

    def forge(self, aim: Aim, result: int, overhead: int) -> bytes:
        return attack.forge(aim, result, overhead)


def _tree(resolved: ResolvedScenario, job: ActiveJob) -> Tree:
    return tree_of(resolved.graph, job)


def _keys(scenario: Scenario) -> NetRpcKeys:
    own = dict(scenario.options).get(NetRpc.name)
    return own if isinstance(own, NetRpcKeys) else NetRpcKeys()


def _service_of(scenario: Scenario) -> str:
    return _keys(scenario).service or ALL_REDUCE


def _service(resolved: ResolvedScenario, job: ActiveJob) -> str:
    return _service_of(resolved.scenario)

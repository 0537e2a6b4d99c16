"""The system NetRPC: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agglab.hosts.part import SERVER, WORKER
from agglab.hosts.wire import AGGREGATOR, WORKER_PORT_BASE
from agglab.hosts.workloads import Calls
from agglab.hosts.workloads.calls import WORDCOUNT
from agglab.systems.netrpc import attack, counters, diagnosis, keys, load, plan, wire
from agglab.systems.netrpc.keys import NetRpcKeys
from agglab.systems.netrpc.server import OWN_COUNTERS
from agglab.systems.netrpc.service import load as load_service
from agglab.systems.netrpc.sessions import CallSessions, window
from agglab.testbed.schema.jobs import Finding, Job, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import (
    ALL_REDUCES,
    SHARED_KEYS,
    Abilities,
    ActiveJob,
    Agent,
    Bounds,
    ByteRange,
    Cells,
    Choices,
    Evidence,
    MissingChunks,
    ResolvedScenario,
    SlotMeter,
    Source,
    SwitchWork,
    Traffic,
    Unpredictable,
    Waiting,
    everywhere,
)
from agglab.testbed.systems.common import agent_configuration, meanings
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.slot_meter import Part, begun_by_some, slot_meter
from agglab.testbed.systems.summing.attack import AttackContext
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.plan import MAX_JOBS
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.trees import tree_of
from agglab.topologies import Topology

SECTION_CALLS = 4
SERVER_PORTS_BELOW = 8192
"""The difference between the UDP port of a job's workers and that of its servers, which is
lower."""


class NetRpc(Summing):
    name = "netrpc"
    summary = "switches execute the calls of a service, whose methods are rows of a table"
    choose_when = (
        "Take it where the switch should do more than add tensors. An application is a "
        "declaration and a few lines of code, for maps, counters and locks as well. One switch "
        "executes all calls, so where there are several switches, each worker's packets travel "
        "all the way to that switch."
    )
    abilities = Abilities(
        workloads=(*ALL_REDUCES, "calls"),
        has_servers=True,
        keys=frozenset(SHARED_KEYS) - {"workload.worker"},
    )
    options = NetRpcKeys
    counters = counters.COUNTERS
    host_counters = meanings(OWN_COUNTERS)
    messages = Messages(
        wire.HEADER, wire.Kind, ["RESULT"], ["slot", "tag"], {"RESULT": wire.RESULT}
    )
    sizes = Sizes(wire.HEADER_BYTES)

    # A scenario.

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        window = scenario.workload.window
        if trust("workload.window") and window is not None and window > wire.POSITIONS:
            what = f"a window of {window} calls is more than a caller has positions"
            yield "workload.window", what, f"at most {wire.POSITIONS}"
        if trust("netrpc.service", "jobs", "workload"):
            yield from keys.services(scenario)

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        if len(job.job.hosts) > plan.WORKERS_MAX:
            return f"{len(job.job.hosts)} workers: a job has at most {plan.WORKERS_MAX}"
        return super().refused(graph, job)

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        found = super().resolve(scenario, slowest_bps, delays_s)
        jobs = [replace(job, window=min(job.window, wire.POSITIONS)) for job in found.jobs]
        return Choices(jobs, found.lanes, min(found.window, wire.POSITIONS))

    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns the number of chunks. For critical sections, this is the least number of answers
        in a round."""
        if isinstance(job.work, Calls) and job.work.application != WORDCOUNT:
            return SECTION_CALLS * job.elements
        return super().chunks(scenario, job)

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        source = self.source(self.name, scenario, CELLS=keys.own(scenario).cells)
        flows = MAX_JOBS * plan.WORKERS_MAX
        sizes = {"sequences": flows * wire.POSITIONS, "arrivals": 2 * scenario.switch.slots}
        return everywhere(replace(source, registers=sizes))

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        services = [load_service(job.share.service) for job in jobs]
        cells = max((job.share.cells for job in jobs), default=0)
        return plan.tables(graph, jobs, services, cells)

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Returns the first worker's host if a job's service may have keys that need entries."""
        maps = any(keys.maps(scenario, each) for each in stated(scenario))
        return workers[:1] if maps else ()

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        graph, declared, service = resolved.graph, job.job, job.share.service
        ports = {WORKER: WORKER_PORT_BASE + declared.number}
        ports[SERVER] = ports[WORKER] - SERVER_PORTS_BELOW

        def peer(host: str, role: str) -> list[Any]:
            return [graph.host(host).ip, ports[role]]

        def agent(role: str, host: str, rank: int, own: Mapping[str, Any]) -> Agent:
            shared = agent_configuration(
                resolved, declared, self.endpoints, host, ports[role], rank, role
            )
            session = {"peers": own["peers"]} if role == SERVER else {}
            return Agent(role, host, rank, {**shared, "settings": {**settings, **own}}, session)

        settings = {"service": service, "lanes": resolved.lanes, "first_tag": 1}
        servers = declared.servers if load_service(service).maps() else ()
        to = {
            "window": window(declared.window, service),
            "peers": [list(AGGREGATOR), *(peer(host, SERVER) for host in servers)],
        }
        found = [agent(WORKER, declared.hosts[rank], rank, to) for rank in job.members]
        of = {"cells": job.share.cells // MAX_JOBS, "peers": [peer(h, WORKER) for h in job.hosts]}
        first = len(declared.hosts)
        return found + [agent(SERVER, host, first + i, of) for i, host in enumerate(servers)]

    def sessions(self, resolved: ResolvedScenario) -> CallSessions:  # type: ignore[override]
        scenario = resolved.scenario
        names = (keys.service(scenario, each) for each in stated(scenario))
        services = {job.number: name for job, name in zip(resolved.jobs, names, strict=True)}
        return CallSessions(resolved, services, keys.own(scenario).cells)

    # What should happen.

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        at, work = _place(resolved, job), job.job.work
        if not isinstance(work, Calls):
            return load.all_reduce(at, work.elements, work.dtype == "float32")
        if work.application == WORDCOUNT:
            return load.word_count(at, resolved.seed, number)
        return Load({}, 0, 0)  # how often a lock is asked for is a matter of chance

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        """Returns the bits of a call that carries a chunk or keys, whichever is longer."""
        maps = any(keys.maps(resolved.scenario, each) for each in stated(resolved.scenario))
        least = 8 * wire.frame_bytes(wire.Kind.KEYS, resolved.lanes) if maps else 0
        return max(super().chunk_bits(resolved), least)

    def rounds(self, job: ActiveJob) -> Iterable[int]:
        """Returns the numbers of the rounds whose loads differ. In a job of calls, the keys are
        different in each round."""
        return range(job.job.rounds) if isinstance(job.job.work, Calls) else (0,)

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        """Returns the bounds of the round that needs the least time."""
        work, at = job.job.work, _place(resolved, job)
        if not isinstance(work, Calls) or work.application == WORDCOUNT:
            return super().bounds(resolved, job)
        least_s = min(load.lock_s(at, resolved.seed, number) for number in self.rounds(job))
        return Bounds(least_s, least_s, least_s, 1.0)

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        for each in resolved.jobs:
            if isinstance(each.work, Calls) and (why := _unpredictable(resolved, each)):
                raise Unpredictable(why)
        return super().traffic(resolved, job)

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the least and the most bytes of frames that were sent again. Such a frame has
        only headers, or also an argument of any kind. An answer of a server has keys."""
        sizes = [wire.frame_bytes(kind, resolved.lanes) for kind in wire.Kind]
        answered = counts["answered_again"] * wire.frame_bytes(wire.Kind.KEYS, resolved.lanes)
        packets = counts["retransmitted"]
        return ByteRange(packets * min(sizes) + answered, packets * max(sizes) + answered)

    def retransmitted_bytes(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, ByteRange]:
        return load.retransmitted_bytes(_place(resolved, job), more, counters)

    def round_trips(self, job: Job) -> int:
        return load.round_trips(job)

    # What switches did.

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        def expected_frames(job: ActiveJob, switch: str, cells: Mapping[str, Cells]) -> int:
            return counters.expected_frames(cells, job.index, len(job.members))

        return SwitchWork(counters.ARRIVALS, (), expected_frames)

    # When something is wrong.

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        return slot_meter(_metered(resolved))

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        return diagnosis.diagnose(source, tree_of(graph, job).root, job, waiting)

    def forge(self, context: AttackContext, result: int, overhead: int) -> bytes:
        return attack.forge(context, result, overhead)


def _metered(resolved: ResolvedScenario) -> dict[str, list[Part]]:
    """Returns, by switch, the cells that tell how many slots are in use."""
    parts: dict[str, list[Part]] = {}
    for job in map(resolved.whole, resolved.jobs):
        first, used = job.job.first_slot, min(job.job.slots, wire.POSITIONS)
        cells = list(range(2 * first, 2 * (first + used)))
        root = tree_of(resolved.graph, job).root
        parts.setdefault(root, []).append(begun_by_some("arrivals", cells, len(job.members)))
    return parts


def _place(resolved: ResolvedScenario, job: ActiveJob) -> load.Place:
    return load.Place(resolved.graph, tree_of(resolved.graph, job), job, resolved.lanes)


def _unpredictable(resolved: ResolvedScenario, job: Job) -> str:
    """Returns why the traffic of a job of calls cannot be predicted; empty if it can be."""
    work = job.work
    if not isinstance(work, Calls) or work.application != WORDCOUNT:
        return "it depends on chance how often a worker asks for a lock that another worker holds"
    active, cells = resolved.whole(job), keys.own(resolved.scenario).cells // MAX_JOBS
    found = [
        load.keys_of(resolved.seed, active, rank, number)
        for number in range(job.rounds)
        for rank in active.members
    ]
    if load.fullest_bank(np.unique(np.concatenate(found))) > cells:
        return (
            "if there are more keys than entries, the order of their arrival decides which "
            "keys have an entry"
        )
    return ""


SYSTEM = NetRpc

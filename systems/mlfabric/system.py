"""The system MLfabric: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from agglab.hosts import wire as base_wire
from agglab.hosts.part import SCHEDULER, SERVER, WORKER
from agglab.hosts.workloads import AsyncSgd
from agglab.hosts.workloads.async_sgd import SCALE
from agglab.systems.mlfabric import attack, diagnosis, load, plan, scheduler, server, wire, worker
from agglab.systems.mlfabric.keys import MlfabricKeys
from agglab.testbed.schema.jobs import Finding, Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    Abilities,
    ActiveJob,
    Agent,
    ByteRange,
    Combine,
    Counter,
    Counts,
    Evidence,
    Histories,
    MissingChunks,
    ResolvedScenario,
    RightResults,
    Source,
    SwitchWork,
    Traffic,
    TrainingBounds,
    Waiting,
    everywhere,
)
from agglab.testbed.systems.between_hosts import BetweenHosts
from agglab.testbed.systems.common import meanings
from agglab.testbed.systems.forwarding import Flow
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.plan.paths import unreachable
from agglab.testbed.systems.servers import attacks_from_servers
from agglab.testbed.systems.withheld import Merging, blame_switches
from agglab.topologies import Topology

MERGING = Merging(
    kept=("push_new", "push_duplicate", "push_stale", "push_refused"), released=("chunk_complete",)
)


class Mlfabric(BetweenHosts):
    name = "mlfabric"
    summary = (
        "asynchronous training: a scheduler orders the updates, and switches sum those that "
        "are sent together"
    )
    choose_when = (
        "Take it where workers should not wait for each other and links are busy with their "
        "updates: updates arrive younger, and old ones are not sent at all."
    )
    abilities = Abilities(
        workloads=(AsyncSgd.kind,),
        has_servers=True,
        keys=frozenset({"switch.lanes", "switch.slots"}),
    )
    options = MlfabricKeys
    counters = {  # noqa: RUF012
        **BetweenHosts.counters,
        "new": Counter("push_new", "workers' values that were summed, or that opened a chunk"),
        "duplicate": Counter(
            "push_duplicate", "values that had already been summed, which were dropped"
        ),
        "stale": Counter("push_stale", "values of a group whose cell a later group has taken"),
        "refused": Counter(
            "push_refused",
            "values that no worker of the group sends in this form",
            tally="malformed",
        ),
        "complete": Counter("chunk_complete", "sums that were sent to a server"),
    }
    host_counters = meanings({**worker.COUNTERS, **server.COUNTERS, **scheduler.COUNTERS})
    header_bytes = wire.HEADER_BYTES + wire.PART.itemsize
    messages = Messages(wire.HEADER, wire.Kind, ["ACK"], ["number"])
    window_max = 0

    # A scenario.

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        return _keys(scenario).servers

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Returns the server's host, and the replica's if there is one."""
        hosts = self.reserved_hosts(scenario, graph) or workers
        if not hosts:
            return ()
        return [hosts[0], hosts[1 % len(hosts)]] if _keys(scenario).replica else [hosts[0]]

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        yield from attacks_from_servers(scenario, self.name, _keys(scenario).servers, trust)
        if trust("workload.features", "workload.classes", "switch.lanes", "links.mtu"):
            yield from self._check_model(scenario)

    def _check_model(self, scenario: Scenario) -> Iterator[Finding]:
        """Yields a problem if the model has more chunks than a request has bits."""
        workload = scenario.workload
        most = wire.CHUNKS_MAX * self.lanes(scenario)
        if workload.kind == AsyncSgd.kind and workload.features * workload.classes > most:
            what = f"a model of {workload.features} x {workload.classes} weights is too large"
            yield "workload.features", what, f"at most {most} weights: {wire.CHUNKS_MAX} packets"

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        if len(job.hosts) > wire.WORKERS_MAX:
            return f"{len(job.hosts)} workers: a group names at most {wire.WORKERS_MAX}"
        return unreachable(graph, [host.name for host in graph.hosts])

    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns the number of updates in a round, which a worker completes one by one."""
        assert isinstance(job.work, AsyncSgd)
        return job.work.updates

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        parameters = {"LANES": self.lanes(scenario), "SLOTS": scenario.switch.slots}
        return everywhere(Source(self.name, parameters))

    def sessions(self, resolved: ResolvedScenario) -> plan.CellSessions:
        return plan.CellSessions(resolved)

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        return plan.tables(graph, jobs)

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        places = plan.places(job)
        workers = [each for each in places if each[0] == WORKER]
        servers = [each for each in places if each[0] == SERVER]
        chief = [each for each in places if each[0] == SCHEDULER]
        found = []
        for place in places:
            role, host, port, rank = place
            others = {
                WORKER: [*servers, *chief],
                SERVER: [*workers, *chief, *(each for each in servers if each != place)],
                SCHEDULER: [*workers, *servers],
            }[role]
            peers = [[resolved.graph.host(name).ip, number] for _, name, number, _ in others]
            configuration = self.configuration(resolved, job.job, host, port, rank, role)
            index = rank - len(job.job.hosts) if role == SERVER else 0
            own = {"peers": peers, "past_switch": self._past_switch(job, servers)}
            settings = {**self._settings(resolved, job, index), **own}
            spare = role == SERVER and index == 0 and len(servers) == 2
            configuration["settings"] = settings
            found.append(Agent(role, host, rank, configuration, own, role == WORKER, spare))
        return found

    def _past_switch(self, job: ActiveJob, servers: Sequence[plan.Place]) -> Any:
        """Returns for each server the workers that are on its host, as a bit for each position
        among the members. Their packets do not cross the switch."""
        return [
            sum(1 << place for place, host in enumerate(job.hosts) if host == server_host)
            for _, server_host, _, _ in servers
        ]

    def _settings(self, resolved: ResolvedScenario, job: ActiveJob, index: int) -> dict[str, Any]:
        keys = _keys(resolved.scenario)
        first_cell, cells = plan.cells_of(resolved.slots, job.index, len(resolved.jobs))
        return {
            "lanes": resolved.lanes,
            "session": FIRST_SESSION,
            "servers": len(job.job.servers),
            "index": index,
            "order": keys.order,
            "bound": keys.bound,
            "group": keys.group,
            "ahead": keys.ahead,
            "divergence": round(keys.divergence * SCALE) if keys.replica else 0,
            "silence_s": keys.silence_s,
            "first_cell": first_cell,
            "cells": cells,
        }

    # What should happen.

    def flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        return load.flows(self._place(resolved, job))

    def least_flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        return ()

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        """Returns the traffic. The log of updates tells what agents decided to send."""
        decided_bytes = partial(load.decided_bytes, self._place(resolved, job))
        return replace(super().traffic(resolved, job), decided_bytes=decided_bytes)

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Counts
    ) -> ByteRange:
        return load.extra_bytes(self._place(resolved, job), counts)

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        def sums_owed(job: ActiveJob, histories: Histories, counts: Counts) -> int:
            _, cells = plan.cells_of(resolved.slots, job.index, len(resolved.jobs))
            return load.sums_owed(self._place(resolved, job), cells, histories, counts)

        return SwitchWork(sums_owed=sums_owed)

    def _place(self, resolved: ResolvedScenario, job: ActiveJob) -> load.Place:
        _, cells = plan.cells_of(resolved.slots, job.index, len(resolved.jobs))
        return load.Place(resolved.graph, job, resolved.lanes, cells > 0)

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        """Returns what is promised about a training. There is no all-reduce."""
        keys = _keys(resolved.scenario)
        divergence = round(keys.divergence * SCALE) if keys.replica else None
        bounds = TrainingBounds(keys.bound or None, divergence)
        return replace(super().right_results(resolved, job, combine), training=bounds)

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """Returns the memory for all copies of the models and for the cells of switches."""
        models = sum((len(job.hosts) + 2) * job.elements for job in resolved.jobs)
        return base_wire.VALUE_BYTES * (models + resolved.slots * resolved.lanes)

    # When something is wrong.

    def forged(
        self, resolved: ResolvedScenario, job: ActiveJob, chance: Random, agent: Agent
    ) -> bytes:
        return attack.forged(resolved.lanes, job, chance, agent)

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        return blame_switches(source, diagnosis.diagnose(job, waiting, unserved), MERGING)


def _keys(scenario: Scenario) -> MlfabricKeys:
    own = dict(scenario.options).get(Mlfabric.name)
    return own if isinstance(own, MlfabricKeys) else MlfabricKeys()


SYSTEM = Mlfabric

"""The class Pooling, which systems inherit whose jobs share all slots of a switch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from agglab.hosts import wire as base_wire
from agglab.hosts.driver import default_window
from agglab.hosts.part import SERVER, WORKER
from agglab.systems.pooling import counters as counted
from agglab.systems.pooling import load, wire
from agglab.systems.pooling.attack import forge
from agglab.systems.pooling.diagnosis import diagnose
from agglab.systems.pooling.job import MAX_WINDOW, PoolingJob
from agglab.systems.pooling.keys import (
    PoolingKeys,
    divided_too_much,
    part_of_pool,
)
from agglab.systems.pooling.plan import SERVER_PORT_BASE, tables
from agglab.systems.pooling.server import SERVER_COUNTERS
from agglab.systems.pooling.trees import server_of, tree_of
from agglab.systems.pooling.truth import truth_of
from agglab.systems.pooling.worker import OWN_COUNTERS, chunks_of_round
from agglab.testbed.schema.jobs import Finding, Job, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems import common
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    NOTHING_SHARED,
    Abilities,
    ActiveJob,
    Agent,
    Bounds,
    ByteRange,
    Cells,
    Choices,
    Combine,
    Counts,
    Evidence,
    JobChoices,
    MissingChunks,
    ResolvedScenario,
    RightResults,
    SlotMeter,
    Source,
    SwitchWork,
    System,
    Traffic,
    Unpredictable,
    Waiting,
    everywhere,
)
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.slot_meter import Part, slot_meter
from agglab.testbed.systems.summing import attack
from agglab.testbed.systems.summing.attack import AttackContext
from agglab.topologies import Topology

KEYS = frozenset({"switch.lanes", "switch.slots", "workload.window", "workload.first_timeout"})
QUEUE_OF_BMV2 = 48
"""How many packets in flight fit into the queue of a BMv2 port (see
testbed/systems/summing/keys.py)."""


class Pooling(System):
    """A system whose jobs share all slots. Its program has the system's name, and the parameters
    `LANES`, `SLOTS` and `MARK_US`."""

    abilities = Abilities(has_servers=True, keys=KEYS)
    options: type[PoolingKeys] = PoolingKeys
    preempts = False
    """Whether the system's switches take slots away from chunks with a lower priority."""
    counters = counted.COUNTERS
    host_counters = common.meanings({**OWN_COUNTERS, **SERVER_COUNTERS})
    attack_kinds = attack.KINDS
    messages = Messages(
        wire.HEADER, wire.Kind, ["RESULT"], ["slot", "tag"], {"RESULT": base_wire.RESULT}
    )

    # A scenario.

    def keys_of(self, scenario: Scenario) -> PoolingKeys:
        """Returns the system's own section of a scenario, or its defaults."""
        own = dict(scenario.options).get(self.name)
        return own if isinstance(own, PoolingKeys) else self.options()

    def priority(self, own: PoolingKeys, job: ActiveJob) -> int:
        """Returns the priority of a job's packets."""
        return 0

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        return self.keys_of(scenario).servers

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        if self.server_patterns(scenario):
            dedicated = self.reserved_hosts(scenario, graph)
        else:
            dedicated = [host.name for host in graph.hosts if host.for_servers]
        return dedicated or workers[:1]

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from common.check_lanes(scenario, trust, wire.HEADER_BYTES)
        yield from self._check_window(scenario, trust)
        own = self.keys_of(scenario)
        if trust("jobs", "switch.slots", self.name) and divided_too_much(
            own, scenario.switch.slots, scenario.jobs
        ):
            what = f"{len(scenario.jobs)} jobs cannot divide {scenario.switch.slots} slots"
            yield f"{self.name}.pool", what, "shared, or more slots"
        for index, fault in enumerate(scenario.faults):
            host = fault.host or ""
            serves = any(fnmatchcase(host, pattern) for pattern in own.servers)
            if fault.kind == "attack" and serves and trust(f"faults[{index}]", self.name):
                what = f"{host} has a server of these jobs, so it cannot attack from outside"
                yield f"faults[{index}].host", what, "a host without a server"

    def _check_window(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        window = scenario.workload.window
        if trust("workload.window") and window is not None and window > MAX_WINDOW:
            what = f"a window of {window} packets is more than {self.name} supports"
            yield "workload.window", what, f"at most {MAX_WINDOW}"

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        if len(job.hosts) > wire.MAX_WORKERS:
            return f"{len(job.hosts)} workers: a packet has bits for {wire.MAX_WORKERS}"
        try:
            tree_of(graph, job)
        except ValueError as error:
            return str(error)
        return ""

    def lanes(self, scenario: Scenario) -> int:
        """Returns the number of lanes that the scenario states, or the largest number that its MTU
        allows."""
        return common.lanes_of(scenario, wire.HEADER_BYTES)

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        """Returns the values of keys that the system decides. The window does not depend on the
        number of slots, because chunks that find no slot go to the server."""
        lanes = self.lanes(scenario)
        most = MAX_WINDOW
        if scenario.switch.target == "bmv2":
            most = max(1, QUEUE_OF_BMV2 // max(1, len(scenario.jobs)))
        usual = default_window(wire.frame_bytes(lanes), most, slowest_bps, delays_s)
        window = scenario.workload.window or usual
        slots = scenario.switch.slots
        jobs = [JobChoices(job.workload.window or window, 0, slots) for job in stated(scenario)]
        return Choices(jobs, lanes, window)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // self.lanes(scenario))

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        return wire.frame_bytes(resolved.lanes) * 8

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """Returns the memory of slots and servers. For each position, a server has two results and
        all workers' floats."""
        rows = resolved.slots
        for job in resolved.jobs:
            rows += job.window * (2 + (len(job.hosts) if job.dtype == "float32" else 0))
        return rows * resolved.lanes * base_wire.VALUE_BYTES

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        own = self.keys_of(scenario)
        parameters = {
            "LANES": self.lanes(scenario),
            "SLOTS": scenario.switch.slots,
            "MARK_US": max(1, round(own.mark_after_s * 1e6)),
        }
        registers = dict.fromkeys(("owners", "contributors"), scenario.switch.slots)
        return everywhere(Source(self.name, parameters, registers))

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        return tables(graph, jobs, self.preempts)

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        declared = job.job
        found = [
            self._agent(resolved, job, WORKER, declared.hosts[rank], rank) for rank in job.members
        ]
        return [*found, self._agent(resolved, job, SERVER, server_of(job), len(declared.hosts))]

    def _agent(
        self, resolved: ResolvedScenario, job: ActiveJob, role: str, host: str, rank: int
    ) -> Agent:
        base = base_wire.WORKER_PORT_BASE if role == WORKER else SERVER_PORT_BASE
        configuration = common.agent_configuration(
            resolved, job.job, self.endpoints, host, base + job.job.number, rank, role
        )
        return Agent(role, host, rank, {**configuration, "settings": self._settings(resolved, job)})

    def _settings(self, resolved: ResolvedScenario, job: ActiveJob) -> dict[str, Any]:
        own = self.keys_of(resolved.scenario)
        first, slots = part_of_pool(own, resolved.slots, job.index, len(resolved.jobs))
        return {
            "lanes": resolved.lanes,
            "window": job.job.window,
            "session": FIRST_SESSION,
            "slots": slots,
            "first_slot": first,
            "scale_log2": own.scale_log2,
            "priority": self.priority(own, job),
            "congestion_control": own.congestion_control,
            "peers": [[base_wire.AGGREGATOR_ADDRESS, base_wire.AGGREGATOR_PORT]],
        }

    # What should happen.

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        own, frame_bytes = self.keys_of(resolved.scenario), wire.frame_bytes(resolved.lanes)
        if why := load.unpredictable(resolved, own):
            raise Unpredictable(why)

        def extra_bytes(host: str, counts: Counts) -> ByteRange:
            """Contributions that a worker sent again, and results for which a server was asked
            again."""
            frames = counts["retransmitted"] + counts.get("answered_again", 0)
            return ByteRange(frames * frame_bytes, frames * frame_bytes)

        return Traffic(
            lambda number: load.sent(resolved, job, own, number, frame_bytes),
            extra_bytes,
            lambda more, counters: load.retransmitted_bytes(resolved.graph, job, more),
        )

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        """Returns the bounds. Chunks that do not fit the scale take additional time, which is left
        out because their number differs from round to round."""
        frame_bytes = wire.frame_bytes(resolved.lanes)
        chunks = chunks_of_round(job.job.elements, resolved.lanes)
        sizes = load.once(resolved.graph, job, chunks * frame_bytes)
        return load.bounds(resolved, job, sizes, frame_bytes)

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        dtype, lanes = job.job.dtype, resolved.lanes
        truth = truth_of(dtype, lanes, self.keys_of(resolved.scenario).scale_log2)
        return RightResults(truth, lanes, dtype == "float32")

    # What switches did.

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        def expected_frames(job: ActiveJob, switch: str, counters: Mapping[str, Cells]) -> int:
            branch = tree_of(resolved.graph, job).branches.get(switch)
            children = len(branch.children) if branch else 0
            return counted.expected_frames(counters, job.index, children) if children else 0

        return SwitchWork(counted.ARRIVALS, (), expected_frames, share=counted.share_of_switches)

    # When something is wrong.

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        """Returns a meter of the slots in use. A slot is in use until its sum has left for the
        server. If slots are held for the server's answer, it is in use until that has arrived."""
        cells = list(range(resolved.scenario.switch.slots))
        part = Part(
            ("owners", "contributors"), cells, lambda owner, members: owner != 0 and members != 0
        )
        jobs = map(resolved.whole, resolved.jobs)
        switches = {switch for job in jobs for switch in tree_of(resolved.graph, job).branches}
        return slot_meter({switch: [part] for switch in switches})

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        server = server_of(job)
        lacking = unserved.get(server, ())
        return diagnose(source, tree_of(graph, job), job, waiting, lacking, server)

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        return attack.frames(key, resolved, host, partial(self._forge, resolved))

    def _forge(
        self, resolved: ResolvedScenario, context: AttackContext, result: int, overhead: int
    ) -> bytes:
        settings = self._settings(resolved, resolved.whole(context.victim, NOTHING_SHARED))
        names = ("lanes", "window", "session", "slots", "first_slot", "scale_log2")
        known = {name: settings[name] for name in names}
        job = PoolingJob(context.victim.number, len(context.victim.hosts), **known)
        return forge(context, job, result, overhead)

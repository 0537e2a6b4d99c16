"""The system Libra: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from agglab.hosts import wire as base_wire
from agglab.hosts.driver import default_window
from agglab.hosts.part import SERVER, WORKER
from agglab.systems.libra import wire
from agglab.systems.libra.attack import KINDS, forged
from agglab.systems.libra.counters import OWN_COUNTERS
from agglab.systems.libra.job import MAX_WINDOW
from agglab.systems.libra.keys import LibraKeys, unused_keys
from agglab.systems.libra.load import Load, Setting, crossed, load, racks_of
from agglab.systems.libra.plan import (
    COUNTERS,
    JOBS_MAX,
    SERVER_PORT_BASE,
    SERVERS_MAX,
    rack_peers,
    slots_of,
    tables,
)
from agglab.testbed.schema.jobs import Finding, Job, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems import spoofing
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    NOTHING_SHARED,
    Abilities,
    ActiveJob,
    Agent,
    Array,
    Bounds,
    ByteRange,
    Choices,
    Combine,
    Counts,
    Evidence,
    Histories,
    JobChoices,
    MissingChunks,
    ResolvedScenario,
    RightResults,
    SlotMeter,
    Source,
    SwitchWork,
    Truth,
    TruthOf,
    Waiting,
    everywhere,
)
from agglab.testbed.systems.between_hosts import KEYS, BetweenHosts, lossy_crossing_s, trip_s
from agglab.testbed.systems.common import IP_AND_UDP_BYTES, meanings
from agglab.testbed.systems.forwarding import Flow, rates, slowest_crossing_s
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.plan.paths import unreachable
from agglab.testbed.systems.servers import attacks_from_servers, diagnose
from agglab.testbed.systems.slot_meter import Part, begun_by_some, slot_meter
from agglab.testbed.systems.withheld import Merging, blame_switches
from agglab.topologies import Topology

LANES_MAX = 1024
MERGING = Merging(
    kept=("hot_new", "hot_duplicate", "refused"),
    released=("group_complete", "sum_repeated"),
    copied="result_copied",
)


MESSAGES = Messages(
    wire.HEADER,
    wire.Kind,
    [kind.name for kind in wire.Kind if kind >= wire.FIRST_ANSWER],
    ["round", "server", "item"],
)


class Libra(BetweenHosts):
    name = "libra"
    summary = "servers hold keys and values; switches sum the hot keys on the way"
    choose_when = (
        "Take it for keys and values if a few keys are far more frequent than the others, and "
        "a switch has room only for these few."
    )
    abilities = Abilities(workloads=("push_pull",), has_servers=True, keys=KEYS)
    options = LibraKeys
    counters = COUNTERS
    attack_kinds = KINDS
    host_counters = meanings(OWN_COUNTERS)
    header_bytes = wire.HEADER_BYTES
    messages = MESSAGES
    window_max = MAX_WINDOW

    # A scenario.

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        return _keys(scenario).servers

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Returns the hosts that the scenario reserves for servers or, if there are none, the hosts
        of all workers. A job that has lost a worker keeps its servers."""
        return self.reserved_hosts(scenario, graph) or workers

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        if trust("switch.lanes", "links.mtu"):
            yield from _too_many_lanes(scenario)
        yield from attacks_from_servers(scenario, self.name, _keys(scenario).servers, trust)

    def unused_keys(self, scenario: Scenario) -> Iterator[tuple[str, str]]:
        return unused_keys(_keys(scenario), max(j.workload.rounds for j in stated(scenario)))

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        servers, workers = len(job.job.servers), len(job.hosts)
        if servers > SERVERS_MAX:
            return f"{servers} servers: there can be at most {SERVERS_MAX}"
        if workers > wire.MAX_WORKERS:
            return f"{workers} workers: there can be at most {wire.MAX_WORKERS}"
        return unreachable(graph, [host.name for host in graph.hosts])

    def lanes(self, scenario: Scenario) -> int:
        """Returns how many pairs of a key and a value a packet has: the number that the scenario
        states, or else the largest number that fits."""
        return scenario.switch.lanes or _lanes_that_fit(scenario)

    def frame_bytes(self, lanes: int) -> int:
        return wire.pairs_bytes(lanes)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns the least number of requests that every worker has in each of the first two
        rounds. The first round may be a sample."""
        return _least_requests(scenario, job, self.lanes(scenario)) if job.servers else 2

    # Agents.

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        graph, declared, own = resolved.graph, job.job, _keys(resolved.scenario)
        hosts = declared.servers
        worker_port = base_wire.WORKER_PORT_BASE + declared.number
        server_port = SERVER_PORT_BASE + declared.number
        workers = [[graph.host(name).ip, worker_port] for name in job.hosts]
        asked = [[graph.host(name).ip, server_port] for name in hosts]
        if own.hot:
            asked.append(list(base_wire.AGGREGATOR))
        shared = {
            "lanes": resolved.lanes,
            "window": declared.window,
            "session": FIRST_SESSION,
            "servers": len(hosts),
            "hot": own.hot,
            "sample_every": own.sample_every,
            "fraction_bits": own.fraction_bits,
        }
        found = []
        for rank in job.members:
            host = declared.hosts[rank]
            configuration = self.configuration(resolved, declared, host, worker_port, rank)
            configuration["settings"] = {**shared, "peers": asked}
            found.append(Agent(WORKER, host, rank, configuration))
        keys = getattr(declared.work, "keys_most", 0)
        for index, host in enumerate(hosts):
            rank = len(declared.hosts) + index
            configuration = self.configuration(resolved, declared, host, server_port, rank, SERVER)
            racks = rack_peers(graph, job, host)
            peers = workers + [rack.address for rack in racks if rack.address]
            session = {"peers": peers, "racks": [[rack.peer, rack.positions] for rack in racks]}
            configuration["settings"] = {**shared, "index": index, "keys": keys, **session}
            found.append(Agent(SERVER, host, rank, configuration, session))
        return found

    # What should happen.

    def flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns the pairs of hosts that send to each other. The sizes are 0, because they differ
        from round to round."""
        pairs = [(worker, server) for worker in job.hosts for server in job.job.servers]
        hot = _keys(resolved.scenario).hot > 0
        return [Flow(*pair, 0, hot) for pair in pairs] + [Flow(b, a, 0) for a, b in pairs]

    def round_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, number: int
    ) -> Mapping[str, int]:
        return crossed(resolved.graph, _setting(resolved, job), job, number)

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        """Returns the bounds of the round in which the least is sent."""
        graph, setting = resolved.graph, _setting(resolved, job)
        rounds = [crossed(graph, setting, job, number) for number in range(job.job.rounds)]
        slowest_bps = min(rate for _, rate in rates(graph))
        frame = self.frame_bytes(resolved.lanes)
        between = [flow for flow in self.flows(resolved, job) if flow.source != flow.target]
        round_trip_s = min((trip_s(graph, flow, frame) for flow in between), default=0.0)
        in_flight = job.job.window * frame * 8 / slowest_bps
        pairs = min(_most_pairs(load(setting, number)) for number in range(job.job.rounds))
        return Bounds(
            payload_s=pairs * wire.PAIR_BYTES * 8 / slowest_bps,
            link_s=min(slowest_crossing_s(graph, sizes) for sizes in rounds),
            lossy_s=min(lossy_crossing_s(graph, sizes) for sizes in rounds),
            window_share=min(1.0, in_flight / round_trip_s) if round_trip_s else 1.0,
        )

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the bytes that agents counted as sent again, in packets of many lengths."""
        return ByteRange(counts["bytes_again"], counts["bytes_again"])

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        """Returns what results must be: integers modulo 2^32, or the sums of floats as the workers
        round them."""
        if job.job.dtype != "float32":
            return super().right_results(resolved, job, combine)
        return RightResults(_rounded_sums(_keys(resolved.scenario).fraction_bits))

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        def sums_owed(job: ActiveJob, histories: Histories, counts: Counts) -> int:
            """Each switch with workers of the job owes one sum of each group of hot keys in each
            round."""
            setting, racks = _setting(resolved, job), racks_of(resolved.graph, job)
            rounds = range(job.job.rounds)
            return len(racks) * sum(sum(load(setting, number).groups) for number in rounds)

        return SwitchWork(sums_owed=sums_owed)

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        lanes = self.lanes(scenario)
        usual = default_window(self.frame_bytes(lanes), self.window_max, slowest_bps, delays_s)
        window = scenario.workload.window or usual
        slots = slots_of(_keys(scenario).hot, lanes)
        jobs = [
            JobChoices(job.workload.window or window, index * slots, slots)
            for index, job in enumerate(stated(scenario))
        ]
        return Choices(jobs, lanes, window)

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        """Returns the P4 program. It has room for as many jobs as a switch can have."""
        lanes = self.lanes(scenario)
        slots = max(1, JOBS_MAX * slots_of(_keys(scenario).hot, lanes))
        return everywhere(Source("libra", {"LANES": lanes, "SLOTS": slots}))

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        return tables(graph, jobs)

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """Returns the memory of servers."""
        return sum(map(_memory_of_servers, resolved.jobs))

    # When something is wrong.

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        parts: dict[str, list[Part]] = {}
        for job in map(resolved.whole, resolved.jobs):
            cells = list(range(job.job.first_slot, job.job.first_slot + job.job.slots))
            for switch, ranks in racks_of(resolved.graph, job).items() if cells else ():
                everybody = sum(1 << job.members.index(rank) for rank in ranks)
                parts.setdefault(switch, []).append(begun_by_some("contributors", cells, everybody))
        return slot_meter(parts)

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        """Returns what each host or switch owes. A worker waits for [item, server, phase]. A server
        waits for [0, rank] of each worker that has not pushed everything. As a job has only one
        round at a time, it does not matter which of a worker's packets are missing."""
        asked = {
            host: [[0, server] for server in sorted({server for _, server, _ in entries})]
            for host, entries in waiting.items()
        }
        missing = {
            host: [[0, *sorted({rank for _, *ranks in entries for rank in ranks})]]
            for host, entries in unserved.items()
            if entries
        }
        return blame_switches(source, diagnose(job, asked, missing), _merging(graph, job))

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        def agents(job: Job) -> Sequence[Agent]:
            return self.agents(resolved, resolved.whole(job, NOTHING_SHARED))

        def forge(job: Job) -> spoofing.Forge:
            return partial(forged, job)

        return spoofing.frames(key, resolved, host, agents, forge, kinds=KINDS)


def _merging(graph: Topology, job: ActiveJob) -> Merging:
    """Returns what switches sum and copy for a job. A switch that keeps a sum stops no round,
    because workers then send to the server, past the switch's sums."""
    copies = {switch: len(ranks) for switch, ranks in racks_of(graph, job).items()}
    return replace(MERGING, cell=job.index, copies=copies)


def _keys(scenario: Scenario) -> LibraKeys:
    own = dict(scenario.options).get(Libra.name)
    return own if isinstance(own, LibraKeys) else LibraKeys()


def _least_requests(scenario: Scenario, job: Job, lanes: int) -> int:
    members = tuple(range(len(job.hosts)))
    setting = Setting(scenario.seed, job, members, _keys(scenario), lanes)
    return min(load(setting, number).least_requests(setting) for number in range(2))


def _memory_of_servers(job: Job) -> int:
    """Returns the bytes of a job's servers: for two rounds, each worker's pairs and a table of all
    keys."""
    pairs = len(job.hosts) * job.elements
    return len(job.servers) * 2 * (pairs * 4 + 4 * 14 * min(pairs, 1 << 24))


def _too_many_lanes(scenario: Scenario) -> Iterator[Finding]:
    """Yields a problem if the packets that the scenario states do not fit its MTU."""
    lanes, most = scenario.switch.lanes, _lanes_that_fit(scenario)
    if lanes is not None and lanes > most:
        what = f"{lanes} keys with values do not fit an MTU of {scenario.links.mtu_bytes}"
        yield "switch.lanes", f"{what} bytes", f"at most {most}, or auto"


def _lanes_that_fit(scenario: Scenario) -> int:
    room = scenario.links.mtu_bytes - IP_AND_UDP_BYTES - wire.HEADER_BYTES
    return min(LANES_MAX, room // wire.PAIR_BYTES)


def _setting(resolved: ResolvedScenario, job: ActiveJob) -> Setting:
    own = _keys(resolved.scenario)
    return Setting(resolved.seed, job.job, job.members, own, resolved.lanes)


def _rounded_sums(fraction_bits: int) -> TruthOf:
    """Returns the sums of float32: every worker rounds its values times 2^fraction_bits to
    integers, and the result is the sum of these divided by that factor."""
    scale = 2.0**fraction_bits

    def truth(start: int, inputs: Sequence[Array]) -> Truth:
        integers = [np.rint(block.astype(np.float64) * scale) for block in inputs]
        return Truth((np.sum(integers, axis=0) / scale).astype(np.float32))

    return truth


def _most_pairs(of: Load) -> int:
    """Returns the largest number of pairs with cold keys that a worker pushes."""
    return max(sum(pairs) for pairs in of.cold.values())


SYSTEM = Libra

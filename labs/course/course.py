"""The system `course`: the small protocol of the labs, for `system: labs/course/course.py:Course`.

A worker sends four numbers in a packet, and the switches add up what the workers send for the same
slot. This module tells the testbed what it has to know: the entries of tables, the agents, the
bytes on every link and the right sums (testbed/systems/base/ is the contract). The worker itself
is worker.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from agglab.hosts import wire
from agglab.hosts.part import WORKER
from agglab.testbed.scenario import ResolvedScenario, Scenario
from agglab.testbed.schema.jobs import Job, stated
from agglab.testbed.schema.key import key
from agglab.testbed.schema.kinds import Flag, Whole, duration
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    SOURCE,
    Abilities,
    ActiveJob,
    Agent,
    AttackKind,
    Bounds,
    ByteRange,
    Choices,
    Combine,
    Counter,
    Counts,
    JobChoices,
    RightResults,
    Source,
    System,
    Traffic,
    Unpredictable,
    everywhere,
    integer_sum,
)
from agglab.testbed.systems.between_hosts import trip_s
from agglab.testbed.systems.common import agent_configuration
from agglab.testbed.systems.forwarding import Flow, rates, slowest_crossing_s
from agglab.testbed.systems.frames import AGGREGATOR, datagram, end_of, ethernet
from agglab.testbed.systems.plan import Branch, Entries, Replica, TableEntry, Tree, aggregation_tree
from agglab.testbed.systems.plan.entries import ip_number, mac_number
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.plan.paths import unreachable
from agglab.topologies import Topology

CONTRIBUTION, FRAME_BYTES, SPARSE_FRAME_BYTES, NUMBERS = 1, 66, 70, 4
HEADER = struct.Struct("!BBHI4I")  # kind, worker, slot, tag, four numbers (worker.py)
GROUP = 1
CHILDREN_MAX = 8
"""How many workers, or switches below it, a switch of the course may have: the bitmap's bits."""
SPARSE = "which chunks are zero decides what is sent"
ENDPOINTS = str(Path(__file__).with_name("worker.py"))


@dataclass(frozen=True)
class Options:
    """The keys of the section `course` of a scenario: what a level's workers do."""

    ahead: int = key(
        "ahead", Whole(1, 2), 1, "how many chunks of one slot a worker has under way at a time"
    )
    timeout_s: float = key(
        "timeout", duration(), 0.0, "when a chunk without a result is sent again; 0: never"
    )
    sparse: bool = key("sparse", Flag(), False, "chunks that are zero are not sent (lab 08)")


class Course(System):
    name = "course"
    summary = "the small protocol of labs/: four numbers in a packet, summed in slots"
    abilities = Abilities(dtypes=("int32",), keys=frozenset({"switch.slots"}))
    options = Options
    counters = {  # noqa: RUF012
        "refused": Counter("refused", "packets that no worker can have sent", "forged", False)
    }
    optional_counters = frozenset({"refused"})
    attack_kinds = {"stranger": AttackKind("refused")}  # noqa: RUF012

    # A scenario.

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        if job.index > 0:
            return "the course's protocol has room for one job"
        if lacking := unreachable(graph, job.hosts):
            return lacking
        most = max(len(each.children) for each in _tree(graph, job).branches.values())
        if most > CHILDREN_MAX:
            return f"{most} workers at a switch, but the course's bitmaps have {CHILDREN_MAX} bits"
        return ""

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        window = scenario.switch.slots * _options(scenario).ahead
        jobs = [JobChoices(window) for _ in stated(scenario)]
        return Choices(jobs, NUMBERS, window)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // NUMBERS)

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        return 8 * (SPARSE_FRAME_BYTES if resolved.options.sparse else FRAME_BYTES)

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        """The scenario names the program: a student's, or a solution."""
        return everywhere(SOURCE)

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        entries = {switch.name: Entries((), {}) for switch in graph.switches}
        for job in jobs:
            for switch, branch in _tree(graph, job).branches.items():
                entries[switch] = _entries(graph, branch)
        return entries

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        settings = {
            "session": FIRST_SESSION,
            "slots": resolved.slots,
            "ahead": resolved.options.ahead,
            "sparse": resolved.options.sparse,
            "timeout_ns": round(resolved.options.timeout_s * 1e9),
            "peers": [[wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT]],
        }
        return [
            Agent(WORKER, host, rank, {**_agent(resolved, job, host, rank), "settings": settings})
            for rank, host in zip(job.members, job.hosts, strict=True)
        ]

    # What should happen.

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        if resolved.options.sparse:
            raise Unpredictable(SPARSE)
        sizes = self._round_bytes(resolved, job)

        def extra_bytes(host: str, counts: Counts) -> ByteRange:
            return ByteRange(0, counts["retransmitted"] * self.chunk_bits(resolved) // 8)

        return Traffic(
            lambda number: sizes,
            extra_bytes,
            lambda more, counters: _retransmitted_bytes(_tree(resolved.graph, job), more),
        )

    def _round_bytes(self, resolved: ResolvedScenario, job: ActiveJob) -> Mapping[str, int]:
        """Every cable of the tree carries each chunk once in each direction. If chunks that are
        zero are not sent, this is no more than the first chunk."""
        chunks = 1 if resolved.options.sparse else resolved.chunks(job.job)
        size = chunks * self.chunk_bits(resolved) // 8
        return dict.fromkeys(_directions(_tree(resolved.graph, job)), size)

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
        graph, sizes = resolved.graph, self._round_bytes(resolved, job)
        slowest_bps = min((rate for _, rate in rates(graph)), default=0)
        link_s = slowest_crossing_s(graph, sizes)
        there_and_back = Flow(job.hosts[0], job.hosts[-1], FRAME_BYTES)
        trip = trip_s(graph, there_and_back, FRAME_BYTES)
        in_flight_s = job.job.window * 8 * FRAME_BYTES / slowest_bps if slowest_bps else 0.0
        payload_s = job.job.elements * wire.VALUE_BYTES * 8 / slowest_bps if slowest_bps else 0.0
        return Bounds(payload_s, link_s, link_s, min(1.0, in_flight_s / trip) if trip else 1.0)

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        return RightResults(integer_sum)

    # An outsider.

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        """Yields contributions of a host that is no worker: it claims to be one, and guesses slots
        and tags that may be in use."""
        chance, attacker = Random(key), end_of(resolved.graph.host(host), wire.AGGREGATOR_PORT)
        workers = max(len(job.hosts) for job in resolved.jobs)
        while True:
            slot, tag = chance.randrange(resolved.slots), chance.randrange(32)
            numbers = [chance.getrandbits(32) for _ in range(NUMBERS)]
            payload = HEADER.pack(CONTRIBUTION, chance.randrange(workers), slot, tag, *numbers)
            packet = datagram(attacker, AGGREGATOR, payload)
            yield "stranger", ethernet(AGGREGATOR.mac, attacker.mac, packet)


def _options(scenario: Scenario) -> Options:
    options: Options = dict(scenario.options).get(Course.name, Options())
    return options


def _tree(graph: Topology, job: ActiveJob) -> Tree:
    """Returns the switches that sum, from the workers' own switches to the root."""
    return aggregation_tree(wiring_of(graph), job.hosts, job.index)


def _directions(tree: Tree) -> Iterator[str]:
    for switch, branch in tree.branches.items():
        for _, node in branch.children:
            yield from (f"{node}->{switch}", f"{switch}->{node}")


def _retransmitted_bytes(tree: Tree, more: Mapping[str, int]) -> Mapping[str, ByteRange]:
    """A worker counts what it sent again. Each of these packets may have made each switch send one
    packet more, upwards or downwards."""
    most = sum(more.values())
    ranges = dict.fromkeys(_directions(tree), ByteRange(0, most))
    for direction in ranges:
        sender = direction.partition("->")[0]
        if sender in more:
            ranges[direction] = ByteRange(more[sender], more[sender])
    return ranges


def _entries(graph: Topology, branch: Branch) -> Entries:
    """Returns what one switch is filled with: who is worker 0, 1, 2... of how many, to which
    address results go, and, below the root, where the next switch is."""
    tables = []
    for number, (port, node) in enumerate(branch.children):
        worker = {"number": number, "workers": len(branch.children)}
        tables.append(TableEntry("workers", {"ingress_port": port}, "from_worker", worker))
        tables.append(_receiver(graph, port, node))
    if branch.parent is not None:
        port, node = branch.parent
        tables.append(TableEntry("parents", {"ingress_port": port}, "from_parent", {}))
        for child, _ in branch.children:
            tables.append(TableEntry("uplinks", {"ingress_port": child}, "below", {"port": port}))
        tables.append(_receiver(graph, port, node))
    return Entries(tuple(tables), {GROUP: tuple(Replica(port) for port, _ in branch.children)})


def _receiver(graph: Topology, port: int, node: str) -> TableEntry:
    hosts = {host.name: host for host in graph.hosts}
    host = hosts.get(node)
    mac, ip = (host.mac, host.ip) if host else (wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS)
    address = {"mac": mac_number(mac), "ip": ip_number(ip)}
    return TableEntry("receivers", {"egress_port": port}, "send_to", address)


def _agent(resolved: ResolvedScenario, job: ActiveJob, host: str, rank: int) -> dict[str, Any]:
    return agent_configuration(resolved, job.job, ENDPOINTS, host, wire.AGGREGATOR_PORT, rank)

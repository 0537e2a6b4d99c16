"""The system Gloo: the values and methods that the testbed asks of a System."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from random import Random

from agglab.hosts import wire
from agglab.hosts.part import WORKER
from agglab.systems.gloo.counts import HEADER_BYTES, OWN_COUNTERS
from agglab.systems.gloo.keys import GlooKeys
from agglab.systems.gloo.truth import any_order
from agglab.testbed.base.command_lines import install_torch
from agglab.testbed.schema.jobs import Finding, Job, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.target_names import TARGETS
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import (
    FIRST_SESSION,
    Abilities,
    ActiveJob,
    Agent,
    Choices,
    Combine,
    Evidence,
    JobChoices,
    MissingChunks,
    ResolvedScenario,
    RightResults,
    Traffic,
    Unpredictable,
    Waiting,
)
from agglab.testbed.systems.between_hosts import BetweenHosts
from agglab.testbed.systems.common import meanings
from agglab.testbed.systems.forwarding import Flow
from agglab.testbed.systems.frames import OVER_TCP
from agglab.testbed.systems.withheld import blame_switches
from agglab.topologies import Topology

ETHERNET_BYTES = 14
FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16
CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


class Gloo(BetweenHosts):
    """The system Gloo. Its agents use TCP connections that Gloo itself opens, so it cannot run in
    virtual time."""

    name = "gloo"
    summary = "all-reduce of torch.distributed, a ring over TCP; switches only forward"
    abilities = Abilities(clocks=("mininet",), targets=TARGETS)
    choose_when = (
        "Take it to know what PyTorch does today: it needs nothing from a switch. TCP "
        "retransmits and controls its rate, which costs much time where links lose packets."
    )
    options = GlooKeys
    host_counters = meanings(OWN_COUNTERS)
    transport = OVER_TCP
    sends_datagrams = False
    header_bytes = 0
    window_max = 0

    def lacks(self, resolved: ResolvedScenario) -> Iterator[tuple[str, str]]:
        if importlib.util.find_spec("torch") is None:
            yield "PyTorch, which `system: gloo` runs", install_torch()
        wanted = keys_of(resolved.scenario).congestion_control
        if wanted not in CONTROLS.read_text().split():
            what = f"TCP's congestion control {wanted}, which gloo.congestion_control asks for"
            yield what, f"sudo modprobe tcp_{wanted}, or one of {CONTROLS}"

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        for index, fault in enumerate(scenario.faults):
            if fault.kind == "worker_slow" and trust(f"faults[{index}]"):
                what = (
                    "Gloo's TCP runs in the kernel, so an agent cannot slow down how packets "
                    "are handled"
                )
                yield f"faults[{index}].kind", what, "worker_pause, or another system"

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        return Choices([JobChoices() for _ in stated(scenario)])

    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns the number of chunks. A chunk is the content of one full segment."""
        moved = tensor_share(job.elements, len(job.hosts))
        return max(1, -(-moved // segment_bytes(scenario)))

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        return 8 * (segment_bytes(resolved.scenario) + HEADER_BYTES)

    def in_flight_bytes(self, resolved: ResolvedScenario, job: ActiveJob) -> float:
        """Returns infinity, because TCP decides itself how much is in flight."""
        return inf

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        port = wire.WORKER_PORT_BASE + job.job.number
        peers = [[resolved.graph.host(name).ip, port] for name in job.hosts]
        settings = {
            "session": FIRST_SESSION,
            "peers": peers,
            "chunk_bytes": segment_bytes(resolved.scenario),
            "congestion_control": keys_of(resolved.scenario).congestion_control,
        }
        found = []
        for rank in job.members:
            host = job.job.hosts[rank]
            configuration = self.configuration(resolved, job.job, host, port, rank)
            configuration["settings"] = settings
            # What TCP still sends when a worker has its sum is asked for in the end.
            found.append(Agent(WORKER, host, rank, configuration, {"peers": peers}, listens=True))
        return found

    def flows(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Flow]:
        """Returns what each worker sends to the worker before it in the ring: a share of the tensor
        in full segments. This is a lower bound, without acknowledgements and Gloo's own headers."""
        share, hosts = tensor_share(job.job.elements, len(job.hosts)), job.hosts
        segments = -(-share // segment_bytes(resolved.scenario))
        size = share + segments * HEADER_BYTES
        before = [*hosts[-1:], *hosts[:-1]]
        return [Flow(a, b, size) for a, b in zip(hosts, before, strict=True) if a != b]

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        raise Unpredictable(
            "TCP decides what it acknowledges, how it segments and what it retransmits"
        )

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        """Returns what results must be. A float32 must be within the bound for any order of
        additions. Integers must be right bit for bit."""
        if job.job.dtype != "float32":
            return super().right_results(resolved, job, combine)
        return RightResults(lambda start, inputs: any_order(inputs))

    def forged(
        self, resolved: ResolvedScenario, job: ActiveJob, chance: Random, agent: Agent
    ) -> bytes:
        """Returns a segment for the store, which has the only port that an outsider can know. The
        segment opens, resets or closes a connection, or carries data (see frames.tcp)."""
        flags = chance.choice((SYN, RST, RST | ACK, FIN | ACK, PUSH | ACK))
        data = chance.randbytes(segment_bytes(resolved.scenario) if flags & PUSH else 0)
        return chance.randbytes(8) + bytes([flags]) + data

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        """Returns what each host owes. An agent waits for [chunk, rank, is sure].

        Each item means that something is missing between the agent and the worker of that rank, and
        either may be the cause. If `is sure`, the other worker is silent or has closed its
        connection, and the pair of workers counts against both. Otherwise the other worker may
        itself be waiting. The worker in most counted pairs comes first.
        """
        owing: dict[str, MissingChunks] = {}
        found: Counter[str] = Counter()
        for host, waits in waiting.items():
            for chunk, rank, is_sure in waits:
                other = job.hosts[rank]
                owing.setdefault(other, MissingChunks()).never_sent.add(chunk)
                if is_sure:
                    owing.setdefault(host, MissingChunks()).never_heard.add(chunk)
                    found.update((host, other))
        order = sorted(owing.items(), key=lambda item: (-found[item[0]], -item[1].count))
        return blame_switches(source, dict(order))


def keys_of(scenario: Scenario) -> GlooKeys:
    """Returns the section `gloo`, or its defaults."""
    own = dict(scenario.options).get(Gloo.name)
    return own if isinstance(own, GlooKeys) else GlooKeys()


def segment_bytes(scenario: Scenario) -> int:
    """Returns how many bytes a full TCP segment carries."""
    return scenario.links.mtu_bytes - (HEADER_BYTES - ETHERNET_BYTES)


def tensor_share(elements: int, workers: int) -> int:
    """Returns the bytes that each of n workers in a ring sends and receives in a round: 2 (n - 1) /
    n of the tensor."""
    return 2 * (workers - 1) * elements * wire.VALUE_BYTES // max(1, workers)


SYSTEM = Gloo

"""The world of a walk of bags.py: switches, the agents of some jobs, and the frames between them.

The world judges what agents receive as a run does. No switch and no host may refuse what an agent
sent, and no frame may come to a host that it is not for. When a walk has ended, each job has
another round, without mishaps. Whatever the walk has left in switches, nobody may have to send a
packet again in this round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agglab.hosts.endpoint import Repeat
from agglab.hosts.part import WORKER
from agglab.hosts.wire import AGGREGATOR, AGGREGATOR_MAC
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.testbed.systems.base import ActiveJob, Agent
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.systems.summing.sessions import SESSION_BITS
from agglab.testbed.virtual import CompiledProgram
from agglab.testbed.virtual.clock import Clock
from agglab.testbed.virtual.frames import Address, Framing
from agglab.testbed.virtual.workers import AgentNode
from agglab.topologies import Topology
from agglab.verification import proofs
from agglab.verification.explore.walk import FaultFound, Step
from p4native.common.object_names import UnresolvedName, full_name
from p4native.switch import Pipeline

MS = 1_000_000
HISTORY_MAX = 400
CROSSING_NS = 2000  # more than a tick of a switch's clock
FINISH_TURNS = 20_000
MANY = 200
CALM_NS = MS
ABANDONED_NS = 2_000_000_000  # longer than any switch keeps what nobody touches
WAITS_NS = (1000, 50_000, MS, 5 * MS, 30 * MS, 500 * MS)
NEVER_S = 1e6
WRONG = ("malformed", "forged")
"""The tallies of counters of packets that no agent sends."""
TAGS = "first_tag"
NUMBERS = (TAGS, "session")
"""The settings of agents that say with which number a session begins."""
SILENCES = ("silence_s",)
"""The settings of agents that say after which silence another agent is taken for dead. In a bag,
where frames of living agents may stay for any time, none is."""


@dataclass(frozen=True)
class Flying:
    """A frame on its way to a port of a switch, or to a host, whose port is 0."""

    node: str
    port: int
    frame: bytes


@dataclass
class Running:
    """A job, its agents in the present session, and what they have received in its round."""

    active: ActiveJob
    nodes: list[AgentNode] = field(default_factory=list)
    workers: list[AgentNode] = field(default_factory=list)
    received: dict[int, Received] = field(default_factory=dict)
    round: int = 0

    @property
    def rounds(self) -> int:
        """The number of rounds that a walk disturbs."""
        return self.active.job.rounds - 1


class BagWorld:
    """Switches, agents and the frames between them."""

    def __init__(
        self, resolved: ResolvedScenario, first: int, begins_us: int, compiled: CompiledProgram
    ) -> None:
        self.told: list[str] | None = None
        self._resolved, self._graph, self._first = resolved, resolved.graph, first
        self._sessions = resolved.system.sessions(resolved)
        for job in resolved.jobs:
            self._sessions.join(job)
        self._jobs = [
            Running(resolved.whole(job, self._sessions.take(job))) for job in resolved.jobs
        ]
        self._clock = Clock()
        self._wait(1000 * begins_us)
        self._bag: list[Flying] = []
        self._history: list[Flying] = []
        self._ends = _ends(self._graph)
        self._nodes: dict[tuple[str, int], AgentNode] = {}
        self._sent_again = 0
        self._compiled = compiled
        self._pipelines = self._filled()
        for running in self._jobs:
            self._begin_session(running)

    def _filled(self) -> dict[str, Pipeline]:
        """Returns the switches' pipelines with their entries."""
        tables = self._resolved.system.tables(self._graph, [one.active for one in self._jobs])
        pipelines = {name: self._compiled.pipeline(seed=1) for name in tables}
        for name, entries in tables.items():
            for entry in entries.tables:
                self._compiled.add(pipelines[name], entry)
            for group, replicas in entries.groups.items():
                pipelines[name].replication.set_multicast_group(group, replicas)
        return pipelines

    # Sessions and rounds.

    def _begin_session(self, running: Running) -> None:
        """Starts new agents in place of those of the session before, if there was one."""
        session = self._sessions.begin(running.active.job)
        agents = self._resolved.system.agents(self._resolved, running.active)
        for node in running.nodes:
            node.kill()
        running.nodes = [self._node(running, agent, session) for agent in agents]
        self._nodes.update(zip(map(_bound, agents), running.nodes, strict=True))
        running.workers = [
            node for agent, node in zip(agents, running.nodes, strict=True) if agent.role == WORKER
        ]

    def _node(self, running: Running, agent: Agent, session: Mapping[str, Any]) -> AgentNode:
        settings = {**agent.configuration["settings"], **session}
        for name in settings.keys() & NUMBERS:
            settings[name] += self._beyond(name, not running.nodes)
        settings.update(dict.fromkeys(settings.keys() & SILENCES, NEVER_S))
        return AgentNode(
            self._clock,
            {**agent.configuration, "settings": settings},
            partial(self._send, _bound(agent)),
            self._report,
            partial(self._keep, running, agent.rank),
            self._count_repeat,
        )

    def _beyond(self, name: str, first_session: bool) -> int:
        """Returns how far the numbers of a session are beyond those of a run's."""
        if first_session or name != TAGS:
            return self._first - 1
        return (self._first >> SESSION_BITS) + 1 << SESSION_BITS

    def _report(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "failed":
            raise FaultFound("failure", f"{event['name']}: {event['error']}")
        self._check_host(event["name"], event.get("stats", {}))

    def _check_host(self, name: str, stats: Mapping[str, int]) -> None:
        """Raises FaultFound if a host has refused a packet, as only agents have sent any."""
        if refused := stats.get("malformed", 0):
            raise FaultFound("refused", f"{name}: malformed is {refused}")

    def _keep(self, running: Running, rank: int, number: int, received: Received) -> None:
        running.received[rank] = received

    def _count_repeat(self, peer: int, repeat: Repeat) -> None:
        self._sent_again += 1

    def _begin_round(self, running: Running) -> None:
        running.received = {}
        for worker in running.workers:
            worker.command({"command": "round", "round": running.round, "marks": []})

    def _judge_round(self, running: Running) -> bool:
        """Judges the round if all workers have completed it. Returns whether they have."""
        if len(running.received) < len(running.workers):
            return False
        job, number = running.active.job, running.round
        kind = workloads.KINDS[job.work.kind]
        verdict = kind.verdict(self._resolved, running.active, number, running.received)
        if not verdict.right:
            counts = f"{verdict.wrong_sums} sums, {verdict.wrong_results} results"
            where = f"{job.name}, round {number}"
            raise FaultFound("wrong sum", f"{where}: {counts}, first {verdict.first}")
        running.received = {}
        running.round += 1
        return True

    def _next_rounds(self) -> None:
        """Begins the next round of the jobs that have completed one."""
        for running in self._jobs:
            if self._judge_round(running) and running.round < running.rounds:
                self._begin_round(running)

    # Frames.

    def _send(self, own: tuple[str, int], peer: int, datagram: bytes) -> None:
        """Puts a datagram of an agent into the bag."""
        target = self._nodes[own].peers[peer]
        framing = Framing(self._address(own), self._address(target))
        frame, host = framing.frame(datagram), self._host(own[0])
        if own[0] == target[0]:
            self._bag.append(Flying(host, 0, frame))
        else:
            switch, port = wiring_of(self._graph).attached[host]
            self._bag.append(Flying(switch, port, frame))

    def _address(self, of: tuple[str, int]) -> Address:
        ip, port = of
        if ip == AGGREGATOR[0]:
            return Address(AGGREGATOR_MAC, ip, port)
        return Address(self._graph.host(self._host(ip)).mac, ip, port)

    def _host(self, ip: str) -> str:
        return next(host.name for host in self._graph.hosts if host.ip == ip)

    def _deliver(self, flying: Flying) -> None:
        self._history = [*self._history, flying][-HISTORY_MAX:]
        self._repeat(flying)

    def _repeat(self, flying: Flying) -> None:
        self._wait(CROSSING_NS)
        self._pass_on(flying)

    def _pass_on(self, flying: Flying) -> None:
        pipeline = self._pipelines.get(flying.node)
        if pipeline is None:
            self._receive(flying.node, flying.frame)
            return
        now_us = self._clock.now_ns // 1000
        for port, frame in pipeline.process(flying.port, flying.frame, now_us):
            self._bag.append(Flying(*self._ends[flying.node, port], frame))

    def _receive(self, host: str, frame: bytes) -> None:
        """Gives a datagram to the agent that it is for."""
        mac = bytes.fromhex(self._graph.host(host).mac.replace(":", ""))
        target, source = _end(frame, 30, 36), _end(frame, 26, 34)
        node = self._nodes.get(target)
        if frame[:6] != mac or node is None:
            raise FaultFound("astray", f"{host} receives a frame for {_mac_text(frame)}")
        if source not in node.peers:
            raise FaultFound("forged", f"{host} receives a datagram from {source}")
        header = 42
        node.receive(list(node.peers).index(source), frame[header:])

    # Steps.

    def begin(self) -> None:
        for running in self._jobs:
            self._begin_round(running)

    def do(self, step: Step) -> None:
        if self.told is not None:
            self.told.append(f"{step.kind} {step.number}: {len(self._bag)} frames under way")
        getattr(self, "_do_" + step.kind.replace(" ", "_"))(step.number)
        self._next_rounds()

    def _do_deliver(self, number: int) -> None:
        if self._bag:
            self._deliver(self._bag.pop(0))

    def _do_deliver_many(self, number: int) -> None:
        """Delivers frames in order, also those that are sent meanwhile."""
        for _ in range(1 + number % MANY):
            self._do_deliver(0)
            self._next_rounds()

    def _do_deliver_last(self, number: int) -> None:
        if self._bag:
            self._deliver(self._bag.pop())

    def _do_deliver_any(self, number: int) -> None:
        if self._bag:
            self._deliver(self._bag.pop(number % len(self._bag)))

    def _do_lose(self, number: int) -> None:
        if self._bag:
            self._bag.pop(number % len(self._bag))

    def _do_copy(self, number: int) -> None:
        if self._bag:
            self._bag.append(self._bag[number % len(self._bag)])

    def _do_repeat(self, number: int) -> None:
        if self._history:
            self._repeat(self._history[-1 - number % min(8, len(self._history))])

    def _do_repeat_old(self, number: int) -> None:
        if self._history:
            self._repeat(self._history[number % len(self._history)])

    def _do_repeat_all(self, number: int) -> None:
        for flying in list(self._history):
            self._repeat(flying)

    def _do_wait(self, number: int) -> None:
        self._wait(WAITS_NS[number % len(WAITS_NS)])

    def _wait(self, for_ns: int) -> None:
        self._clock.run(self._clock.now_ns + for_ns, lambda: False)

    def _do_renew(self, number: int) -> None:
        """Breaks off the round of a job, and begins it again in a new session."""
        running = self._jobs[number % len(self._jobs)]
        if running.round < running.rounds:
            self._begin_session(running)
            self._begin_round(running)

    # The end.

    def finish(self) -> None:
        self._deliver_until_settled()
        self._wait(ABANDONED_NS)
        self._have_a_calm_round()
        self._check_refused()
        for (ip, _), node in self._nodes.items():
            self._check_host(self._host(ip), node.unreported)

    def _deliver_until_settled(self) -> None:
        """Lets all rounds end that the walk has begun, until no agent waits for an answer."""
        for _ in range(FINISH_TURNS):
            self._do_deliver_many(MANY - 1)
            if not self._bag and self._is_settled:
                return
            if not self._bag:
                self._wait(5 * MS)
        late = next(one for one in self._jobs if one.round < one.rounds)
        raise FaultFound("hang", f"round {late.round} of {late.active.job.name} does not end")

    @property
    def _is_settled(self) -> bool:
        over = all(running.round == running.rounds for running in self._jobs)
        return over and not any(node.in_flight for node in self._nodes.values())

    def _have_a_calm_round(self) -> None:
        """Lets each job have one more round, in which time passes only while no frame is under way.
        Raises FaultFound if agents send packets again, and not because of how the system works."""
        before = self._sent_again - self._intended_repeats
        self.begin()
        for _ in range(FINISH_TURNS):
            while self._bag:
                self._pass_on(self._bag.pop(0))
            self._next_rounds()
            if all(running.round > running.rounds for running in self._jobs):
                break
            self._wait(CALM_NS)
        else:
            raise FaultFound("hang", "a round in which nothing was disturbed does not end")
        if self._sent_again - self._intended_repeats > before:
            raise FaultFound("lost", "a packet of a round in which nothing was disturbed")

    @property
    def _intended_repeats(self) -> int:
        """The most packets that agents may have sent again because of how the system works."""
        system = self._resolved.system
        repeats = proofs.of(system.name).repeats
        counters = {
            switch: {
                kind: {0: (self._total(pipeline, counter.name), 0)}
                for kind, counter in system.counters.items()
            }
            for switch, pipeline in self._pipelines.items()
        }
        return repeats(self._resolved, counters) if repeats else 0

    def _check_refused(self) -> None:
        """Raises FaultFound if a switch has refused a packet, as only agents have sent any."""
        counters = self._resolved.system.counters
        for counter in counters.values():
            for name, pipeline in self._pipelines.items() if counter.tally in WRONG else ():
                refused = self._total(pipeline, counter.name)
                if refused:
                    raise FaultFound("refused", f"{name}: {counter.name} is {refused}")

    def _total(self, pipeline: Any, last: str) -> int:
        declared = self._compiled.program.counters
        try:
            name = full_name(declared, last, "counter")
        except UnresolvedName:
            return 0
        return sum(pipeline.counters.read(name, index)[0] for index in range(declared[name].size))

    def close(self) -> None:
        for pipeline in self._pipelines.values():
            pipeline.close()


def _bound(agent: Agent) -> tuple[str, int]:
    ip, port = agent.configuration["bind"]
    return ip, port


def _mac_text(frame: bytes) -> str:
    return frame[:6].hex(":")


def _end(frame: bytes, ip_at: int, port_at: int) -> tuple[str, int]:
    ip = ".".join(map(str, frame[ip_at : ip_at + 4]))
    return ip, int.from_bytes(frame[port_at : port_at + 2], "big")


def _ends(graph: Topology) -> dict[tuple[str, int], tuple[str, int]]:
    """Returns for each port of a switch where its link leads: to a host, whose port is 0, or to a
    port of another switch."""
    wiring = wiring_of(graph)
    ends = {(switch, port): (host, 0) for host, (switch, port) in wiring.attached.items()}
    for switch in wiring.switches:
        for port, other in wiring.neighbours(switch):
            link = graph.ports(switch)[port].name
            there = next(p for p, each in graph.ports(other).items() if each.name == link)
            ends[switch, port] = (other, there)
    return ends

"""Walks for systems without models of their own: the system's switches and agents, and a bag of the
frames between them. A step delivers any frame, in any order, loses or copies it, delivers a frame
again that was delivered long ago, or lets time pass. What agents receive is judged as in a run, and
no switch may refuse what an agent sent.

A network delivers frames roughly in order, and a fault delays them by a second at most. In a bag, a
frame may stay for rounds. Tags and sessions begin close to where their numbers wrap around.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from agglab.hosts.part import WORKER
from agglab.hosts.wire import AGGREGATOR, AGGREGATOR_MAC
from agglab.testbed import workloads
from agglab.testbed.plan.forwarding import wiring_of
from agglab.testbed.received import Received
from agglab.testbed.scenario import ResolvedScenario, Scenario, resolve
from agglab.testbed.scenario.schema import Links
from agglab.testbed.scenario.schema import Topology as Shape
from agglab.testbed.systems.base import Agent
from agglab.testbed.virtual import CompiledProgram
from agglab.testbed.virtual.clock import Clock
from agglab.testbed.virtual.frames import Address, Framing
from agglab.testbed.virtual.workers import AgentNode
from agglab.topologies import Topology
from agglab.verification.explore.schedules import schedule
from agglab.verification.explore.walk import FaultFound, Step
from p4native.common.object_names import UnresolvedName, full_name

MS = 1_000_000
RATE_BPS = 100_000_000
NEVER_S = 1e6
ROUNDS = 4
HISTORY_MAX = 400
CROSSING_NS = 2000  # more than a tick of a switch's clock
FINISH_TURNS = 20_000
MANY = 200
WAITS_NS = (1000, 50_000, MS, 5 * MS, 30 * MS, 500 * MS)
WRONG = ("malformed", "forged")
"""The tallies of counters of packets that no agent sends."""
NUMBERS = ("first_tag", "session")
"""The settings of agents that say with which number a session begins."""
SILENCES = ("silence_s",)
"""The settings of agents that say after which silence another agent is taken for dead. In a bag,
where frames of living agents may stay for any time, none is."""
FIRST_NUMBERS = (1, 2, 2**20 - 2, 2**31 - 70, 2**31 - 9, 2**31 - 2)

KINDS: Mapping[str, float] = {
    "deliver": 4,
    "deliver many": 6,
    "deliver last": 3,
    "deliver any": 3,
    "lose": 1,
    "copy": 2,
    "repeat": 2,
    "repeat old": 3,
    "repeat all": 0.3,
    "wait": 2,
}


@dataclass(frozen=True)
class Setting:
    """The setting of one walk. seed: that of the schedule whose workload and options it takes.
    racks: 1 for a single rack. first: the number with which the session begins."""

    seed: int
    workers: int
    racks: int
    first: int


@dataclass(frozen=True)
class Flying:
    """A frame on its way to a port of a switch, or to a host, whose port is 0."""

    node: str
    port: int
    frame: bytes


@dataclass(frozen=True)
class Bags:
    """A walk.System: worlds of one system whose switches run one program."""

    system: str
    compiled: CompiledProgram

    def setting(self, chance: Random) -> Setting:
        racks = chance.choice((1, 1, 2))
        workers = chance.randint(1, 2) if racks > 1 else chance.randint(2, 4)
        return Setting(chance.getrandbits(32), workers, racks, chance.choice(FIRST_NUMBERS))

    def kinds(self, setting: Setting) -> Mapping[str, float]:
        return KINDS

    def world(self, setting: Setting) -> BagWorld:
        return BagWorld(resolve(_scenario(setting, self.system)), setting.first, self.compiled)

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        if setting.racks > 1:
            yield replace(setting, racks=1, workers=2)
        if setting.racks == 1 and setting.workers > 2:
            yield replace(setting, workers=setting.workers - 1)
        if setting.first != 1:
            yield replace(setting, first=1)

    def from_values(self, values: Mapping[str, Any]) -> Setting:
        return Setting(**values)


def _scenario(setting: Setting, system: str) -> Scenario:
    """Returns the scenario of the schedule's seed with one job and without faults."""
    drawn = schedule(setting.seed, system)
    workload = drawn.jobs[0].workload if drawn.jobs else drawn.workload
    kind = "rack" if setting.racks == 1 else "two_tier"
    racks = setting.racks if setting.racks > 1 else None
    return replace(
        drawn,
        topology=Shape(kind, setting.workers, racks=racks),
        links=Links(rate_bps=RATE_BPS),
        jobs=(),
        faults=(),
        workload=replace(workload, rounds=ROUNDS, give_up_s=NEVER_S, on_failure="fail"),
    )


class BagWorld:
    """Switches, agents and the frames between them."""

    def __init__(self, resolved: ResolvedScenario, first: int, compiled: CompiledProgram) -> None:
        self.told: list[str] | None = None
        self._resolved, self._graph = resolved, resolved.graph
        (job,), sessions = resolved.jobs, resolved.system.sessions(resolved)
        sessions.join(job)
        self._active = resolved.whole(job, sessions.take(job))
        self._session = {**sessions.begin(job)}
        self._clock = Clock()
        self._bag: list[Flying] = []
        self._history: list[Flying] = []
        self._ends = _ends(self._graph)
        self._received: dict[int, Received] = {}
        self._round = 0
        self._compiled = compiled
        tables = resolved.system.tables(self._graph, [self._active])
        self._pipelines = {name: compiled.pipeline(seed=1) for name in tables}
        for name, entries in tables.items():
            for entry in entries.tables:
                compiled.add(self._pipelines[name], entry)
            for group, replicas in entries.groups.items():
                self._pipelines[name].replication.set_multicast_group(group, replicas)
        agents = resolved.system.agents(resolved, self._active)
        self._nodes = {_bound(agent): self._node(agent, first) for agent in agents}
        self._workers = [self._nodes[_bound(each)] for each in agents if each.role == WORKER]

    def _node(self, agent: Agent, first: int) -> AgentNode:
        settings = {**agent.configuration["settings"], **self._session}
        settings.update({name: first for name in NUMBERS if name in settings})
        settings.update({name: NEVER_S for name in SILENCES if name in settings})
        return AgentNode(
            self._clock,
            {**agent.configuration, "settings": settings},
            partial(self._send, _bound(agent)),
            self._report,
            partial(self._keep, agent.rank),
        )

    def _report(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "failed":
            raise FaultFound("failure", f"{event['name']}: {event['error']}")

    def _keep(self, rank: int, number: int, received: Received) -> None:
        self._received[rank] = received

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
            return
        if source not in node.peers:
            raise FaultFound("forged", f"{host} receives a datagram from {source}")
        header = 42
        node.receive(list(node.peers).index(source), frame[header:])

    # Steps.

    def begin(self) -> None:
        self._begin_round()

    def _begin_round(self) -> None:
        self._received = {}
        for worker in self._workers:
            worker.command({"command": "round", "round": self._round, "marks": []})

    def do(self, step: Step) -> None:
        if self.told is not None:
            self.told.append(f"{step.kind} {step.number}: {len(self._bag)} frames under way")
        getattr(self, "_do_" + step.kind.replace(" ", "_"))(step.number)
        self._next_round()

    def _do_deliver(self, number: int) -> None:
        if self._bag:
            self._deliver(self._bag.pop(0))

    def _do_deliver_many(self, number: int) -> None:
        """Delivers frames in order, also those that are sent meanwhile."""
        for _ in range(1 + number % MANY):
            self._do_deliver(0)
            self._next_round()

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

    def _next_round(self) -> None:
        """Judges the round if all workers have completed it, and begins the next."""
        if self._over or len(self._received) < len(self._workers):
            return
        job = self._active.job
        kind = workloads.KINDS[job.work.kind]
        verdict = kind.verdict(self._resolved, self._active, self._round, self._received)
        if not verdict.right:
            counts = f"{verdict.wrong_sums} sums, {verdict.wrong_results} results"
            raise FaultFound("wrong sum", f"round {self._round}: {counts}, first {verdict.first}")
        self._round += 1
        if not self._over:
            self._begin_round()

    @property
    def _over(self) -> bool:
        return self._round == self._active.job.rounds

    def finish(self) -> None:
        for _ in range(FINISH_TURNS):
            self._do_deliver_many(MANY - 1)
            if self._over:
                break
            if not self._bag:
                self._wait(5 * MS)
        else:
            raise FaultFound("hang", f"round {self._round} does not end")
        self._check_refused()

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

"""Switches, workers and the frames between them. Frames are in a bag. A step delivers any of them,
in any order, or loses, copies, changes or repeats frames. Other steps let a timer fire, restart a
switch, or send what no honest member sends. Every switch and worker is compared with its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.systems.switchml.verification import forgery, packets, setting, sums
from agglab.systems.switchml.verification.forwarding_model import Forwarding
from agglab.systems.switchml.verification.nodes import MS, SwitchPair, WorkerPair
from agglab.systems.switchml.verification.packets import (
    AGGREGATOR,
    HEADER,
    RESULT,
    WORKER_PORT_BASE,
)
from agglab.systems.switchml.verification.setting import (
    LANES,
    SESSION,
    SLOTS,
    JobSetting,
    Setting,
)
from agglab.systems.switchml.verification.switch_model import (
    HARMLESS,
    Decision,
    JobRole,
    Member,
    SwitchModel,
)
from agglab.systems.switchml.worker import Job, Timing
from agglab.testbed.systems.plan import Branch
from agglab.testbed.systems.plan.tree import Wiring
from agglab.testbed.systems.summing import plan
from agglab.testbed.virtual.switches import CompiledProgram
from agglab.verification.explore.walk import FaultFound, Step

HISTORY_MAX = 2000
FINISH_MAX = 20_000
STORM = 260
INITIAL_RTO_NS = 20 * MS
WAITS_NS = (0, 1000, 50_000, MS, 5 * MS, 30 * MS)
CROSSING_NS = (0, 0, 1000, 100_000, 3 * MS)
HOP = 2**31 - 2
FLOATS = (0.0, -0.0, 1e-45, -1e-39, 1.0, -1.5, 3e38, -3.4e38, 1e-20, 123456.789)

Extra = Callable[[WorkerPair], list[bytes]]

LAWFUL: Mapping[str, float] = {
    "deliver": 4,
    "deliver many": 6,
    "deliver last": 3,
    "deliver any": 3,
    "lose": 2,
    "copy": 2,
    "flip": 1,
    "repeat": 2,
    "repeat old": 2,
    "timer": 3,
    "storm": 0.05,
    "wait": 2,
    "gather": 1,
    "fake": 3,
    "forge": 2,
    "next round": 2,
    "new session": 0.2,
    "restart switch": 0.2,
    "shrink": 0.1,
}
LAWLESS: Mapping[str, float] = {"send": 20, "restart switch": 0.2, "repeat": 1, "flip": 1}


@dataclass(frozen=True)
class Flight:
    """A frame on its way to a switch's port or, with port 0, to a host."""

    node: str
    port: int
    frame: bytes

    def __str__(self) -> str:
        return f"{packets.described(self.frame)} to {self.node}"


@dataclass
class JobState:
    """A job's session. rounds: how many rounds each member has ended. running: the hosts of members
    that are in a round. odd: the host of the member that differs from the others. broken: whether a
    worker has found that the workers disagree."""

    setting: JobSetting
    index: int
    members: list[str]
    first_tag: int
    workers: dict[str, WorkerPair]
    rounds: dict[str, int]
    running: set[str]
    odd: str | None
    broken: bool = False


class SwitchWorld:
    """The world of one setting. compiled: a program with setting.LANES and SLOTS."""

    def __init__(self, compiled: CompiledProgram, chosen: Setting) -> None:
        self.told: list[str] | None = None
        self._setting, self._graph = chosen, chosen.topology()
        self._wiring = Wiring(self._graph)
        self._now_ns = 1_000_000_000
        self._bag: list[Flight] = []
        self._history: list[Flight] = []
        self._ends = {host.name: forgery.end_of(host.mac, host.ip, 0) for host in self._graph.hosts}
        self._switches = {name: self._switch(compiled, name) for name in self._wiring.switches}
        self._jobs = [self._job(job, index) for index, job in enumerate(chosen.jobs)]
        self._inputs: dict[tuple[int, str, int, bool], NDArray] = {}
        self._steps: dict[str, Callable[[Random], None]] = {
            "deliver": lambda chance: self._deliver(0),
            "deliver many": self._deliver_many,
            "deliver last": lambda chance: self._deliver(-1),
            "deliver any": lambda chance: self._deliver(chance.randrange(1 << 30)),
            "lose": self._lose,
            "copy": self._copy,
            "flip": self._flip,
            "repeat": lambda chance: self._repeat(chance, self._history[-60:]),
            "repeat old": lambda chance: self._repeat(chance, self._history),
            "timer": self._timer,
            "storm": self._storm,
            "wait": self._wait,
            "gather": self._gather,
            "fake": self._fake,
            "forge": self._forge,
            "send": self._send,
            "next round": self._next_round,
            "new session": lambda chance: self._new_session(chance.choice(self._jobs)),
            "restart switch": self._restart_switch,
            "shrink": self._shrink,
        }

    def begin(self) -> None:
        """Writes the switches' entries and starts the jobs."""
        self._write_entries()
        for job in self._jobs:
            if job.setting.past:
                self._age(job, job.first_tag - job.setting.past, Random(self._setting.seed))
            if not self._setting.lawless:
                self._start(job)

    def _job(self, job: JobSetting, index: int) -> JobState:
        members = [host.name for host in self._graph.hosts]
        odd = members[-1] if job.odd and len(members) > 1 else None
        return JobState(job, index, members, job.first_tag, {}, {}, set(), odd)

    def close(self) -> None:
        """Frees the programs."""
        for each in self._switches.values():
            each.close()

    def do(self, step: Step) -> None:
        """Carries out a step. Raises FaultFound."""
        self._steps[step.kind](Random(step.number))

    def finish(self) -> None:
        """Delivers all frames and lets timers fire, until every round of every job is over. Raises
        FaultFound."""
        for _ in range(FINISH_MAX):
            if self._bag:
                self._deliver(0)
            elif not self._go_on():
                break
        else:
            raise FaultFound("hang", "the rounds do not end")
        for switch in self._switches.values():
            switch.check_counters()
        for job in self._jobs:
            for worker in job.workers.values():
                worker.check_counters()

    def _go_on(self) -> bool:
        """Continues when no packet is on its way: with the next rounds, with a new session, or with
        the timer that is due first. Returns whether there was anything to do."""
        if self._setting.lawless:
            return False
        idle = self._idle()
        for job, host in idle:
            self._begin(job, host)
        if idle:
            return True
        waiting = self._waiting()
        broken = [] if waiting else [job for job in self._jobs if job.broken]
        for job in broken:
            self._new_session(job)
        if broken:
            return True
        if waiting:
            job, host = min(waiting, key=lambda each: each[0].workers[each[1]].deadline_ns)
            self._fire(job, host)
        return bool(waiting)

    def _tell(self, *words: object) -> None:
        if self.told is not None:
            self.told.append(" ".join(map(str, words)))

    # The network.

    def _switch(self, compiled: CompiledProgram, name: str) -> SwitchPair:
        ports = self._wiring.ports[name]
        known = [(h, self._wiring.port_to_host(name, h.name)) for h in self._graph.hosts]
        reached = [(self._ends[host.name], port) for host, port in known if port is not None]
        forwarding = Forwarding(
            {end.mac: port for end, port in reached},
            {end.ip: (end.mac, port) for end, port in reached},
            self._wiring.flooding[name],
            {port: self._ends[node].ip for port, node in ports.items() if node in self._ends},
        )
        below = {port for port, node in ports.items() if node in self._ends}
        return SwitchPair(name, compiled, SwitchModel(LANES, SLOTS, forwarding), below)

    def _put(self, flight: Flight) -> None:
        self._bag.append(flight)
        self._history.append(flight)
        del self._history[:-HISTORY_MAX]

    def _far_end(self, switch: str, port: int) -> tuple[str, int] | None:
        """Returns the node behind a switch's port, and that node's port."""
        node = self._wiring.ports[switch].get(port)
        if node is None:
            return None
        return node, self._wiring.port_to(node, switch) if node in self._switches else 0

    def _arrive(self, flight: Flight) -> None:
        if flight.node in self._switches:
            for port, copy in self._switches[flight.node].process(flight.port, flight.frame):
                end = self._far_end(flight.node, port)
                if end is not None:
                    self._put(Flight(*end, copy))
        else:
            self._hear(flight.node, [flight.frame])

    def _hear(
        self,
        host: str,
        frames: list[bytes],
        extra: Extra | None = None,
    ) -> None:
        """Delivers frames that arrive at a host at the same time. Each job's worker receives its
        own datagrams."""
        for job in self._jobs:
            worker = job.workers.get(host)
            if worker is None or host not in job.running:
                continue
            datagrams = [d for f in frames if (d := packets.taken(f, worker.own)) is not None]
            if extra is not None:
                datagrams += extra(worker)
            if datagrams:
                self._sent(job, host, worker.take(self._now_ns, datagrams))

    def _sent(self, job: JobState, host: str, datagrams: list[bytes] | None) -> None:
        """Puts a worker's packets on their way, and checks its result if its round is over.
        datagrams: None if the worker has given up."""
        worker = job.workers[host]
        if datagrams is None and worker.model.disagreed:
            self._tell(worker.name, "finds that the workers disagree")
            job.running.discard(host)
            job.broken = True
            return
        if datagrams is None:
            self._tell(worker.name, "gives up")
            self._new_session(job)
            return
        node, port = self._wiring.attached[host]
        for datagram in datagrams:
            self._put(Flight(node, port, packets.make(worker.own, AGGREGATOR, datagram)))
        if worker.over and host in job.running:
            job.running.discard(host)
            number = job.rounds[host]
            if self._disagree(job, number):
                raise FaultFound(
                    "shape", f"{worker.name} ends round {number} of disagreeing workers"
                )
            inputs = [self._input(job, each, number) for each in job.members]
            worker.compare(*sums.expected(inputs, LANES))
            job.rounds[host] += 1

    # Jobs.

    def _write_entries(self) -> None:
        """Writes the entries for the remaining members at every switch."""
        jobs = [
            plan.PlacedJob(
                job.setting.number, tuple(job.members), job.setting.first_slot, job.setting.slots
            )
            for job in self._jobs
        ]
        planned = plan.plan(self._graph, jobs)
        for name, switch in self._switches.items():
            roles = {}
            for job in self._jobs:
                branch = planned.trees[job.setting.number].branches.get(name)
                if branch is not None:
                    roles[job.setting.number] = self._role(job, branch)
            switch.write_entries(planned.entries[name], roles)

    def _role(self, job: JobState, branch: Branch) -> JobRole:
        number = job.setting.number
        members = {}
        for bit, (port, node) in enumerate(branch.children):
            own = self._ends.get(node)
            end = AGGREGATOR if own is None else replace(own, port=WORKER_PORT_BASE + number)
            members[port] = Member(1 << bit, end)
        parent = None if branch.parent is None else branch.parent[0]
        if parent is not None:
            members[parent] = Member(0, AGGREGATOR)
        slots = job.setting.first_slot, job.setting.slots
        return JobRole(number, job.index, *slots, members, parent)

    def _age(self, job: JobState, behind: int, chance: Random) -> None:
        """Brings all cells of a job to a tag near `behind`, as earlier rounds would have done."""
        for switch in self._switches.values():
            role = switch.model.roles.get(job.setting.number)
            if role is None:
                continue
            for slot in range(min(role.slots, SLOTS - role.first_slot)):
                for tag in (behind, behind - 1):
                    self._hop(switch, role, slot, tag % 2**32, chance)

    def _hop(self, switch: SwitchPair, role: JobRole, slot: int, goal: int, chance: Random) -> None:
        """Sends contributions of some children whose tags advance to a goal. Each tag advances by
        at most half of the number range."""
        cell = switch.model.cell(role, slot, goal)
        tag = cell.tag if cell.present else (goal - 2) % 2**32
        children = [(p, m) for p, m in role.members.items() if m.bit]
        while tag != goal:
            step = min((goal - tag) % 2**32, HOP + (goal - tag) % 2)
            tag = (tag + step) % 2**32
            kind = chance.choice((packets.INT32, packets.SCALED, packets.OPENING))
            for port, member in chance.sample(children, chance.randint(1, len(children))):
                body = forgery.body(chance, kind, LANES)
                fields = (packets.VERSION, kind, role.number, slot, chance.randrange(256), 0, tag)
                datagram = packets.Message(*fields, body).datagram()
                switch.process(port, packets.make(member.receiver, AGGREGATOR, datagram))

    def _start(self, job: JobState) -> None:
        """Starts a session with new workers. It begins with the first round that not all members
        have ended."""
        first = min(job.rounds.values(), default=0)
        chosen = job.setting
        job.workers, job.running, job.broken = {}, set(), False
        for host in job.members:
            own = replace(self._ends[host], port=WORKER_PORT_BASE + chosen.number)
            name = f"{host}, job {chosen.number}"
            window = chosen.window
            if job.odd == host and chosen.odd == "window":
                window = window - 1 or chosen.slots
            sizes = (LANES, chosen.slots, window, job.first_tag)
            agreed = Job(chosen.number, len(job.members), *sizes)
            timing = Timing(initial_rto_ns=INITIAL_RTO_NS, give_up_ns=chosen.give_up_ms * MS)
            job.workers[host] = WorkerPair(name, own, agreed, timing)
        job.rounds = dict.fromkeys(job.members, first)
        for host in job.members:
            if self._may_begin(job, host):
                self._begin(job, host)

    def _may_begin(self, job: JobState, host: str) -> bool:
        more = job.rounds[host] < len(job.setting.rounds)
        return more and not job.broken and host not in job.running

    def _disagree(self, job: JobState, number: int) -> bool:
        """Returns whether not all members begin a round in the same way."""
        if job.odd not in job.members or len(job.members) == 1:
            return False
        if job.setting.odd == "window":
            return job.setting.window != job.setting.slots or job.setting.window > 1
        return number == len(job.setting.rounds) - 1

    def _begin(self, job: JobState, host: str) -> None:
        number = job.rounds[host]
        self._tell(f"{job.workers[host].name} begins round {number}")
        job.running.add(host)
        values = self._input(job, host, number)
        in_place = (self._setting.seed >> number) & 1 == 1
        self._sent(job, host, job.workers[host].begin(self._now_ns, values, in_place))

    def _input(self, job: JobState, host: str, number: int) -> NDArray:
        key = job.setting.number, host, number, job.odd == host
        known = self._inputs.get(key)
        if known is None:
            elements, floats = self._round(job, host, number)
            chance = Random(f"{self._setting.seed}/{key}")
            known = self._inputs[key] = _tensor(chance, elements, floats)
        return known

    def _round(self, job: JobState, host: str, number: int) -> tuple[int, bool]:
        """Returns the number of elements of a worker's round, and whether they are floats."""
        elements, floats = job.setting.rounds[number]
        if job.odd == host and number == len(job.setting.rounds) - 1:
            if job.setting.odd == "elements":
                return elements + 1, floats
            if job.setting.odd == "dtype":
                return elements, not floats
        return elements, floats

    def _idle(self) -> list[tuple[JobState, str]]:
        return [(j, host) for j in self._jobs for host in j.members if self._may_begin(j, host)]

    def _waiting(self) -> list[tuple[JobState, str]]:
        return [(job, host) for job in self._jobs for host in job.members if host in job.running]

    # Steps.

    def _deliver(self, choice: int) -> None:
        if self._bag:
            flight = self._bag.pop(choice if choice < 0 else choice % len(self._bag))
            self._tell("deliver", flight)
            self._arrive(flight)

    def _deliver_many(self, chance: Random) -> None:
        for _ in range(chance.randint(1, 24)):
            self._now_ns += chance.choice(CROSSING_NS)
            self._deliver(0)

    def _lose(self, chance: Random) -> None:
        for _ in range(chance.choice((1, 1, 2, 8))):
            if self._bag:
                self._tell("lose", self._bag.pop(chance.randrange(len(self._bag))))

    def _copy(self, chance: Random) -> None:
        if self._bag:
            flight = chance.choice(self._bag)
            self._tell("copy", flight)
            self._bag.insert(chance.randrange(len(self._bag) + 1), flight)

    def _flip(self, chance: Random) -> None:
        """Changes one byte of a frame. Then no checksum stays correct, because no sum of 16-bit
        words stays the same."""
        if self._bag:
            place = chance.randrange(len(self._bag))
            flight = self._bag[place]
            frame = bytearray(flight.frame)
            if flight.node in self._switches or frame[40:42] != b"\0\0":
                frame[chance.randrange(len(frame))] ^= chance.randrange(1, 256)
                self._tell("change a byte of", flight)
                self._bag[place] = replace(flight, frame=bytes(frame))

    def _repeat(self, chance: Random, among: list[Flight]) -> None:
        """Lets a frame that was already on its way before arrive once more."""
        if among:
            flight = chance.choice(among)
            self._tell("once more", flight)
            self._arrive(flight)

    def _timer(self, chance: Random) -> None:
        waiting = self._waiting()
        if waiting:
            self._fire(*chance.choice(waiting))

    def _fire(self, job: JobState, host: str) -> None:
        """Advances time to a worker's deadline. All other workers whose deadlines have passed act
        as well."""
        self._now_ns = max(self._now_ns, job.workers[host].deadline_ns)
        self._tell(f"the timer of {job.workers[host].name}")
        for each, other in self._waiting():
            if other in each.running and each.workers[other].deadline_ns <= self._now_ns:
                self._sent(each, other, each.workers[other].poll(self._now_ns))

    def _storm(self, chance: Random) -> None:
        """Loses all packets until the number of attempts has reached its limit."""
        waiting = self._waiting()
        if waiting:
            job, host = chance.choice(waiting)
            for _ in range(STORM + chance.randrange(8)):
                del self._bag[32:]
                if host in job.running:
                    self._fire(job, host)

    def _wait(self, chance: Random) -> None:
        self._now_ns += chance.choice(WAITS_NS)
        for job, host in self._waiting():
            if host in job.running and job.workers[host].deadline_ns <= self._now_ns:
                self._sent(job, host, job.workers[host].poll(self._now_ns))

    def _gather(self, chance: Random) -> None:
        """Delivers everything that is on its way to one host at once."""
        hosts = sorted({flight.node for flight in self._bag} & self._ends.keys())
        if hosts:
            host = chance.choice(hosts)
            ours = [flight for flight in self._bag if flight.node == host]
            self._bag = [flight for flight in self._bag if flight.node != host]
            if chance.random() < 0.3:
                chance.shuffle(ours)
            self._tell(f"{len(ours)} frames at once to {host}")
            self._hear(host, [flight.frame for flight in ours])

    def _fake(self, chance: Random) -> None:
        """Lets datagrams that are not awaited results reach a worker, sometimes behind an awaited
        one."""
        hosts = sorted({host for _, host in self._waiting()})
        if not hosts:
            return
        host = chance.choice(hosts)
        ours = [flight for flight in self._bag if flight.node == host]
        genuine = chance.sample(ours, min(len(ours), chance.randint(0, 2)))
        for flight in genuine:
            self._bag.remove(flight)

        def extra(worker: WorkerPair) -> list[bytes]:
            """Returns extra datagrams, of a kind that the protocol makes workers ignore."""
            made = [_faked(chance, worker, self._setting) for _ in range(chance.randint(1, 3))]
            return [each for each in made if worker.model.judge(each) != "awaited"]

        self._tell(f"{len(genuine)} frames and forged datagrams to {host}")
        self._hear(host, [flight.frame for flight in genuine], extra)

    def _forge(self, chance: Random) -> None:
        """Sends a frame that must not change anything, at any port of any switch."""
        name = chance.choice(list(self._switches))
        switch = self._switches[name]
        roles = list(switch.model.roles.values())
        if not roles:
            return
        near = [flight for flight in self._history[-40:] if flight.node == name]
        if near and chance.random() < 0.5:
            port, frame = chance.randrange(forgery.PORTS_MAX), chance.choice(near).frame
            if chance.random() < 0.5:
                frame = forgery.corrupted(chance, frame, LANES)
        else:
            port, frame = forgery.contribution(chance, switch.model, roles, LANES)
        decision = switch.model.decide(port, frame)
        if decision in HARMLESS or decision is Decision.FORWARDED:
            self._tell("forge", Flight(name, port, frame), "port", port)
            self._arrive(Flight(name, port, frame))

    def _send(self, chance: Random) -> None:
        """Sends a packet of a member that does not follow the protocol."""
        for _ in range(chance.randint(1, 6)):
            name = chance.choice(list(self._switches))
            switch = self._switches[name]
            roles = list(switch.model.roles.values())
            if roles:
                port, frame = forgery.contribution(chance, switch.model, roles, LANES)
                self._tell("send", Flight(name, port, frame), "port", port)
                self._history.append(Flight(name, port, frame))
                switch.process(port, frame)

    def _next_round(self, chance: Random) -> None:
        idle = self._idle()
        if idle:
            self._begin(*chance.choice(idle))

    def _new_session(self, job: JobState) -> None:
        """Lets all workers of a job begin again, with tags beyond all earlier ones."""
        job.first_tag = (((job.first_tag + 1000) // SESSION + 1) * SESSION + 1) % 2**32
        self._tell(f"job {job.setting.number}: a new session, tag {job.first_tag}")
        if job.broken:
            job.odd = None
        for switch in self._switches.values():
            role = switch.model.roles.get(job.setting.number)
            if role is not None and any(
                not 0 < (job.first_tag - cell.tag) % 2**32 < 2**31
                for slot in range(role.slots)
                for tag in (0, 1)
                if (cell := switch.model.cell(role, slot, tag)).present
            ):
                self._age(job, job.first_tag - 1, Random(job.first_tag))
        self._start(job)

    def _restart_switch(self, chance: Random) -> None:
        """Restarts a switch, which loses its state. The jobs that it served begin a new session."""
        name = chance.choice(list(self._switches))
        switch = self._switches[name]
        self._tell(f"{name} restarts")
        switch.restart()
        if not self._setting.lawless:
            for job in self._jobs:
                if job.setting.number in switch.model.roles:
                    self._new_session(job)

    def _shrink(self, chance: Random) -> None:
        """Removes a worker of a job, which continues without it."""
        job = chance.choice(self._jobs)
        if len(job.members) > 1:
            lost = chance.choice(job.members)
            self._tell(f"job {job.setting.number} loses {lost}")
            job.members.remove(lost)
            del job.rounds[lost]
            self._write_entries()
            self._new_session(job)


def _tensor(chance: Random, elements: int, floats: bool) -> NDArray:
    draw = np.random.default_rng(chance.getrandbits(32))
    if not floats:
        return draw.integers(-(2**31), 2**31, elements).astype(np.int32)
    style = chance.randrange(6)
    scale = np.exp2(draw.integers(-30, 30, -(-elements // LANES)).astype(np.float64))
    values = draw.standard_normal(elements) * np.repeat(scale, LANES)[:elements]
    if style == 0:
        values = np.array([chance.choice(FLOATS) for _ in range(elements)])
    elif style == 1:
        values[: elements // 2] = 0
    array = values.astype(np.float32)
    if elements and chance.random() < 0.05:
        array[chance.randrange(elements)] = chance.choice((np.inf, -np.inf, np.nan))
    return array


def _faked(chance: Random, worker: WorkerPair, chosen: Setting) -> bytes:
    """Returns a datagram that is similar to the result of a slot. Usually some field or its length
    is wrong."""
    slot = chance.randrange(len(worker.model.slots) + 1)
    like = worker.model.slots[min(slot, len(worker.model.slots) - 1)]
    kind = like.kind if chance.random() < 0.7 else chance.choice((0, 1, 2, 3, 127))
    job = int.from_bytes(like.datagram[2:4], "big") if like.datagram else 0
    if chance.random() < 0.1:
        job = chance.choice((0, 1, 2, 257))
    tag = (like.tag + chance.choice((-(2**31), -2, -1, 0, 0, 1, 1, 2, 2**31 - 1))) % 2**32
    version = 1 if chance.random() < 0.9 else chance.choice((0, 2, 255))
    result = RESULT if chance.random() < 0.9 else 0
    fields = (version, kind | result, job, slot, chance.randrange(256), chance.randrange(3), tag)
    datagram = HEADER.pack(*fields) + forgery.body(chance, kind, LANES)
    cut = chance.random()
    if cut < 0.1:
        return datagram + chance.randbytes(4)
    return datagram[: chance.randrange(12, len(datagram) + 1)] if cut < 0.2 else datagram


class Walks:
    """The settings and worlds of a search."""

    def __init__(self, compiled: CompiledProgram) -> None:
        self._compiled = compiled

    def setting(self, chance: Random) -> Setting:
        return setting.draw(chance)

    def kinds(self, chosen: Setting) -> Mapping[str, float]:
        return LAWLESS if chosen.lawless else LAWFUL

    def world(self, chosen: Setting) -> SwitchWorld:
        return SwitchWorld(self._compiled, chosen)

    def simpler(self, chosen: Setting) -> Iterator[Setting]:
        return setting.simpler(chosen)

    def from_values(self, values: Mapping[str, Any]) -> Setting:
        return setting.from_values(values)

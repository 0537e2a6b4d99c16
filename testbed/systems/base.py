"""Defines what the testbed asks of a system. A system is one way of aggregating; it is described by
declarations (class attributes) and answers (methods).

A system is an object of a subclass of System and has no state: every answer follows from a resolved
scenario. What changes during a run is in the system's Sessions. The dataclasses in this module are
passive values.

The code that reads and checks scenarios asks systems about their keys, and therefore imports this
module. To avoid a cycle, this module imports of `scenario` only the values (schema, jobs, trust).
The modules of a system may import all of `scenario`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy.typing as npt

from agglab.hosts.wire import VALUE_BYTES
from agglab.hosts.workloads import Dense
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.schema.faults import Fault
from agglab.testbed.schema.system_names import endpoint_beside
from agglab.testbed.schema.target_names import P4_TARGETS
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries, TableEntry
from agglab.testbed.systems.received_arrays import Received
from agglab.topologies import Topology

if TYPE_CHECKING:
    from agglab.testbed.schema.jobs import Finding, Job
    from agglab.testbed.schema.scenario import Scenario
    from agglab.testbed.schema.trust import Trust

Array = npt.NDArray[Any]
Share = Any
"""A job's part of a resource that jobs share, such as the slots of switches. Only the system knows
what it contains. Shares can be compared with ==."""
Waiting = Sequence[int]
"""One thing that an agent waits for, as its endpoint's `waiting` returns it. The first item is a
chunk."""
Combine = Callable[[Sequence[Array]], Array]
"""A function that takes all workers' values and returns what replaces their sum, element by
element."""
Cells = Mapping[int, tuple[int, int]]
"""The cells of a switch's counter: (packets, bytes) by index."""


ALL_REDUCES = ("allreduce", "sparse_allreduce", "embedding_allreduce", "layers", "sgd")
"""The values of `workload.kind` whose result is the sum of one tensor of each worker. `layers` and
`sgd` sum this tensor in parts."""


# What a system declares.


@dataclass(frozen=True)
class Abilities:
    """What a scenario may ask of a system.

    clocks: the values of `backend` that it supports. targets: the values of `switch.target` that it
    supports. has_servers: whether it has agents besides the workers. In that case, metrics.json
    also has their counts. has_controller: whether tables change during a run. keys: those of
    SHARED_KEYS that it reads. A scenario that gives one of the other shared keys is refused.
    pieces: the types of dense tensors that its workers need not hold whole in virtual time.
    """

    workloads: tuple[str, ...] = ALL_REDUCES
    dtypes: tuple[str, ...] = ("float32", "int32")
    clocks: tuple[str, ...] = ("mininet", "virtual")
    targets: tuple[str, ...] = P4_TARGETS
    has_servers: bool = False
    has_controller: bool = False
    keys: frozenset[str] = frozenset()
    pieces: tuple[str, ...] = ()


SHARED_KEYS = (
    "switch.lanes",
    "switch.slots",
    "switch.partition",
    "workload.worker",
    "workload.window",
    "workload.first_timeout",
    "jobs[].slots",
    "jobs[].first_slot",
    "jobs[].share",
)
"""The keys that every scenario may have and that some systems do not read."""


@dataclass(frozen=True)
class Counter:
    """One counter of a switch's P4 program, in packets.

    name: the counter's name in the program. tally: the total to which it is added, over all
    switches: `malformed` (`totals.malformed`), `forged` (`totals.forged`) or `stale` (packets that
    only a delay explains). of_jobs: whether it counts each job's packets separately.
    """

    name: str
    meaning: str
    tally: str = ""
    of_jobs: bool = True


@dataclass(frozen=True)
class HostCounter:
    """A counter of an agent, in addition to those that all agents have (hosts/endpoint.py).
    explains_repeats: whether it counts packets that the system sends again without any trouble in
    the network."""

    unit: str
    meaning: str
    explains_repeats: bool = False


@dataclass(frozen=True)
class AttackKind:
    """A kind of attack. counted: the key in `System.counters` of the counter that the first switch
    increments for each of its frames."""

    counted: str


# What it is asked about.


@dataclass(frozen=True)
class ActiveJob:
    """A job at some moment of a run. index: its position in the run's list of jobs, which is also
    its index in counters. members: the ranks of the workers that take part. share: the share that
    Sessions gave it."""

    job: Job
    index: int
    members: tuple[int, ...]
    share: Share = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the members, by rank."""
        return tuple(self.job.hosts[rank] for rank in self.members)


@dataclass(frozen=True)
class P4Program:
    """A P4 program. path: its source. parameters: its compile-time parameters (-D)."""

    path: Path
    parameters: Mapping[str, int]


@dataclass(frozen=True)
class ResolvedScenario:
    """A scenario in which every choice is made. Only scenario.resolved.resolve creates it.

    scenario: every key with its value, as the results keep it. options: the system's own keys, an
    object of its class `options`; None if it has none. programs: the program of every switch.
    graph: the topology with every direction's rate, delay, queue and constant impairments. faults:
    one for each target. lanes: the number of 32-bit values in a packet. window: the number of
    packets that a worker keeps in flight, unless its job says otherwise. Both are 0 if the system
    has no such number.
    """

    scenario: Scenario
    system: System
    options: Any
    programs: Mapping[str, P4Program]
    graph: Topology
    jobs: tuple[Job, ...]
    faults: tuple[Fault, ...]
    lanes: int
    window: int

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def seed(self) -> int:
        return self.scenario.seed

    @property
    def virtual(self) -> bool:
        """Whether the scenario runs in virtual time. In that case, its switch target is not
        used."""
        return self.scenario.backend == "virtual"

    @property
    def target(self) -> str:
        return self.scenario.switch.target

    @property
    def sample_ns(self) -> int:
        """The interval between samples of metrics over time; 0 if no samples are taken."""
        series = self.scenario.series
        assert series.every_s is not None, "resolve replaces auto"
        return round(series.every_s * 1e9) if series.record else 0

    @property
    def slots(self) -> int:
        """The number of slots of each switch, for all jobs together."""
        return self.scenario.switch.slots

    def whole(self, job: Job, share: Share = None) -> ActiveJob:
        """Returns the job as an ActiveJob of which all workers are members."""
        return ActiveJob(job, self.jobs.index(job), tuple(range(len(job.hosts))), share)

    def chunks(self, job: Job) -> int:
        """Returns how many chunks a worker of the job has in a round."""
        return self.system.round_chunks(self.scenario, job)


# What it answers.


@dataclass(frozen=True)
class JobChoices:
    """The values that a system chooses for keys of a job, named as in Job. A value is 0 if the
    system has no such number."""

    window: int = 0
    first_slot: int = 0
    slots: int = 0


@dataclass(frozen=True)
class Choices:
    """The values that a system chooses for keys of a scenario. A value is 0 if the system has no
    such number. window: the value of `workload.window`. jobs: the choices for each job, in the
    scenario's order."""

    jobs: Sequence[JobChoices]
    lanes: int = 0
    window: int = 0


@dataclass(frozen=True)
class Source:
    """A P4 program, given by its name in p4/ or its path, and its compile-time parameters (-D)."""

    name: str
    parameters: Mapping[str, int] = field(default_factory=dict)


EVERYWHERE = "switch"
"""The role of every switch in a system whose switches run one program."""


def everywhere(source: Source) -> Mapping[str, Source]:
    """Returns what `System.sources` returns for a system whose switches all run this program."""
    return {EVERYWHERE: source}


@dataclass(frozen=True)
class Agent:
    """One program on a host.

    role: one of hosts.part.ROLES. rank: a worker's rank in the job; for other agents, a unique
    number above all ranks of workers. configuration: the configuration that hosts.agent reads,
    except `control` and `sums_dir`. session: settings of a new session that are only for this
    agent, such as its current peers. listens: whether a worker also answers other agents between
    rounds. The counts of these answers are requested when the job is over, as for servers. spare:
    whether the job continues if this agent has died.
    """

    role: str
    host: str
    rank: int
    configuration: Mapping[str, Any]
    session: Mapping[str, Any] = field(default_factory=dict)
    listens: bool = False
    spare: bool = False


@dataclass(frozen=True)
class TrainingBounds:
    """Bounds that a system guarantees for asynchronous training; None where it guarantees nothing.
    delay: the largest age, in versions, of an update when it is committed. divergence: the largest
    Euclidean distance of a replica from the model, in the units of the model."""

    delay: int | None = None
    divergence: int | None = None


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of an all-reduce's time, in seconds.

    payload_s: for the bytes of the tensor. link_s: for all bytes, with headers. lossy_s: for the
    expected time with the links' constant independent losses. window_share: the share of the
    busiest link's rate that is reached with one window in each round trip through empty queues; 1
    if the window is not a limit.
    """

    payload_s: float
    link_s: float
    lossy_s: float
    window_share: float


@dataclass(frozen=True)
class ByteRange:
    """The least and the most bytes that something may add up to, such as the retransmissions in one
    direction of a link."""

    least: int
    most: int


@dataclass(frozen=True)
class Truth:
    """The correct result for a block of elements, computed from nothing but the inputs.

    values: what callers must receive. allowed: how far from `values` each received value may be
    (float64); None if every bit must be right. sums: the integers that the switches must return, if
    an endpoint returns these besides its result. They must be right bit for bit.
    """

    values: Array
    allowed: Array | None = None
    sums: npt.NDArray[Any] | None = None


TruthOf = Callable[[int, Sequence[Array]], Truth]
"""A function that takes the first element of a block, and that block of each member's tensor. It
returns what the block must become."""


class Unpredictable(Exception):
    """Raised if the bytes that a job put on links cannot be predicted. The message says why."""


class Unlike(Exception):
    """Raised if what a worker received with its result, such as who is in each sum, is missing, is
    impossible, or differs from what the first worker received. rank: the worker's position."""

    def __init__(self, rank: int, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.rank, self.expected, self.got = rank, expected, got


@dataclass(frozen=True)
class Results:
    """What the members received. inputs: a function that takes (start, count) and returns that part
    of each member's tensor."""

    received: Sequence[Received]
    inputs: Callable[[int, int], Sequence[Array]]


@dataclass
class MissingChunks:
    """The chunks for which one host or switch is to blame, each in one of six ways.

    never_sent: it never sent its values. never_heard: it never received the sum.
    never_delivered: it sent its values, which never arrived. not_taken: a switch received a
    contribution and does not hold it. not_answered: a switch holds the sum, and who asks for it
    receives no valid answer. not_sent_on: a switch received packets that it should have forwarded.

    slot: what the switch holds of the first of these chunks, in words. behind: how many other
    chunks workers wait for that can only come after chunks for which anybody is to blame.
    """

    never_sent: set[int] = field(default_factory=set)
    never_heard: set[int] = field(default_factory=set)
    never_delivered: set[int] = field(default_factory=set)
    not_taken: set[int] = field(default_factory=set)
    not_answered: set[int] = field(default_factory=set)
    not_sent_on: set[int] = field(default_factory=set)
    slot: str = ""
    behind: int = 0

    @property
    def count(self) -> int:
        return sum(len(chunks) for chunks, _ in self._said())

    @property
    def is_proven(self) -> bool:
        """Whether the counts of links exclude that packets were lost on their way instead."""
        return bool(self.not_taken or self.not_answered or self.not_sent_on)

    @property
    def chunks(self) -> set[int]:
        return set().union(*(chunks for chunks, _ in self._said()))

    def _said(self) -> tuple[tuple[set[int], str], ...]:
        return (
            (self.never_sent, "never sent"),
            (self.never_delivered, "never delivered"),
            (self.not_taken, "received and does not hold"),
            (self.not_answered, "holds the sum and gives no valid answer for"),
            (self.not_sent_on, "did not send on packets of"),
            (self.never_heard, "never heard the sum of"),
        )

    @property
    def _these(self) -> str:
        return "it" if self.count == 1 else "them"

    def __str__(self) -> str:
        return " and ".join(f"{verb} {spans(chunks)}" for chunks, verb in self._said() if chunks)

    def of(self, job: str) -> str:
        """Returns all of this about the chunks of a job, in words."""
        waits = "1 chunk waits" if self.behind == 1 else f"{self.behind} chunks wait"
        more = [self.slot, f"{waits} behind {self._these}" if self.behind else ""]
        return "; ".join([f"{self} of {job}", *filter(None, more)])


class Registers(Protocol):
    """What a slot meter can read from a running backend."""

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None: ...


class Readings(Registers, Protocol):
    """What a controller can read from a running backend. A method returns None for a switch that
    cannot be read now."""

    def counters(self, switch: str, counter: str) -> Cells | None: ...


class Evidence(Readings, Protocol):
    """What a diagnosis can read from a running backend."""

    def statistics(self) -> NetworkStatistics: ...


SlotMeter = Callable[[Registers, str], "int | None"]
"""A function that takes the means to read switches, and the name of a switch. It returns the number
of slots in use; None for a switch without slots."""


Changes = Mapping[str, Sequence[TableEntry]]
"""All entries that a controller wants at each switch, in addition to those of `System.tables`. A
switch that is not named keeps its entries."""


class Controller(Protocol):
    """Changes tables while a job runs.

    A controller uses neither clocks nor networks. Its methods are given the time (ns since the
    scenario's times began to count) and access to the switches. They return the new entries of
    switches if these change. Only differences from the old entries are sent to a switch.
    """

    @property
    def deadline_ns(self) -> int:
        """The time at which `step` must be called; the largest int64 for never."""

    @property
    def patience_ns(self) -> int:
        """How long after a deadline the changes that `step` returns may take to be in place. If
        they take longer, the deadline counts as missed."""

    def begin_round(
        self, now_ns: int, number: int, job: ActiveJob, switches: Readings
    ) -> Changes | None:
        """Returns the changes before an attempt at a round begins. When this method is called, no
        packet of the job is in flight, and none will be before the changes are in place."""

    def step(self, now_ns: int, switches: Readings) -> Changes | None:
        """Returns the changes at a deadline, and sets the next deadline. A round may be in
        progress."""


class NoSession(Exception):
    """Raised if no new session can begin. The message is one line that says why."""


class Sessions(Protocol):
    """What the jobs of one run share, such as slots, and the sessions of each job. A job's `share`
    is the value that `take` returned. The tables of switches and the keys of a session depend on
    it."""

    def join(self, job: Job) -> None:
        """Lets the job compete for shares from now on."""

    def leave(self, job: Job) -> None: ...

    def reserved(self, job: Job) -> Share | None:
        """Returns what switches reserve for the job before it joins and after it has left; None for
        nothing."""

    def held(self, job: Job) -> Share | None: ...

    def take(self, job: Job) -> Share | None:
        """Returns as much of the job's share as is free; None if the job has to wait. It is called
        between two rounds."""

    def changed(self, job: Job) -> Mapping[str, Any]:
        """Returns an event for the log that reports the job's new share: the key `event`, and
        others."""

    def begin(self, job: Job) -> Mapping[str, Any]:
        """Returns the keys of agents' configuration for a new session. During this session, no
        packet of an older session can be mistaken for a current one. Raises NoSession."""


class System(ABC):
    """One way of aggregating. Its methods give its answers, and its class attributes are its
    declarations."""

    name: str
    summary: str
    """What the system is, in one line."""
    is_default: bool = False
    """Whether a scenario that names no system runs this one. It is true for exactly one of the
    systems that come with Agglab."""
    abilities: Abilities = Abilities()
    options: type | None = None
    """A frozen dataclass of the system's own keys, made by `scenario.key.key`. These keys are in
    the section of the scenario that has the system's name."""
    counters: Mapping[str, Counter]
    """The counters of the P4 program, by their names in metrics.json."""
    optional_counters: frozenset[str] = frozenset()  # those that the program may lack
    host_counters: Mapping[str, HostCounter] = {}
    attack_kinds: Mapping[str, AttackKind] = {}
    """The kinds of attack, in the order in which they are sent; empty if the system has nothing to
    attack."""
    sends_datagrams: bool = True
    """Whether all packets of its agents are sent by hosts/driver.py."""
    messages: Messages | None = None
    """What the agents' packets say; None if that is not known."""
    choose_when: str = ""
    """When to choose this system, in one sentence for systems/README.md."""
    variants: Mapping[str, Sequence[str]] = {"": ()}
    """The system's rows in the tables of all systems. Each has a word or two that distinguish it,
    and the keys that it sets, in the form of `--set`. Besides the hosts of the four workers, the
    hosts p1 to p4 are available for servers."""

    @property
    def endpoints(self) -> str:
        """The module of the agents' endpoints (systems/__init__.py), as a name or a path."""
        return endpoint_beside(type(self))

    # A scenario. Checks are asked while there may be mistakes, of which `trust` knows.

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        """Yields the problems of the system's keys in combination, such as values that contradict
        each other."""
        return iter(())

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        """Returns the value of `NAME.servers`: names or patterns of hosts, each of which must match
        a host."""
        return ()

    def reserved_hosts(self, scenario: Scenario, graph: Topology) -> Sequence[str]:
        """Returns the hosts that never have a worker, whatever the patterns of jobs say: the hosts
        that `server_patterns` match, in the order of the patterns and then of the topology."""
        return _matching(self.server_patterns(scenario), graph)

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Returns the hosts that have a server of a job. workers: the hosts of that job's
        workers."""
        return ()

    @abstractmethod
    def refused(self, graph: Topology, job: ActiveJob) -> str:
        """Returns why a job cannot run on this network, in one line; empty if it can."""

    @abstractmethod
    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        """Returns the values of the keys that this system decides, with `auto` replaced.
        slowest_bps: the slowest link's rate. delays_s: the longest round trip of delays alone."""

    @abstractmethod
    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns how many chunks a worker has in a round of one all-reduce. The scenario need not
        be resolved."""

    def round_chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns how many chunks a worker has in a round, which may have several all-reduces."""
        return sum(self.chunks(scenario, each) for each in job.by_all_reduce())

    @abstractmethod
    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        """Returns the bits on the wire of the frame that carries one chunk."""

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """Returns how much memory switches and servers need, in addition to the agents' tensors."""
        return 0

    def lacks(self, resolved: ResolvedScenario) -> Iterator[tuple[str, str]]:
        """Yields what this machine lacks beyond the requirements of every run: what it is, and how
        to get it, each in one line."""
        return iter(())

    # Network and agents.

    @abstractmethod
    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        """Returns the P4 programs by the role of the switches that run them. A system with a single
        program can return `everywhere(source)`. The scenario need not be resolved."""

    def role(self, graph: Topology, switch: str) -> str:
        """Returns the role of a switch, which determines the program that it runs. The role depends
        only on the switch's place in the network."""
        return EVERYWHERE

    @abstractmethod
    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        """Returns the entries of every switch while these jobs run. Raises ValueError with one line
        if they do not fit."""

    def controller(self, resolved: ResolvedScenario, job: ActiveJob) -> Controller | None:
        """Returns a new controller that changes tables while a job runs; None if the job needs
        none. It is called once for each job of a run, and only if `abilities` says that the system
        has controllers."""
        return None

    @abstractmethod
    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        """Returns the agents of a job: the members by rank, then the servers."""

    @abstractmethod
    def sessions(self, resolved: ResolvedScenario) -> Sessions: ...

    # What should happen.

    @abstractmethod
    def round_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, number: int
    ) -> Mapping[str, int]:
        """Returns the bytes that this round sends without loss in each direction (`h1->s1`), and
        between agents of one host (`h1->h1`, which crosses no link). Directions without traffic may
        be left out."""

    @abstractmethod
    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds: ...

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        """Returns the least and the most bytes that the job's agents on a host sent beyond the
        prediction. counts: their counts of the whole run (hosts/endpoint.py), which must explain
        these bytes. By default these are frames that were sent again, where the last frame of a
        chunk may be shorter."""
        return ByteRange(0, counts["retransmitted"] * self.chunk_bits(resolved) // 8)

    def unpredictable(self, resolved: ResolvedScenario) -> str:
        """Returns why the bytes on the links cannot be predicted; empty if they can."""
        return ""

    @abstractmethod
    def retransmitted_bytes(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, ByteRange]:
        """Returns the retransmitted bytes by direction. more: for each host, the bytes that its
        agents of the job sent beyond the prediction. counters: the cells of each switch's counters,
        by the counter's key."""

    def returns_sums(self, dtype: str) -> bool:
        """Returns whether endpoints return the integer sums of the switches in addition to the
        result."""
        return False

    def block(self, resolved: ResolvedScenario) -> int:
        """Returns the number of elements in a block. Truths are computed for blocks that begin at
        multiples of this number."""
        return 1

    @abstractmethod
    def truth(self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None) -> TruthOf:
        """Returns what results must be; several threads may call the result at the same time.
        combine: the user's own function, if the switch does not add; else None."""

    def truth_of_received(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None, results: Results
    ) -> TruthOf:
        """Returns the truth for these results, which may say who is in a sum. Raises Unlike."""
        return self.truth(resolved, job, combine)

    def depends_on_time(self, scenario: Scenario) -> bool:
        """Returns whether the right sums depend on when packets arrive."""
        return False

    def training_bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> TrainingBounds:
        """Returns what the system promises about asynchronous training. It is only called if the
        system supports that."""
        return TrainingBounds()

    # What switches did.

    def arrivals(self) -> tuple[str, ...]:
        """Returns the keys of counters, exactly one of which counts each frame that a switch
        receives."""
        return ()

    def passes_within(self) -> tuple[str, ...]:
        """Returns the keys of counters of packets that a switch split in two and recirculated. For
        each such packet, the counters of `arrivals` count one packet more than the switch received.
        """
        return ()

    def expected_frames(
        self, resolved: ResolvedScenario, job: ActiveJob, switch: str, counters: Mapping[str, Cells]
    ) -> int:
        """Returns the number of frames that a switch should have sent for a job, by its own
        counters; 0 if there are no `arrivals`."""
        return 0

    def too_early(
        self, resolved: ResolvedScenario, job: ActiveJob, cells: Mapping[str, Cells], ran_s: float
    ) -> str:
        """Returns what a switch did too early for a job, by the switch's own counters; empty if
        nothing. ran_s: how long the job ran."""
        return ""

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        """Returns a function that counts the slots of a switch's aggregation memory that hold
        incomplete sums; None if they cannot be counted. In virtual time the function is called
        often."""
        return None

    def switch_share(self, servers: Sequence[Mapping[str, int]]) -> float | None:
        """Returns the share of a job's chunks whose sums switches completed, by the counts of the
        job's servers; None if the system does not know."""
        return None

    # When something is wrong.

    def diagnose(
        self,
        source: Evidence,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        """Returns what each host or switch owes when a round does not end. The one that owes most
        comes first. waiting: what the workers on each host wait for. unserved: what the servers on
        each host wait for."""
        return {}

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        """Yields (kind, frame) without end. Equal keys give equal frames. host: the attacker, whose
        victims are the jobs in which it does not take part. A system without `attack_kinds` yields
        nothing."""
        return iter(())


@runtime_checkable
class Deciding(Protocol):
    """A system whose agents decide in the run who sends how much."""

    def decided_bytes(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        histories: Sequence[Any],
        counts: Mapping[str, int],
    ) -> Mapping[str, int]:
        """Returns the bytes, in the form of `System.round_bytes`, that follow from the decisions in
        a run. histories: what was decided in each round, according to the workload
        (Verdict.history); None for a wrong round. counts: those of all servers. Raises
        Unpredictable."""


@runtime_checkable
class Owing(Protocol):
    """A system in which results are right even if switches make no sums, and which can say how many
    sums they owed. Its programs count those that they made (`complete` in System.counters)."""

    def sums_owed(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        histories: Sequence[Any],
        counts: Mapping[str, int],
    ) -> int:
        """Returns how many sums all switches together owed in the job's rounds; 0 if it is not
        known. histories, counts: as for Deciding.decided_bytes."""


@runtime_checkable
class Stepwise(Protocol):
    """A system in which more than two round trips of a round follow one another. In other systems
    one agrees on the round, and one brings the results."""

    def round_trips(self, job: Job) -> int: ...


@runtime_checkable
class WithUnusedKeys(Protocol):
    """A system some of whose own keys may be without effect together with others."""

    def unused_keys(self, scenario: Scenario) -> Iterator[tuple[str, str]]:
        """Yields the path of each key without effect, and why it has none."""


@runtime_checkable
class Gaining(Protocol):
    """A system that can say what limits the gain for which one chooses it."""

    def gain_limits(self, resolved: ResolvedScenario, job: ActiveJob) -> Iterator[str]:
        """Yields sentences about the job's inputs, which the summary and the report of a run
        show."""


@runtime_checkable
class ReadingSlots(Protocol):
    """A system whose testbed part reads registers to say what slots hold."""

    def register_sizes(self, scenario: Scenario) -> Mapping[str, int]:
        """Returns how many cells each register must have that is read. A program may lack these
        registers. The scenario need not be resolved."""


def _matching(patterns: Sequence[str], graph: Topology) -> tuple[str, ...]:
    """Returns the hosts that the patterns match."""
    found = (host.name for p in patterns for host in graph.hosts if fnmatchcase(host.name, p))
    return tuple(dict.fromkeys(found))


RANGES_MAX = 8


def spans(chunks: Iterable[int]) -> str:
    """Returns a text such as `chunk 7` or `chunks 3, 8-12`."""
    runs: list[list[int]] = []
    for chunk in sorted(chunks):
        if runs and chunk == runs[-1][1] + 1:
            runs[-1][1] = chunk
        else:
            runs.append([chunk, chunk])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:RANGES_MAX]]
    more = f" and {len(runs) - RANGES_MAX} more ranges" if len(runs) > RANGES_MAX else ""
    single = len(runs) == 1 and runs[0][0] == runs[0][1]
    return f"chunk{'' if single else 's'} {', '.join(shown)}{more}"


def in_pieces(system: System, scenario: Scenario, job: Job) -> bool:
    """Returns whether workers of this job hold no whole tensors, but make their inputs and hand
    over their results chunk by chunk (agglab.hosts.pieces). On real links, inputs have to be ready
    before a round begins."""
    plain = isinstance(job.work, Dense) and job.dtype in system.abilities.pieces
    return plain and scenario.backend == "virtual"


def tensor_bytes(system: System, scenario: Scenario, job: Job) -> int:
    """Returns how much memory a worker needs for a tensor, or for the chunks of it that are under
    way."""
    whole = job.elements * VALUE_BYTES
    if not in_pieces(system, scenario, job):
        return whole
    return min(whole, whole * scenario.switch.slots // max(1, system.chunks(scenario, job)))

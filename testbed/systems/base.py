"""The questions that the testbed asks a system, which is a way of aggregating: its declarations and
answers.

A system is an object of a subclass of System and has no state: every answer follows from a resolved
scenario. What it knows during a run is in its Sessions. The values here are passive. What reads and
checks scenarios asks systems about their keys and imports this module, which knows of scenarios the
values alone (schema, jobs, trust); the modules of a system may import `scenario`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from agglab.testbed.faults import Fault
from agglab.testbed.plan import Entries, TableEntry
from agglab.testbed.target_names import P4_TARGETS
from agglab.topologies import Topology

if TYPE_CHECKING:
    from agglab.testbed.scenario.jobs import Finding, Job
    from agglab.testbed.scenario.schema import Scenario
    from agglab.testbed.scenario.trust import Trust

Array = npt.NDArray[Any]
Share = Any
"""A job's part of a resource that jobs share, such as the slots of switches. Only its system looks
inside. Shares can be compared with ==."""
Waiting = Sequence[int]
"""One thing that an agent waits for, as its endpoint's `waiting` returns it; its first item is a
chunk."""
Combine = Callable[[Sequence[Array]], Array]
"""The function of all workers' values that takes the place of their sum, element by element."""
Cells = Mapping[int, tuple[int, int]]
"""A switch's counter: index -> (packets, bytes)."""


ALL_REDUCES = ("allreduce", "sparse_allreduce", "embedding_allreduce", "layers", "sgd")
"""Values of `workload.kind` whose result is the sum of one tensor of each worker, which `layers`
and `sgd` sum in parts."""


# What a system declares.


@dataclass(frozen=True)
class Abilities:
    """What a scenario may ask of a system.

    clocks: supported values of `backend`; targets: of `switch.target`. has_servers: there are
    agents besides the workers, whose counts are also in metrics.json. has_controller: tables change
    during a run. keys: those of SHARED_KEYS that it reads; a scenario that gives another one is
    refused.
    """

    workloads: tuple[str, ...] = ALL_REDUCES
    dtypes: tuple[str, ...] = ("float32", "int32")
    clocks: tuple[str, ...] = ("mininet", "virtual")
    targets: tuple[str, ...] = P4_TARGETS
    has_servers: bool = False
    has_controller: bool = False
    keys: frozenset[str] = frozenset()


SHARED_KEYS = (
    "switch.lanes",
    "switch.slots",
    "switch.partition",
    "workload.worker",
    "workload.window",
    "jobs[].slots",
    "jobs[].first_slot",
    "jobs[].share",
)
"""Keys that every scenario may have and that some systems do not read."""


@dataclass(frozen=True)
class Counter:
    """One counter of a switch's P4 program, in packets.

    name: the program's own. tally: the sum over all switches to which it is added: `malformed`
    (`totals.malformed`), `forged` (`totals.forged`), `stale` (packets that only a delay explains).
    of_jobs: whether it counts each job's packets separately.
    """

    name: str
    meaning: str
    tally: str = ""
    of_jobs: bool = True


@dataclass(frozen=True)
class HostCounter:
    """A counter of an agent besides those that all agents have (hosts/endpoint.py)."""

    unit: str
    meaning: str


@dataclass(frozen=True)
class AttackKind:
    """A kind of attack. counted: the counter (its key in `System.counters`) in which the first
    switch counts it."""

    counted: str


# What it is asked about.


@dataclass(frozen=True)
class ActiveJob:
    """The current state of a job. index: its position in the run's list of jobs, which is also its
    index in counters. members: the ranks that take part. share: what Sessions gave it."""

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
    """path: the P4 source. parameters: those of compile time (-D)."""

    path: Path
    parameters: Mapping[str, int]


@dataclass(frozen=True)
class ResolvedScenario:
    """A scenario in which everything is decided. Only scenario.resolved.resolve creates it.

    scenario: every key with its value, as the results keep it. options: the system's own keys, an
    object of its class `options`; None if it has none. programs: the program of every switch.
    graph: the topology with every direction's rate, delay, queue and constant impairments. faults:
    one for each target. lanes, window: 32-bit values in a packet, and the packets that a worker
    keeps in flight unless its job says otherwise; 0 if the system has no such number."""

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
        """Whether it runs in virtual time, and so on no target."""
        return self.scenario.backend == "virtual"

    @property
    def target(self) -> str:
        return self.scenario.switch.target

    @property
    def sample_ns(self) -> int:
        """The interval between samples of metrics over time; 0 if none are kept."""
        series = self.scenario.series
        assert series.every_s is not None, "resolve replaces auto"
        return round(series.every_s * 1e9) if series.record else 0

    @property
    def slots(self) -> int:
        """The number of slots of each switch, for all jobs."""
        return self.scenario.switch.slots

    def whole(self, job: Job, share: Share = None) -> ActiveJob:
        """Returns the job with all its workers."""
        return ActiveJob(job, self.jobs.index(job), tuple(range(len(job.hosts))), share)

    def chunks(self, job: Job) -> int:
        """Returns how many chunks a worker of the job has in a round."""
        return self.system.round_chunks(self.scenario, job)


# What it answers.


@dataclass(frozen=True)
class JobChoices:
    """A system's values for a job's keys; 0 if it has no such number. See Job."""

    window: int = 0
    first_slot: int = 0
    slots: int = 0


@dataclass(frozen=True)
class Choices:
    """A system's values for the keys of a scenario that it decides; 0 if it has no such number.
    window: of `workload`. jobs: in the scenario's order."""

    jobs: Sequence[JobChoices]
    lanes: int = 0
    window: int = 0


@dataclass(frozen=True)
class Source:
    """A P4 program by its name in p4/ (or path), and its compile-time parameters (-D)."""

    name: str
    parameters: Mapping[str, int] = field(default_factory=dict)


EVERYWHERE = "switch"
"""The role of every switch in a system with one program."""


def everywhere(source: Source) -> Mapping[str, Source]:
    """Returns the value of `System.sources` if all switches run one program."""
    return {EVERYWHERE: source}


@dataclass(frozen=True)
class Agent:
    """One program on a host.

    role: one of hosts.part.ROLES. rank: a worker's rank in the job; for others a number of their
    own above all these. configuration: what hosts.agent reads, except `control` and `sums_dir`.
    session: settings of a new session for this agent alone, such as its current peers. listens:
    whether a worker answers others between rounds as well; what it sends then is requested when the
    job is over, as for servers. spare: whether the job goes on when it has died.
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
    """What a system promises about asynchronous training; None if it promises nothing. delay: the
    largest age of an update, in versions, when it is committed; divergence: the largest Euclidean
    distance of a replica from the model, in the units of the model."""

    delay: int | None = None
    divergence: int | None = None


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of an all-reduce's time, in seconds. lossy_s: the bound of the expected time
    with the links' constant independent losses. window_share: the share of the busiest link's rate
    that one window in each round trip through empty queues reaches; 1 if the window is not a
    limit."""

    payload_s: float
    link_s: float
    lossy_s: float
    window_share: float


@dataclass(frozen=True)
class Again:
    """Bytes that crossed a direction because something was sent again: the least and the most."""

    least: int
    most: int


@dataclass(frozen=True)
class Truth:
    """What a block of elements must be, computed from the inputs alone.

    values: what callers must receive. allowed: how far from `values` each may be (float64); None if
    every bit must be right. sums: the integers that travelled, if an endpoint returns these besides
    its result; they must be right bit for bit.
    """

    values: Array
    allowed: Array | None = None
    sums: npt.NDArray[Any] | None = None


TruthOf = Callable[[int, Sequence[Array]], Truth]
"""A function from (first element, that block of each member's tensor) to what the block must
become."""


@dataclass
class MissingChunks:
    """The chunks that one host or switch owes: those that it never sent (up), and results that it
    never received."""

    never_sent: set[int] = field(default_factory=set)
    never_heard: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        return len(self.never_sent) + len(self.never_heard)

    def __str__(self) -> str:
        parts = []
        if self.never_sent:
            parts.append(f"never sent {spans(self.never_sent)}")
        if self.never_heard:
            parts.append(f"never heard the sum of {spans(self.never_heard)}")
        return " and ".join(parts)


class Registers(Protocol):
    """What a diagnosis reads from switches."""

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None: ...


class Readings(Registers, Protocol):
    """What a controller can read from switches; None for one that cannot be read now."""

    def counters(self, switch: str, counter: str) -> Cells | None: ...


SlotMeter = Callable[[Registers, str], "int | None"]
"""A function from (how switches are read, a switch's name) to the slots in use; None for a switch
without slots."""


Changes = Mapping[str, Sequence[TableEntry]]
"""Switch -> all entries that a controller wants there, in addition to those of `System.tables`. A
switch that is not named keeps its entries."""


class Controller(Protocol):
    """Changes tables while a job runs. It knows neither clocks nor networks: it is given the time
    (ns since the scenario's times began to count) and access to the switches, and returns their new
    entries if these change. Only differences are sent to a switch."""

    @property
    def deadline_ns(self) -> int:
        """Returns when to call `step`; the largest int64 for never."""

    @property
    def patience_ns(self) -> int:
        """Returns the time after a deadline by which the changes that `step` returns must be in
        place; otherwise the deadline counts as missed."""

    def begin_round(
        self, now_ns: int, number: int, job: ActiveJob, switches: Readings
    ) -> Changes | None:
        """Called before an attempt at a round begins: no packet of the job is in flight, and none
        will be before the changes are in place."""

    def step(self, now_ns: int, switches: Readings) -> Changes | None:
        """Called at the deadline, whatever is in progress. Sets the next deadline."""


class NoSession(Exception):
    """No new session can begin; the message is one line that says why."""


class Sessions(Protocol):
    """What jobs share during one run, and the sessions of each. A job's `share` is what `take`
    returned; the tables of switches and a session's keys follow from it."""

    def join(self, job: Job) -> None:
        """Lets the job compete from now on."""

    def leave(self, job: Job) -> None: ...

    def reserved(self, job: Job) -> Share | None:
        """Returns what switches reserve for the job before it joins and after it has left, if
        anything."""

    def held(self, job: Job) -> Share | None: ...

    def take(self, job: Job) -> Share | None:
        """Returns, between two rounds, the job's share as far as it is free; None if the job has to
        wait."""

    def changed(self, job: Job) -> Mapping[str, Any]:
        """Returns the event that reports the job's new share: `event`, and more."""

    def begin(self, job: Job) -> Mapping[str, Any]:
        """Returns keys of agents' configuration for a new session in which no older packet can be
        mistaken for a current one. Raises NoSession."""


class System(ABC):
    """One way of aggregating. Methods give its answers; class attributes are its declarations."""

    name: str
    summary: str
    """One line."""
    is_default: bool = False
    """Whether a scenario that names no system runs this one: true for exactly one of those that
    come with Agglab."""
    abilities: Abilities = Abilities()
    options: type | None = None
    """A frozen dataclass of the system's own keys, made by `scenario.key.key`. They are in a
    section of the scenario with the system's name."""
    counters: Mapping[str, Counter]
    """Name in metrics.json -> counter of the P4 program."""
    host_counters: Mapping[str, HostCounter] = {}
    attack_kinds: Mapping[str, AttackKind] = {}
    """In the order in which they are sent; empty if the system has nothing to attack."""
    sends_datagrams: bool = True
    """Whether its agents send by hosts/driver.py alone."""
    choose_when: str = ""
    """One sentence for docs/systems/README.md: when to choose this system."""
    variants: Mapping[str, Sequence[str]] = {"": ()}
    """The system's rows in the table of all systems: a word or two that distinguish each row, and
    the keys that it sets, as `--set` takes them. Besides the four workers, the hosts p1 to p4 are
    available for servers."""

    # A scenario. Checks are asked while there may be mistakes, of which `trust` knows.

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        """Yields what is wrong with its keys in combination, although each alone may be right."""
        return iter(())

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        """Returns the hosts in `NAME.servers`, by name or pattern; each must match one."""
        return ()

    def reserved_hosts(self, scenario: Scenario, graph: Topology) -> Sequence[str]:
        """Returns the hosts that never have a worker, whatever patterns say."""
        return ()

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Returns the hosts with a server for a job with these workers' hosts."""
        return ()

    @abstractmethod
    def refused(self, graph: Topology, job: ActiveJob) -> str:
        """Returns in one line why a job cannot run on this network; empty if it can."""

    @abstractmethod
    def resolve(self, scenario: Scenario, slowest_bps: int) -> Choices:
        """Returns the values of the keys that this system decides, with `auto` replaced.
        slowest_bps: the rate of the slowest link."""

    @abstractmethod
    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns how many chunks a worker has in a round of one all-reduce, also for a scenario
        that is not resolved."""

    def round_chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns the same for a round of one all-reduce or several."""
        return sum(self.chunks(scenario, each) for each in job.by_all_reduce())

    @abstractmethod
    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        """Returns the bits on the wire of the frame that carries one chunk."""

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """Returns what switches and servers need in addition to the agents' tensors."""
        return 0

    def lacks(self, resolved: ResolvedScenario) -> Iterator[tuple[str, str]]:
        """Yields what this machine lacks beyond the requirements of every run: what it is, and how
        to get it, each in one line."""
        return iter(())

    # Network and agents.

    @abstractmethod
    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        """Returns the P4 programs by the role of the switches that run each; `everywhere` for a
        single one. Also for a scenario that is not resolved."""

    def role(self, graph: Topology, switch: str) -> str:
        """Returns which of several programs a switch runs, by its place in the network."""
        return EVERYWHERE

    @abstractmethod
    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        """Returns the entries of every switch while these jobs run. Raises ValueError with one
        line."""

    def controller(self, resolved: ResolvedScenario, job: ActiveJob) -> Controller | None:
        """Returns the controller that changes tables while a job runs, if there is one; a new one
        for each job and run. Only called if `abilities` says that there is one."""
        return None

    @abstractmethod
    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        """Returns who runs where: the members by rank, then servers."""

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
    ) -> Again:
        """Returns the least and the most bytes that the job's agents on a host sent beyond those
        predicted, as far as their counts of the whole run explain them (hosts/endpoint.py): frames
        that were sent again, of which a chunk's last may be shorter."""
        return Again(0, counts["retransmitted"] * self.chunk_bits(resolved) // 8)

    def unpredictable(self, resolved: ResolvedScenario) -> str:
        """Returns why it cannot be known what links should have carried; empty if it can."""
        return ""

    @abstractmethod
    def sent_again(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, Again]:
        """Returns the retransmitted bytes by direction. more: host -> bytes that its agents of the
        job sent beyond those predicted; counters: switch -> kind -> cells."""

    def returns_sums(self, dtype: str) -> bool:
        """Returns whether endpoints return the integers that travelled besides the result."""
        return False

    def block(self, resolved: ResolvedScenario) -> int:
        """Returns the number of elements in a block; truths are computed for blocks that begin at
        its multiples."""
        return 1

    @abstractmethod
    def truth(self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None) -> TruthOf:
        """Returns what results must be. combine: the user's own function, if the switch does not
        add."""

    def training_bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> TrainingBounds:
        """Returns what the system promises. Only called if it supports asynchronous training."""
        return TrainingBounds()

    # What switches did.

    def arrivals(self) -> tuple[str, ...]:
        """Returns the counters of which exactly one counts each frame that a switch receives."""
        return ()

    def passes_within(self) -> tuple[str, ...]:
        """Returns the counters of packets that a program split in two and recirculated: for each of
        these, `arrivals` count one more."""
        return ()

    def expected_frames(
        self, resolved: ResolvedScenario, job: ActiveJob, switch: str, counters: Mapping[str, Cells]
    ) -> int:
        """Returns the frames that a switch should have sent for a job by its own counters; 0 if
        there are no `arrivals`."""
        return 0

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        """Returns a function that counts the slots of a switch's aggregation memory that hold
        incomplete sums; None if they cannot be counted. It is called often in virtual time."""
        return None

    # When something is wrong.

    def diagnose(
        self,
        source: Registers,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, MissingChunks]:
        """Returns for each host or switch what it owes, the one that owes most first. waiting: host
        -> what its worker waits for; unserved: host -> what its server waits for."""
        return {}

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        """Yields (kind, frame) without end; the same key gives the same frames. host: the attacker,
        whose victims are the jobs in which it does not take part. Nothing without
        `attack_kinds`."""
        return iter(())


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

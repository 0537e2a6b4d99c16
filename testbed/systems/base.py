"""What the testbed asks of a system, a way of aggregating: its declarations and its answers.

A system is one object of a subclass of System, and has no state: whatever it is asked follows from
a resolved scenario. What it knows during a run is its Sessions. The values here are passive. This
module imports nothing of `scenario` at run time, because `scenario` asks systems about their keys;
the modules of a system may import `scenario`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from agglab.testbed.plan import Entries, TableEntry
from agglab.topologies import Topology

if TYPE_CHECKING:
    from agglab.testbed.scenario import ResolvedScenario, Scenario
    from agglab.testbed.scenario.jobs import Finding, Job
    from agglab.testbed.scenario.trust import Trust

Array = npt.NDArray[Any]
Share = Any
"""What a job has of a resource that jobs share (slots of switches); only its system looks inside.
It can be compared with ==."""
Waiting = Sequence[int]
"""One thing that an agent waits for, as its endpoint's `waiting` gives it; the first is a chunk."""
Combine = Callable[[Sequence[Array]], Array]
"""What is made of all workers' values instead of their sum, element by element."""
Cells = Mapping[int, tuple[int, int]]
"""A switch's counter: index -> (packets, bytes)."""


ALL_REDUCES = ("allreduce", "sparse_allreduce", "embedding_allreduce", "layers", "sgd")
"""Values of `workload.kind` whose result is the sum of one tensor of each worker, which `layers`
and `sgd` sum in parts."""
P4_TARGETS = ("native", "bmv2")
"""Values of `switch.target` that run a P4 program."""
TARGETS = (*P4_TARGETS, "bridge")
"""All of them; testbed/network/targets/ has each. A bridge only forwards."""


# What a system declares.


@dataclass(frozen=True)
class Abilities:
    """What a scenario may ask of a system.

    clocks: values of `backend`; targets: of `switch.target`. has_servers: there are agents beside
    the workers, whose counts metrics.json holds, too. has_controller: tables change while it runs.
    keys: those of SHARED_KEYS that it reads; a scenario that gives another one is refused.
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
"""Keys that every scenario may have and not every system reads."""


@dataclass(frozen=True)
class Counter:
    """One counter of a switch's P4 program, in packets.

    name: the program's own. tally: which sum over all switches it is part of: `malformed`
    (`totals.malformed`), `forged` (`totals.forged`), `stale` (packets that only a delay explains).
    of_jobs: it counts each job's packets apart.
    """

    name: str
    meaning: str
    tally: str = ""
    of_jobs: bool = True


@dataclass(frozen=True)
class HostCounter:
    """What an agent counts beside the counters that all agents have (hosts/endpoint.py)."""

    unit: str
    meaning: str


@dataclass(frozen=True)
class AttackKind:
    """counted: the counter (its key in `System.counters`) that the first switch counts it by."""

    counted: str


# What it is asked about.


@dataclass(frozen=True)
class ActiveJob:
    """A job as it runs now. index: its place in the run's list of jobs, which is also its index in
    counters. members: the ranks that take part. share: what Sessions gave it."""

    job: Job
    index: int
    members: tuple[int, ...]
    share: Share = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Of the members, by rank."""
        return tuple(self.job.hosts[rank] for rank in self.members)


# What it answers.


@dataclass(frozen=True)
class JobChoices:
    """What a system makes of a job's keys; 0 where it has no such number. See Job."""

    window: int = 0
    first_slot: int = 0
    slots: int = 0


@dataclass(frozen=True)
class Choices:
    """What a system makes of the keys of a scenario that are its to decide; 0 where it has no such
    number. window: of `workload`. jobs: in the scenario's order."""

    jobs: Sequence[JobChoices]
    lanes: int = 0
    window: int = 0


@dataclass(frozen=True)
class Source:
    """A P4 program by its name in p4/ (or path), and its compile-time parameters (-D)."""

    name: str
    parameters: Mapping[str, int] = field(default_factory=dict)


EVERYWHERE = "switch"
"""The role of every switch where all run one program."""


def everywhere(source: Source) -> Mapping[str, Source]:
    """For `System.sources`, where all switches run one program."""
    return {EVERYWHERE: source}


@dataclass(frozen=True)
class Agent:
    """One program at a host.

    role: one of hosts.part.ROLES. rank: of a worker its rank in the job, of others a number of
    their own above all these. configuration: what hosts.agent reads, but for `control` and
    `sums_dir`. session: settings of a new session that are this agent's alone, such as who its
    peers are now. listens: a worker that answers others between rounds, too; what it sends then is
    asked for when the job is over, as servers are. spare: the job goes on when it has died.
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
    """What a system promises of asynchronous training; None where it promises nothing. delay: how
    many versions an update is old at most when it is committed; divergence: how far a replica is
    from the model at most, Euclidean, in the units of the model."""

    delay: int | None = None
    divergence: int | None = None


@dataclass(frozen=True)
class Bounds:
    """Seconds that no all-reduce can undercut. lossy_s: nor any expected time, with the links'
    constant independent losses. window_share: of the busiest link's rate, what a window each round
    trip through empty queues comes to; 1 where it is no limit."""

    payload_s: float
    link_s: float
    lossy_s: float
    window_share: float


@dataclass(frozen=True)
class Again:
    """Bytes that crossed a direction because something was sent again: at least and at most."""

    least: int
    most: int


@dataclass(frozen=True)
class Truth:
    """What a block of elements has to be, computed from the inputs alone.

    values: what callers are to receive. allowed: how far from `values` each may be (float64); None
    where every bit has to be right. sums: the integers that travelled, where an endpoint hands
    these out beside its result; they have to be right to the bit.
    """

    values: Array
    allowed: Array | None = None
    sums: npt.NDArray[Any] | None = None


TruthOf = Callable[[int, Sequence[Array]], Truth]
"""(first element, that block of each member's tensor) -> what the block must become."""


@dataclass
class Absent:
    """What one host or switch owes: chunks it never sent (up), results it never heard."""

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
    """Where a diagnosis looks into switches."""

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None: ...


class Readings(Registers, Protocol):
    """What a controller sees of switches; None of one that cannot be read now."""

    def counters(self, switch: str, counter: str) -> Cells | None: ...


SlotMeter = Callable[[Registers, str], "int | None"]
"""(where switches are read, a switch's name) -> slots; None of a switch without any."""


Changes = Mapping[str, Sequence[TableEntry]]
"""Switch -> all entries that a controller wants there, beside those of `System.tables`. A switch
that is not named keeps what it has."""


class Controller(Protocol):
    """Changes tables while a job runs. It knows neither clocks nor networks: it is given the time
    (ns since the scenario's times began to count) and shown the switches, and says what they are to
    hold from now on, if that changes. Only what differs is sent to a switch."""

    @property
    def deadline_ns(self) -> int:
        """When to call `step`; the largest int64 for never."""

    @property
    def patience_ns(self) -> int:
        """A deadline is missed if what `step` says is in place later than so long after it."""

    def begin_round(
        self, now_ns: int, number: int, job: ActiveJob, switches: Readings
    ) -> Changes | None:
        """An attempt at a round is about to begin: nothing of the job is under way, and nothing
        will be before the changes are in place."""

    def step(self, now_ns: int, switches: Readings) -> Changes | None:
        """The deadline has come, whatever is under way. Sets the next one."""


class NoSession(Exception):
    """No new session can begin; one line that says why."""


class Sessions(Protocol):
    """What jobs share during one run, and the sessions of each. A job's `share` is what `take` gave
    it; the tables of switches and a session's keys follow from it."""

    def join(self, job: Job) -> None:
        """The job competes from now on."""

    def leave(self, job: Job) -> None: ...

    def reserved(self, job: Job) -> Share | None:
        """What switches keep for the job before it joins and after it has left, if anything."""

    def held(self, job: Job) -> Share | None: ...

    def take(self, job: Job) -> Share | None:
        """Between two rounds: what is due to the job and free; None if it has to wait."""

    def changed(self, job: Job) -> Mapping[str, Any]:
        """The event that says what the job has now: `event`, and more."""

    def begin(self, job: Job) -> Mapping[str, Any]:
        """Keys of agents' configuration for a new session, whose packets nothing older can be taken
        for. Raises NoSession."""


class System(ABC):
    """One way of aggregating. What is no method's answer is declared: the class's attributes."""

    name: str
    summary: str
    """One line."""
    is_default: bool = False
    """Whether a scenario runs it that names none: so for exactly one of those that come with us."""
    abilities: Abilities = Abilities()
    options: type | None = None
    """A frozen dataclass of its own keys, made by `scenario.key.key`: they stand in a section
    that has the system's name."""
    counters: Mapping[str, Counter]
    """Word in metrics.json -> counter of the P4 program."""
    host_counters: Mapping[str, HostCounter] = {}
    attack_kinds: Mapping[str, AttackKind] = {}
    """In the order in which they are sent; empty where the system has nothing to attack."""
    sends_datagrams: bool = True
    """Whether its agents send by hosts/driver.py alone."""
    choose_when: str = ""
    """One sentence for docs/systems/README.md: when it is the system to take."""
    variants: Mapping[str, Sequence[str]] = {"": ()}
    """Its rows in the table of all systems: what tells each from the others in a word or two, and
    the keys that it sets, as `--set` takes them. Beside the four workers, the hosts p1 to p4 are
    there for servers."""

    # A scenario. Checks are asked while there may be mistakes, of which `trust` knows.

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        """What is wrong with its keys together, where each alone may be right."""
        return iter(())

    def server_patterns(self, scenario: Scenario) -> Sequence[str]:
        """What `NAME.servers` says of hosts, by name or pattern; each has to match one."""
        return ()

    def reserved_hosts(self, scenario: Scenario, graph: Topology) -> Sequence[str]:
        """Hosts that are no worker's, whatever patterns say."""
        return ()

    def server_hosts(
        self, scenario: Scenario, graph: Topology, workers: Sequence[str]
    ) -> Sequence[str]:
        """Hosts with a server of a job of these workers' hosts."""
        return ()

    @abstractmethod
    def refused(self, graph: Topology, job: ActiveJob) -> str:
        """Why a job cannot run on this network, one line; empty if it can."""

    @abstractmethod
    def resolve(self, scenario: Scenario, slowest_bps: int) -> Choices:
        """What a checked scenario says of the keys that are this system's to decide, `auto`
        replaced. slowest_bps: of the slowest link."""

    @abstractmethod
    def chunks(self, scenario: Scenario, job: Job) -> int:
        """How many chunks a worker has in a round, also of a scenario that is not resolved."""

    @abstractmethod
    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        """Bits on the wire of the frame that carries one chunk."""

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """What switches and servers need beside the agents' tensors."""
        return 0

    def lacks(self, resolved: ResolvedScenario) -> Iterator[tuple[str, str]]:
        """What this machine has to have beside what every run needs, and has not: what, and how to
        get it, a line each."""
        return iter(())

    # Network and agents.

    @abstractmethod
    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        """The P4 programs, by the role of the switches that run each; `everywhere` of one alone.
        Also of a scenario that is not resolved."""

    def role(self, graph: Topology, switch: str) -> str:
        """Which of several programs a switch runs, by its place in the network."""
        return EVERYWHERE

    @abstractmethod
    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        """What every switch is filled with while these jobs run. Raises ValueError, one line."""

    def controller(self, resolved: ResolvedScenario, job: ActiveJob) -> Controller | None:
        """What changes tables while a job runs, if anything does; one for each job and run. Only
        asked where `abilities` has one."""
        return None

    @abstractmethod
    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        """Who runs where: the members by rank, then servers."""

    @abstractmethod
    def sessions(self, resolved: ResolvedScenario) -> Sessions: ...

    # What should happen.

    @abstractmethod
    def round_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, number: int
    ) -> Mapping[str, int]:
        """Bytes that the round of that number sends without loss over each direction (`h1->s1`),
        and between agents of one host (`h1->h1`, which is no link's). Directions that carry nothing
        may be left out."""

    @abstractmethod
    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds: ...

    def beyond(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> Again:
        """Bytes that the job's agents at a host sent beyond those predicted, as their counts of the
        whole run explain it (hosts/endpoint.py): at least and at most. Frames of a chunk that were
        sent again, of which the last may be shorter."""
        return Again(0, counts["retransmitted"] * self.chunk_bits(resolved) // 8)

    def unpredictable(self, resolved: ResolvedScenario) -> str:
        """Why nobody can tell what links should have carried; empty where that is known."""
        return ""

    @abstractmethod
    def sent_again(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        more: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Cells]],
    ) -> Mapping[str, Again]:
        """By direction. more: host -> bytes that its agents of the job sent beyond those predicted;
        counters: switch -> kind -> cells."""

    def returns_sums(self, dtype: str) -> bool:
        """Whether endpoints hand out the integers that travelled beside the result."""
        return False

    def block(self, resolved: ResolvedScenario) -> int:
        """Truths are asked for blocks that begin at multiples of so many elements."""
        return 1

    @abstractmethod
    def truth(self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None) -> TruthOf:
        """What results have to be. combine: the user's own, where the switch does not add."""

    def training_bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> TrainingBounds:
        """Only asked where asynchronous training is among the workloads."""
        return TrainingBounds()

    # What switches did.

    def arrivals(self) -> tuple[str, ...]:
        """Counters of which exactly one counts each frame that a switch takes in."""
        return ()

    def passes_within(self) -> tuple[str, ...]:
        """Counters of packets that a program made two of and sent back to itself: of each of them
        `arrivals` count one more."""
        return ()

    def owed(
        self, resolved: ResolvedScenario, job: ActiveJob, switch: str, counters: Mapping[str, Cells]
    ) -> int:
        """Frames that a switch should have sent for a job by its own counters; only asked where
        there are `arrivals`."""
        raise NotImplementedError

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        """What tells of a switch how many sums of its aggregation memory are begun and not
        complete; None where nothing does. It is asked in virtual time, often."""
        return None

    # When something is wrong.

    def diagnose(
        self,
        source: Registers,
        graph: Topology,
        job: ActiveJob,
        waiting: Mapping[str, Iterable[Waiting]],
        unserved: Mapping[str, Iterable[Waiting]],
    ) -> Mapping[str, Absent]:
        """Host or switch -> what it owes, who owes most first. waiting: host -> what its worker
        waits for; unserved: host -> what its server waits for."""
        return {}

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        """(kind, frame) without end; the same key gives the same. host: the attacker; its victims
        are the jobs of which it is no part. Only asked where there are `attack_kinds`."""
        raise NotImplementedError


RANGES_MAX = 8


def spans(chunks: Iterable[int]) -> str:
    """`chunk 7`, `chunks 3, 8-12`."""
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

"""Defines what the testbed asks of a system. A system is one way of aggregating; it is described by
declarations (class attributes) and answers (methods).

A system is an object of a subclass of System and has no state: every answer follows from a resolved
scenario. What changes during a run is in the system's Sessions. Answers are passive values.

A system has to answer three questions: into how many chunks a tensor is cut, which agents there
are, and what their results must be. It may leave the others to their defaults. These describe
switches that only forward, jobs that share nothing, and a system that predicts nothing; a run then
says of what it cannot judge that it is unknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agglab.hosts.wire import VALUE_BYTES
from agglab.hosts.workloads import Dense
from agglab.testbed.schema.faults import Fault
from agglab.testbed.schema.jobs import Finding, Job, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.system_names import endpoint_beside
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base.abilities import Abilities, AttackKind, Counter, HostCounter
from agglab.testbed.systems.base.active_job import ActiveJob, Share
from agglab.testbed.systems.base.agents import Agent, Choices, JobChoices
from agglab.testbed.systems.base.missing_chunks import MissingChunks, Waiting
from agglab.testbed.systems.base.programs import (
    EVERYWHERE,
    FORWARDING_COUNTERS,
    SOURCE,
    Source,
    everywhere,
)
from agglab.testbed.systems.base.readings import Controller, Evidence, SlotMeter
from agglab.testbed.systems.base.right_results import Combine, RightResults
from agglab.testbed.systems.base.sessions import NumberedSessions, Sessions
from agglab.testbed.systems.base.switch_work import SwitchWork
from agglab.testbed.systems.base.traffic import Bounds, Traffic, Unpredictable
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.plan import Entries, forwarding
from agglab.testbed.systems.plan.paths import unreachable
from agglab.topologies import Topology

ETHERNET_BYTES = 14
NO_PREDICTION = "the system does not predict how many bytes links carry"


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
    counters: Mapping[str, Counter] = FORWARDING_COUNTERS
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

    # What every system answers.

    @abstractmethod
    def chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns how many chunks a worker has in a round of one all-reduce. The scenario need not
        be resolved."""

    @abstractmethod
    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        """Returns the agents of a job: the members by rank, then the servers."""

    @abstractmethod
    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        """Returns what results must be. combine: the user's own function, if the switch does not
        add; else None."""

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

    def refused(self, graph: Topology, job: ActiveJob) -> str:
        """Returns why a job cannot run on this network, in one line; empty if it can. By default
        the members must reach each other."""
        return unreachable(graph, job.hosts)

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        """Returns the values of the keys that this system decides, with `auto` replaced. By default
        these are the stated values, and 0 for `auto`. slowest_bps: the slowest link's rate.
        delays_s: the longest round trip of delays alone."""
        window = scenario.workload.window or 0
        jobs = [JobChoices(job.workload.window or window) for job in stated(scenario)]
        return Choices(jobs, scenario.switch.lanes or 0, window)

    def round_chunks(self, scenario: Scenario, job: Job) -> int:
        """Returns how many chunks a worker has in a round, which may have several all-reduces."""
        return sum(self.chunks(scenario, each) for each in job.by_all_reduce())

    def chunk_bits(self, resolved: ResolvedScenario) -> int:
        """Returns the bits on the wire of the frame that carries one chunk. By default this is the
        longest frame that links carry."""
        return 8 * (resolved.scenario.links.mtu_bytes + ETHERNET_BYTES)

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        """Returns how much memory switches and servers need, in addition to the agents' tensors."""
        return 0

    def lacks(self, resolved: ResolvedScenario) -> Iterator[tuple[str, str]]:
        """Yields what this machine lacks beyond the requirements of every run: what it is, and how
        to get it, each in one line."""
        return iter(())

    # Network and agents.

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        """Returns the P4 programs by the role of the switches that run them. A system with a single
        program can return `everywhere(source)`. By default switches only forward. The scenario need
        not be resolved."""
        return everywhere(SOURCE)

    def role(self, graph: Topology, switch: str) -> str:
        """Returns the role of a switch, which determines the program that it runs. The role depends
        only on the switch's place in the network."""
        return EVERYWHERE

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        """Returns the entries of every switch while these jobs run. Raises ValueError with one line
        if they do not fit."""
        return forwarding(graph)

    def controller(self, resolved: ResolvedScenario, job: ActiveJob) -> Controller | None:
        """Returns a new controller that changes tables while a job runs; None if the job needs
        none. It is called once for each job of a run, and only if `abilities` says that the system
        has controllers."""
        return None

    def sessions(self, resolved: ResolvedScenario) -> Sessions:
        """Returns what the jobs of a run share, and their sessions. By default they share
        nothing."""
        return NumberedSessions()

    # What should happen.

    def traffic(self, resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
        """Returns the bytes that one all-reduce of a job puts on links. Raises Unpredictable."""
        raise Unpredictable(NO_PREDICTION)

    def bounds(self, resolved: ResolvedScenario, job: ActiveJob) -> Bounds | None:
        """Returns the least time of an all-reduce; None if it is unknown."""
        return None

    def round_trips(self, job: Job) -> int:
        """Returns how many round trips of a round follow one another. By default one agrees on the
        round, and one brings the results."""
        return 2

    # What switches did.

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        """Returns what counters tell about the work of switches."""
        return SwitchWork()

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        """Returns a function that counts the slots of a switch's aggregation memory that hold
        incomplete sums; None if they cannot be counted. In virtual time the function is called
        often."""
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


def _matching(patterns: Sequence[str], graph: Topology) -> tuple[str, ...]:
    """Returns the hosts that the patterns match."""
    found = (host.name for p in patterns for host in graph.hosts if fnmatchcase(host.name, p))
    return tuple(dict.fromkeys(found))


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

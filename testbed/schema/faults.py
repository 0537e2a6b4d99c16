"""The faults that a scenario can declare for a run: the immutable classes Fault, LinkDown,
AgentCrash and others (docs/scenarios.md, Faults).

A Fault *begins* when its trigger is reached. If it has a duration, it *ends* after that time. What
a link does to frames during the whole run is part of its Direction and is not a Fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from agglab.topologies.graph import Impairment


@dataclass(frozen=True)
class AtTime:
    """A time in seconds since the first round of the run was started."""

    seconds: float


@dataclass(frozen=True)
class AtChunk:
    """The moment when the first worker of a job has the result of chunk `chunk`, or of a later one,
    in round `round`. job: its number on the wire. Chunks count from 0 in each round."""

    job: int
    round: int
    chunk: int


@dataclass(frozen=True)
class AtOnce:
    """The moment at which somebody asks for the fault at the prompt of `agglab shell`."""


Trigger: TypeAlias = "AtTime | AtChunk | AtOnce"

Claim: TypeAlias = "tuple[object, ...]"
"""A value that names what a fault occupies while it lasts. Two faults with equal claims must not
overlap in time."""


@dataclass(frozen=True)
class LinkFault:
    """A fault of one link. Faults of different kinds may affect a link at the same time."""

    link: str

    @property
    def target(self) -> str:
        return self.link

    @property
    def claim(self) -> Claim:
        return type(self), self.link


@dataclass(frozen=True)
class LinkDown(LinkFault):
    """The link loses every frame that arrives at one of its ends, after the frame has used queue
    and rate as usual. Frames that already wait in the queue are lost as well, unless they still
    wait when the fault ends. When the fault ends, the link carries frames again."""


@dataclass(frozen=True)
class RateChange(LinkFault):
    """The directions (`h1->s1`) get another rate. When the fault ends, they get their previous rate
    back."""

    directions: tuple[str, ...]
    rate_bps: int

    @property
    def claim(self) -> Claim:
        return type(self), self.link, self.directions


@dataclass(frozen=True)
class Impair(LinkFault):
    """The directions (`h1->s1`) get one more impairment. When the fault ends, the impairment is
    removed.

    Frame k of a direction counts all frames since the network started, not since the fault began.
    """

    directions: tuple[str, ...]
    impairment: Impairment

    @property
    def claim(self) -> Claim:
        return type(self.impairment), self.link, self.directions


@dataclass(frozen=True)
class AgentFault:
    """A fault of the programs that a job's agents run on a host. role: the agents' role
    (hosts/part.py)."""

    job: int
    host: str
    role: str

    @property
    def target(self) -> str:
        return self.host

    @property
    def claim(self) -> Claim:
        """The agents of this role, host and job. Two faults with the same claim must not overlap.
        Pauses and crashes have the same claim, because a program cannot be suspended and killed at
        the same time."""
        return AgentFault, self.role, self.host, self.job


@dataclass(frozen=True)
class AgentPause(AgentFault):
    """The agent's program is suspended (SIGSTOP) and keeps its state. When the fault ends, the
    program continues (SIGCONT)."""


@dataclass(frozen=True)
class AgentCrash(AgentFault):
    """The agent's program is killed. When the fault ends, the program is started again with no
    state."""


@dataclass(frozen=True)
class AgentSlow(AgentFault):
    """The agent handles the packets that have arrived only every `delay_s` seconds. When the fault
    ends, it handles packets immediately again."""

    delay_s: float

    @property
    def claim(self) -> Claim:
        return AgentSlow, self.role, self.host, self.job


@dataclass(frozen=True)
class SwitchFault:
    """A fault of a switch's program. Two faults of one switch must not overlap, whatever their
    kinds."""

    switch: str

    @property
    def target(self) -> str:
        return self.switch

    @property
    def claim(self) -> Claim:
        return SwitchFault, self.switch


@dataclass(frozen=True)
class SwitchRestart(SwitchFault):
    """The switch's program is killed and started again, with no entries and empty registers. Its
    entries are written again `outage_s` seconds later at the earliest. This fault does not end."""

    outage_s: float


@dataclass(frozen=True)
class SwitchReprogram(SwitchFault):
    """The running switch loads its program again, which empties registers, entries and counters.
    Then the entries are written again. This fault does not end."""


@dataclass(frozen=True)
class Attack:
    """A host sends `frames` frames against a job to which it does not belong, spread evenly over
    `over_s` seconds. The fault ends when all frames are sent."""

    host: str
    frames: int
    over_s: float

    @property
    def target(self) -> str:
        return self.host

    @property
    def claim(self) -> Claim:
        return Attack, self.host


Action: TypeAlias = "LinkFault | AgentFault | SwitchFault | Attack"
"""What a fault does. testbed/run/fault.py has a table of how each action is done."""


@dataclass(frozen=True)
class Fault:
    """A declared fault. number: its position in the list of all faults of the run, which identifies
    it in events. kind: its name in the scenario. duration_s: None if it lasts to the end of the
    run."""

    number: int
    kind: str
    action: Action
    trigger: Trigger
    duration_s: float | None = None

"""The faults that a scenario declares for a run, as frozen values (docs/scenarios.md, Faults).

A Fault *begins* when its trigger is reached. If it has a duration, it *ends* when that is over.
What a link does to frames during the whole run is part of its Direction and is not a Fault.
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
    """The moment when the first worker of a job (given by its number on the wire) has the result of
    chunk `chunk`, or of a later one, in round `round`; chunks count from 0 in each round."""

    job: int
    round: int
    chunk: int


Trigger: TypeAlias = "AtTime | AtChunk"

Claim: TypeAlias = "tuple[object, ...]"
"""What a fault has for itself while it lasts: faults with equal claims must not overlap."""


@dataclass(frozen=True)
class LinkFault:
    """A fault of one link. Two kinds may be on a link at the same time."""

    link: str

    @property
    def target(self) -> str:
        return self.link

    @property
    def claim(self) -> Claim:
        return type(self), self.link


@dataclass(frozen=True)
class LinkDown(LinkFault):
    """Every frame that arrives at an end of the link while it is down is lost, after it has used
    queue and rate as usual. Frames that already wait in the queue are lost as well, unless they are
    still waiting when the fault ends. When it ends, the link carries frames again."""


@dataclass(frozen=True)
class RateChange(LinkFault):
    """The directions (`h1->s1`) get another rate. When it ends, they get their own rate back."""

    directions: tuple[str, ...]
    rate_bps: int

    @property
    def claim(self) -> Claim:
        return type(self), self.link, self.directions


@dataclass(frozen=True)
class Impair(LinkFault):
    """The directions (`h1->s1`) get one more impairment. When it ends, the impairment is removed.

    Frame k of a direction counts all frames since the network started, not since the fault began.
    """

    directions: tuple[str, ...]
    impairment: Impairment

    @property
    def claim(self) -> Claim:
        return type(self.impairment), self.link, self.directions


@dataclass(frozen=True)
class AgentFault:
    """A fault of the programs that a job's agents run on a host. role: theirs (hosts/part.py)."""

    job: int
    host: str
    role: str

    @property
    def target(self) -> str:
        return self.host

    @property
    def claim(self) -> Claim:
        """A program is either suspended or killed."""
        return AgentFault, self.role, self.host, self.job


@dataclass(frozen=True)
class AgentPause(AgentFault):
    """The agent's program is suspended (SIGSTOP) and keeps its state. When it ends, the program
    continues (SIGCONT)."""


@dataclass(frozen=True)
class AgentCrash(AgentFault):
    """The agent's program is killed. When it ends (a restart), the program is started again with no
    state."""


@dataclass(frozen=True)
class AgentSlow(AgentFault):
    """The agent handles packets that have arrived only every `delay_s`. When it ends, it handles
    them immediately again."""

    delay_s: float

    @property
    def claim(self) -> Claim:
        return AgentSlow, self.role, self.host, self.job


@dataclass(frozen=True)
class SwitchFault:
    """A fault of a switch's program. Two must not overlap, whatever they are."""

    switch: str

    @property
    def target(self) -> str:
        return self.switch

    @property
    def claim(self) -> Claim:
        return SwitchFault, self.switch


@dataclass(frozen=True)
class SwitchRestart(SwitchFault):
    """The switch's program is killed and started again, with no entries and empty registers. It is
    filled again after `outage_s` at the earliest. This fault does not end."""

    outage_s: float


@dataclass(frozen=True)
class SwitchReprogram(SwitchFault):
    """The running switch loads its program again: registers, entries and counters are empty, and
    then the entries are written again. This fault does not end."""


@dataclass(frozen=True)
class Attack:
    """A host that has no part in some job sends this many frames against it, spread evenly over
    `over_s`. It ends when they are sent."""

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
"""What a fault does. testbed/control/fault.py has a table of how each is done."""


@dataclass(frozen=True)
class Fault:
    """A declared fault. number: its position in the expanded list, which identifies it in events.
    kind: the scenario's name for it. duration_s: None if it lasts to the end of the run."""

    number: int
    kind: str
    action: Action
    trigger: Trigger
    duration_s: float | None = None

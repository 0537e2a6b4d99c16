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


@dataclass(frozen=True)
class LinkDown:
    """Every frame that arrives at an end of the link while it is down is lost, after it has used
    queue and rate as usual. Frames that already wait in the queue are lost as well, unless they are
    still waiting when the fault ends. When it ends, the link carries frames again."""

    link: str


@dataclass(frozen=True)
class RateChange:
    """The directions (`h1->s1`) get another rate. When it ends, they get their own rate back."""

    link: str
    directions: tuple[str, ...]
    rate_bps: int


@dataclass(frozen=True)
class Impair:
    """The directions (`h1->s1`) get one more impairment. When it ends, the impairment is removed.

    Frame k of a direction counts all frames since the network started, not since the fault began.
    """

    link: str
    directions: tuple[str, ...]
    impairment: Impairment


@dataclass(frozen=True)
class AgentPause:
    """The agent's program is suspended (SIGSTOP) and keeps its state. When it ends, the program
    continues (SIGCONT). role: the role of the job's agents on that host (hosts/part.py)."""

    job: int
    host: str
    role: str


@dataclass(frozen=True)
class AgentCrash:
    """The agent's program is killed. When it ends (a restart), the program is started again with no
    state."""

    job: int
    host: str
    role: str


@dataclass(frozen=True)
class AgentSlow:
    """The agent handles packets that have arrived only every `delay_s`. When it ends, it handles
    them immediately again."""

    job: int
    host: str
    role: str
    delay_s: float


@dataclass(frozen=True)
class SwitchRestart:
    """The switch's program is killed and started again, with no entries and empty registers. It is
    filled again after `outage_s` at the earliest. This fault does not end."""

    switch: str
    outage_s: float


@dataclass(frozen=True)
class SwitchReprogram:
    """The running switch loads its program again: registers, entries and counters are empty, and
    then the entries are written again. This fault does not end."""

    switch: str


@dataclass(frozen=True)
class Attack:
    """A host that has no part in some job sends this many frames against it, spread evenly over
    `over_s`. It ends when they are sent."""

    host: str
    frames: int
    over_s: float


NetworkFault: TypeAlias = "LinkDown | RateChange | Impair"
AgentFault: TypeAlias = "AgentPause | AgentCrash | AgentSlow"
SwitchFault: TypeAlias = "SwitchRestart | SwitchReprogram"
Action: TypeAlias = "NetworkFault | AgentFault | SwitchFault | Attack"


@dataclass(frozen=True)
class Fault:
    """A declared fault. number: its position in the expanded list, which identifies it in events.
    kind: the scenario's name for it. duration_s: None if it lasts to the end of the run."""

    number: int
    kind: str
    action: Action
    trigger: Trigger
    duration_s: float | None = None

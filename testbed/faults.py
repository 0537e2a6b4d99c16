"""What a scenario lets go wrong while it runs, as frozen values (docs/scenarios.md, Faults).

A Fault is *begun* when its trigger is reached and, if it has a duration, *ended* when that is over.
Everything a link does to frames all the time stands in its Direction and is no Fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from agglab.topologies.graph import Impairment


@dataclass(frozen=True)
class AtTime:
    """Seconds since the first round of the run was started."""

    seconds: float


@dataclass(frozen=True)
class AtChunk:
    """When the first worker of a job (its number on the wire) holds the result of chunk `chunk`
    or a later one in round `round`; chunks count from 0 in each round."""

    job: int
    round: int
    chunk: int


Trigger: TypeAlias = "AtTime | AtChunk"


@dataclass(frozen=True)
class LinkDown:
    """Every frame that arrives at an end of the link meanwhile is lost, having used queue and rate
    as ever: so is what waits when it goes down, but for what still waits when this ends. Ends: it
    carries again."""

    link: str


@dataclass(frozen=True)
class RateChange:
    """The directions (`h1->s1`) get another rate. Ends: their own rate again."""

    link: str
    directions: tuple[str, ...]
    rate_bps: int


@dataclass(frozen=True)
class Impair:
    """The directions (`h1->s1`) get one more impairment. Ends: without it again.

    Frame k of the direction counts all frames seen since the network started, not since the begin.
    """

    link: str
    directions: tuple[str, ...]
    impairment: Impairment


@dataclass(frozen=True)
class AgentPause:
    """The agent's program stops (SIGSTOP) with all it holds. Ends: it goes on (SIGCONT). role: of
    the job's agents on that host (hosts/part.py)."""

    job: int
    host: str
    role: str


@dataclass(frozen=True)
class AgentCrash:
    """The agent's program is killed. Ends (a restart): it is started again, and has forgotten
    all."""

    job: int
    host: str
    role: str


@dataclass(frozen=True)
class AgentSlow:
    """The agent looks at what has arrived only every `delay_s`. Ends: at once again."""

    job: int
    host: str
    role: str
    delay_s: float


@dataclass(frozen=True)
class SwitchRestart:
    """The switch's program is killed and started again: entries are gone and registers empty. It
    is filled again `outage_s` later at the earliest. Never ends."""

    switch: str
    outage_s: float


@dataclass(frozen=True)
class SwitchReprogram:
    """The running switch is given its program anew: registers, entries and counters are empty, and
    the entries are installed again. Never ends."""

    switch: str


@dataclass(frozen=True)
class Attack:
    """A host that has no part in some job sends so many frames against it, spread evenly over
    `over_s`. Ends when they are sent."""

    host: str
    frames: int
    over_s: float


NetworkFault: TypeAlias = "LinkDown | RateChange | Impair"
AgentFault: TypeAlias = "AgentPause | AgentCrash | AgentSlow"
SwitchFault: TypeAlias = "SwitchRestart | SwitchReprogram"
Action: TypeAlias = "NetworkFault | AgentFault | SwitchFault | Attack"


@dataclass(frozen=True)
class Fault:
    """number: its place in the expanded list, which names it in events. kind: the name of what
    happens, as the scenario says it. duration_s: None lasts to the end of the run."""

    number: int
    kind: str
    action: Action
    trigger: Trigger
    duration_s: float | None = None

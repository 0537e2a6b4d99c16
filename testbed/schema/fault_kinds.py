"""The kinds of faults (KINDS): the keys of each kind, and the fault or impairment that an entry of
`faults` becomes.

The table in docs/scenarios.md is written from KINDS. An entry without times whose kind is an
impairment affects its links for the whole run. Any other entry is a Fault, which has a beginning
and may have an end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agglab.hosts.part import SERVER, WORKER
from agglab.testbed.schema.faults import (
    Action,
    AgentCrash,
    AgentPause,
    AgentSlow,
    Attack,
    Impair,
    LinkDown,
    RateChange,
    SwitchReprogram,
    SwitchRestart,
)
from agglab.testbed.schema.key import JOB_NAME, key, keys_list
from agglab.testbed.schema.kinds import Choice, Fraction, Pattern, Share, Whole, duration, rate
from agglab.topologies.graph import (
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Impairment,
    Jitter,
    PeriodicDrop,
    Reorder,
)

WHEN = ("at", "at_chunk", "for", "until")
ATTACK_S = 1.0
"""How long an attack lasts if the scenario does not say, in seconds."""


@dataclass(frozen=True)
class FaultTarget:
    """One target of an entry: a link with the affected directions, a job's agent on a host, a host,
    or a switch."""

    link: str = ""
    directions: tuple[str, ...] = ()
    job: int = 0
    host: str = ""
    switch: str = ""


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault. target: the key that says where the fault happens. needs, may: keys that an
    entry of this kind must have or may have. lasts: whether an entry can state the fault's end.
    endless_s: for how many seconds a fault without a stated end keeps other faults from its target.

    A kind has either `action` or `impairment`. `action` creates the fault of an entry at one
    target. `impairment` says what happens to the frames of a link, for a time or for the whole run.
    """

    target: str
    doc: str
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    lasts: bool = True
    endless_s: float = math.inf
    action: Callable[[FaultEntry, FaultTarget], Action] | None = None
    impairment: Callable[[FaultEntry], Impairment] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        when = WHEN if self.lasts else WHEN[:2]
        whose = ("job",) if self.target in (WORKER, SERVER) else ()
        return ("kind", self.target, *whose, *self.needs, *self.may, *when)

    def act(self, entry: FaultEntry, where: FaultTarget) -> Action:
        """Returns the fault of a valid entry at one of its targets."""
        if self.impairment:
            return Impair(where.link, where.directions, self.impairment(entry))
        assert self.action is not None
        return self.action(entry, where)


def duration_s(entry: FaultEntry) -> float | None:
    """Returns the seconds from the fault's beginning to its end; None if it has no end. A restart
    of a worker or server without `for` follows immediately."""
    if entry.until_s is not None:
        return entry.until_s - (entry.at_s or 0.0)
    if entry.for_s is None and entry.kind in ("worker_restart", "server_restart"):
        return 0.0
    return entry.for_s


def _microseconds(seconds: float | None) -> int:
    return max(1, round((seconds or 0.0) * 1e6))


def _gilbert_elliott(entry: FaultEntry) -> Impairment:
    return GilbertElliott(
        to_bad=entry.to_bad or 0.0,
        to_good=entry.to_good or 0.0,
        good_loss=entry.good_loss or 0.0,
        bad_loss=1.0 if entry.bad_loss is None else entry.bad_loss,
    )


def _of_agents(role: str) -> dict[str, FaultKind]:
    """Returns the kinds of faults for the programs of agents with this role."""
    return {
        f"{role}_pause": FaultKind(
            role,
            "its program is suspended (SIGSTOP)",
            action=lambda e, where: AgentPause(where.job, where.host, role),
        ),
        f"{role}_crash": FaultKind(
            role,
            "its program is killed and is not restarted",
            lasts=False,
            action=lambda e, where: AgentCrash(where.job, where.host, role),
        ),
        f"{role}_restart": FaultKind(
            role,
            "its program is killed, and restarted after `for`",
            action=lambda e, where: AgentCrash(where.job, where.host, role),
        ),
        f"{role}_slow": FaultKind(
            role,
            "it handles packets that have arrived only once in each interval of this length",
            needs=("delay",),
            action=lambda e, where: AgentSlow(where.job, where.host, role, e.delay_s or 0.0),
        ),
    }


KINDS: Mapping[str, FaultKind] = {
    "loss": FaultKind(
        "link",
        "each packet is dropped with this probability",
        needs=("probability",),
        impairment=lambda e: Drop(e.probability or 0),
    ),
    "gilbert_elliott": FaultKind(
        "link",
        "packets are lost in bursts: the link is in a good or a bad state, which may change at "
        "each packet",
        needs=("to_bad", "to_good"),
        may=("bad_loss", "good_loss"),
        impairment=_gilbert_elliott,
    ),
    "periodic": FaultKind(
        "link",
        "of every `every` packets, `count` are dropped",
        needs=("every",),
        may=("count", "offset"),
        impairment=lambda e: PeriodicDrop(e.every or 1, e.count or 1, e.offset or 0),
    ),
    "drop_list": FaultKind(
        "link",
        "the packets with these numbers are dropped",
        needs=("packets",),
        impairment=lambda e: DropList(tuple(sorted(set(e.packets)))),
    ),
    "duplicate": FaultKind(
        "link",
        "a packet arrives twice",
        needs=("probability",),
        impairment=lambda e: Duplicate(e.probability or 0),
    ),
    "reorder": FaultKind(
        "link",
        "a packet arrives later than others that were sent after it, by this delay",
        needs=("probability", "delay"),
        impairment=lambda e: Reorder(e.probability or 0, _microseconds(e.delay_s)),
    ),
    "corrupt": FaultKind(
        "link",
        "one bit is inverted, so that a checksum is wrong",
        needs=("probability",),
        impairment=lambda e: Corrupt(e.probability or 0),
    ),
    "jitter": FaultKind(
        "link",
        "each packet is delayed by a random time up to this",
        needs=("jitter",),
        impairment=lambda e: Jitter(_microseconds(e.jitter_s)),
    ),
    "link_down": FaultKind(
        "link",
        "no packet passes in either direction",
        action=lambda e, where: LinkDown(where.link),
    ),
    "rate": FaultKind(
        "link",
        "another rate",
        needs=("rate",),
        action=lambda e, where: RateChange(where.link, where.directions, e.rate_bps or 0),
    ),
    **_of_agents(WORKER),
    **_of_agents(SERVER),
    "switch_restart": FaultKind(
        "switch",
        "its program is killed, and restarted after `for` with empty registers and tables; the "
        "tables are then filled again",
        endless_s=0.0,
        action=lambda e, where: SwitchRestart(where.switch, duration_s(e) or 0.0),
    ),
    "switch_reprogram": FaultKind(
        "switch",
        "it gets its program anew, which empties its registers",
        lasts=False,
        endless_s=0.0,
        action=lambda e, where: SwitchReprogram(where.switch),
    ),
    "attack": FaultKind(
        "host",
        "the host sends forged packets of jobs it does not belong to, for as long as `for` "
        "says (1 s): as their agents, as the aggregator, as ICMP messages "
        "([below](#what-an-attack-sends))",
        needs=("frames",),
        endless_s=ATTACK_S,
        action=lambda e, where: Attack(where.host, e.frames or 0, duration_s(e) or ATTACK_S),
    ),
}


@dataclass(frozen=True)
class ChunkMark:
    """A point in a job's progress."""

    job: str | None = key("job", JOB_NAME, None, "a job's name; the first job if absent")
    round: int = key("round", Whole(0, 9_999), 0, "counted from 0")
    chunk: int = key("chunk", Whole(0, 1_000_000_000), 0, "counted from 0 in each round")


@dataclass(frozen=True)
class FaultEntry:
    """One entry of `faults`. KINDS says which keys an entry of each kind has."""

    kind: str = key("kind", Choice(tuple(KINDS)), "link_down", "what goes wrong; see Faults")
    link: str | None = key(
        "link", Pattern(), None, "links by name or pattern; `a->b` is one direction"
    )
    worker: str | None = key("worker", Pattern(), None, "hosts by name or pattern")
    server: str | None = key("server", Pattern(), None, "hosts with a server, by name or pattern")
    switch: str | None = key("switch", Pattern(), None, "switches by name or pattern")
    host: str | None = key("host", Pattern(), None, "hosts by name or pattern")
    job: str | None = key(
        "job",
        JOB_NAME,
        None,
        "the job whose worker or server on that host has the fault; every job if absent",
    )
    at_s: float | None = key(
        "at",
        duration(),
        None,
        "when it begins, counted from the start of the first round; 0s if absent",
    )
    at_chunk: ChunkMark | None = field(default=None, metadata={"section": ChunkMark})
    for_s: float | None = key(
        "for", duration("1us"), None, "how long it lasts; to the end of the run if absent"
    )
    until_s: float | None = key("until", duration("1us"), None, "when it ends, instead of `for`")
    probability: float | None = key("probability", Fraction(), None, "probability for each packet")
    to_bad: float | None = key(
        "to_bad", Fraction(), None, "probability at each packet that a good state becomes bad"
    )
    to_good: float | None = key(
        "to_good", Fraction(), None, "probability at each packet that a bad state becomes good"
    )
    bad_loss: float | None = key(
        "bad_loss", Share(), None, "share of packets lost in the bad state; all if absent"
    )
    good_loss: float | None = key(
        "good_loss", Fraction(), None, "share of packets lost in the good state; none if absent"
    )
    every: int | None = key("every", Whole(1, 10**9), None, "the number of packets in a period")
    count: int | None = key(
        "count", Whole(1, 10**9), None, "how many packets of a period; 1 if absent"
    )
    offset: int | None = key(
        "offset", Whole(0, 10**9), None, "the first of them in a period; 0 if absent"
    )
    packets: tuple[int, ...] = keys_list(
        "packets", Whole(0, 10**9), "the numbers of the packets, counted from 0 in each direction"
    )
    frames: int | None = key("frames", Whole(1, 10**6), None, "how many frames, spread over `for`")
    delay_s: float | None = key("delay", duration("1us", "10s"), None, "additional time")
    jitter_s: float | None = key(
        "jitter", duration("1us", "10s"), None, "the longest additional delay"
    )
    rate_bps: int | None = key("rate", rate(), None, "the new rate")

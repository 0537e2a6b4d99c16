"""Judges what limited a run: the network, the machine or neither. The verdict names its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agglab.testbed.base.processor_time import Usage

OF_THE_MACHINE = ("cpu-bound", "starved")
"""Verdicts under which a run says nothing about the network or the program."""
RATE_REACHED = 0.90  # of the busiest link's rate: then the link was the limit, whatever else was
CORE_FULL = 0.80  # of one processor, for a process whose work is one thread's
MACHINE_FULL = 0.85  # of all processors, by this run's processes
WAITED = 0.15  # of the time, ready to run without a processor
WAITED_FOR_IDLE = 0.50  # of the time the busiest link was idle, likewise
STOLEN = 0.05  # of all processors, taken by the hypervisor
LATE = 0.05  # of the time: then a worker's timer may have expired for want of a processor
AGAIN = 0.05  # of the frames sent, sent again although nobody had lost them


@dataclass(frozen=True)
class Evidence:
    """The data from which the verdict is derived; `usage` is the processor time during rounds, and
    is zero in virtual time.

    rate_share: the bytes that crossed the busiest link in the rounds, divided by what it could
    carry. sent, retransmitted: frames of all workers. unexplained: retransmissions that no loss,
    delay or fault explains. losses: frames lost in transit, for any reason. faults: the names of
    the faults that kept workers, switches or links from working. window_share: the share of the
    busiest link's rate that the window allows; 1 if the window does not limit it. delayed: whether
    links have a delay or jitter. brief: whether each round has few chunks compared with the window.
    """

    rate_share: float
    usage: Usage
    processors: int
    injected_drops: int
    other_drops: int
    sent: int = 0
    retransmitted: int = 0
    unexplained: int = 0
    losses: int = 0
    faults: tuple[str, ...] = ()
    window_share: float = 1.0
    delayed: bool = False
    brief: bool = False


def judge(evidence: Evidence) -> dict[str, object]:
    """Returns `{"verdict": ..., "waited_for": ..., "reasons": [...]}`. The first of the reasons
    decided the verdict."""
    shown = f"the busiest link carried {evidence.rate_share:.0%} of its rate"
    notes = [shown, *_notes(evidence)]
    if evidence.rate_share >= RATE_REACHED:
        return {"verdict": "network-bound", "waited_for": None, "reasons": notes}
    short = list(_shortages(evidence))
    waited_for, why = _waited_for(evidence)
    if short and waited_for != "timers":
        texts = [text for _, text in short]
        return {"verdict": short[0][0], "waited_for": None, "reasons": [*texts, *notes]}
    return {"verdict": "waiting", "waited_for": waited_for, "reasons": [why, *notes]}


def short_of_processors(evidence: Evidence) -> str:
    """Returns the reason why a worker's timer may have expired only because no processor was free;
    empty if that is impossible."""
    used = evidence.usage
    if not used.wall_s:
        return ""
    for _, text in _shortages(evidence):
        return text
    name, wait = _largest(used.wait_s)
    if wait >= LATE * used.wall_s:
        return f"{name} waited for a processor for {_share(wait, evidence)} of the time"
    return ""


def _waited_for(evidence: Evidence) -> tuple[str, str]:
    """Returns what kept the links idle, as a word and as a sentence. The most certain cause is
    considered first."""
    if evidence.unexplained > AGAIN * evidence.sent:
        return (
            "timers",
            f"workers waited for their retransmission timers: {evidence.unexplained} packets "
            "that were not lost were sent again",
        )
    if evidence.faults:
        return "faults", f"rounds waited because of faults: {', '.join(evidence.faults)}"
    if evidence.window_share < RATE_REACHED:
        return (
            "window",
            f"workers waited for results: the window fills only {evidence.window_share:.0%} of "
            "the bandwidth-delay product",
        )
    if evidence.losses:
        return (
            "losses",
            f"workers waited for lost frames: {evidence.losses} frames were lost, and "
            f"{evidence.retransmitted} contributions were sent again",
        )
    if evidence.brief:
        return "brevity", (
            "the rounds are so short that they end before their packets have filled the links"
        )
    if evidence.delayed:
        return "delay", "rounds waited for the delay of the links"
    return "unknown", "neither a link nor a processor was busy, and no counter shows why"


def _shortages(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yields each shortage of processors as a verdict and its reason."""
    if not evidence.usage.wall_s:
        return
    for found in (_full_core(evidence), _full_machine(evidence), _waited(evidence)):
        if found:
            yield found
    if stolen := _stolen(evidence):
        yield stolen


def _full_core(evidence: Evidence) -> tuple[str, str] | None:
    name, cpu = _largest(evidence.usage.cpu_s)
    if cpu < CORE_FULL * evidence.usage.wall_s:
        return None
    return "cpu-bound", f"{name} used {_share(cpu, evidence)} of one processor"


def _full_machine(evidence: Evidence) -> tuple[str, str] | None:
    total = sum(evidence.usage.cpu_s.values())
    if total < MACHINE_FULL * evidence.processors * evidence.usage.wall_s:
        return None
    share = total / (evidence.processors * evidence.usage.wall_s)
    return "cpu-bound", f"this run used {share:.0%} of all {evidence.processors} processors"


def _waited(evidence: Evidence) -> tuple[str, str] | None:
    """Returns the shortage if one process waited for a processor for at least the fraction WAITED
    of the time. Also returns it if the waits of all processes add up to half of the time in which
    the busiest link was idle, because each process delays the others."""
    wall_s = evidence.usage.wall_s
    name, wait = _largest(evidence.usage.wait_s)
    idle = WAITED_FOR_IDLE * (1 - evidence.rate_share)
    if wait < WAITED * wall_s and sum(evidence.usage.wait_s.values()) < idle * wall_s:
        return None
    capacity = evidence.processors * evidence.usage.wall_s
    others = max(0.0, evidence.usage.busy_s - sum(evidence.usage.cpu_s.values())) / capacity
    waited = f"{name} waited for a processor for {_share(wait, evidence)} of the time"
    return "starved", f"{waited}; processes outside this run used {others:.0%} of the machine"


def _stolen(evidence: Evidence) -> tuple[str, str] | None:
    share = evidence.usage.stolen_s / (evidence.processors * evidence.usage.wall_s)
    reason = f"the hypervisor took {share:.0%} of the machine's processor time"
    return ("starved", reason) if share > STOLEN else None


def _notes(evidence: Evidence) -> list[str]:
    notes = _drops(evidence)
    if not evidence.usage.wall_s:
        return [*notes, "this run used no real time: its times follow from links and queues alone"]
    name, cpu = _largest(evidence.usage.cpu_s)
    return [*notes, f"the busiest process, {name}, used {_share(cpu, evidence)} of one processor"]


def _drops(evidence: Evidence) -> list[str]:
    notes = []
    if evidence.other_drops:
        notes.append(
            f"{evidence.other_drops} packets were lost although nothing dropped them on purpose"
        )
    if evidence.injected_drops:
        notes.append(f"{evidence.injected_drops} packets were dropped on purpose")
    return notes


def _largest(seconds: dict[str, float]) -> tuple[str, float]:
    return max(seconds.items(), key=lambda item: item[1], default=("none", 0.0))


def _share(seconds: float, evidence: Evidence) -> str:
    return f"{seconds / evidence.usage.wall_s:.0%}"

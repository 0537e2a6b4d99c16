"""Was it the network that was measured, or the machine? The verdict, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.usage import Usage

RATE_REACHED = 0.90  # of the busiest link's rate: then the link was the limit, whatever else was
CORE_FULL = 0.80  # of one processor, for a process whose work is one thread's
MACHINE_FULL = 0.85  # of all processors, by this run's processes
WAITED = 0.15  # of the time, ready to run without a processor
STOLEN = 0.05  # of all processors, taken by the hypervisor


@dataclass(frozen=True)
class Evidence:
    """What the verdict is drawn from; `usage` spans the rounds only.

    rate_share: bits that crossed the busiest link over what it could carry, in the rounds.
    """

    rate_share: float
    usage: Usage
    processors: int
    injected_drops: int
    other_drops: int


def judge(evidence: Evidence) -> dict[str, object]:
    """`{"verdict": ..., "reasons": [...]}`, the first reason being the one that decided."""
    if not evidence.usage.wall_s:
        why = "no processor took part: time is what links and queues make of it"
        return {"verdict": "virtual-time", "reasons": [why, *_drops(evidence)]}
    reasons = [reason for reason in _shortages(evidence) if reason]
    shown = f"the busiest link carried {evidence.rate_share:.0%} of its rate"
    if evidence.rate_share >= RATE_REACHED:
        return {"verdict": "network-bound", "reasons": [shown, *_notes(evidence)]}
    if reasons:
        verdict = reasons[0][0]
        texts = [text for _, text in reasons]
        return {"verdict": verdict, "reasons": [*texts, shown, *_notes(evidence)]}
    why = "no process was short of processor time: the rest went into waiting for packets"
    return {"verdict": "network-bound", "reasons": [why, shown, *_notes(evidence)]}


def _shortages(evidence: Evidence) -> list[tuple[str, str] | None]:
    return [_full_core(evidence), _full_machine(evidence), _waited(evidence), _stolen(evidence)]


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
    name, wait = _largest(evidence.usage.wait_s)
    if wait < WAITED * evidence.usage.wall_s:
        return None
    capacity = evidence.processors * evidence.usage.wall_s
    others = max(0.0, evidence.usage.busy_s - sum(evidence.usage.cpu_s.values())) / capacity
    waited = f"{name} waited {_share(wait, evidence)} of the time for a processor"
    return "starved", f"{waited}; {others:.0%} of the machine was busy outside this run's processes"


def _stolen(evidence: Evidence) -> tuple[str, str] | None:
    share = evidence.usage.stolen_s / (evidence.processors * evidence.usage.wall_s)
    return (
        ("starved", f"the hypervisor took {share:.0%} of the machine") if share > STOLEN else None
    )


def _notes(evidence: Evidence) -> list[str]:
    name, cpu = _largest(evidence.usage.cpu_s)
    busiest = f"the busiest process, {name}, used {_share(cpu, evidence)} of one processor"
    return [*_drops(evidence), busiest]


def _drops(evidence: Evidence) -> list[str]:
    notes = []
    if evidence.other_drops:
        notes.append(f"{evidence.other_drops} packets were lost that nobody dropped on purpose")
    if evidence.injected_drops:
        notes.append(f"{evidence.injected_drops} packets were dropped on purpose")
    return notes


def _largest(seconds: dict[str, float]) -> tuple[str, float]:
    return max(seconds.items(), key=lambda item: item[1], default=("none", 0.0))


def _share(seconds: float, evidence: Evidence) -> str:
    return f"{seconds / evidence.usage.wall_s:.0%}"

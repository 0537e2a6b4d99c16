"""Finds what the counts of a run on real links leave in doubt: signs that a fault of the program
explains, but that a process without a processor, or a loss, explains as well.

A run is passed only if something else clears its doubts, such as the same scenario in virtual time
(experiment/virtual_rerun.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from agglab.testbed.judge.findings import Case, by_timers, intended_repeats
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.resolved import own_path
from agglab.testbed.systems.base import SOURCE


@dataclass(frozen=True)
class Doubt:
    """Something that may be a finding. kind: the kind of that finding. text: what happened, and
    what else may explain it. firm: whether the run cannot be judged unless the doubt is cleared. A
    doubt that is not firm is about so few packets that they are tolerated on real links."""

    kind: str
    text: str
    firm: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def doubts(case: Case) -> list[Doubt]:
    """Returns all doubts. In virtual time there are none, because no process is ever late. If
    switches only forward what the kernel sends, there is no program in doubt either."""
    more_than_forward = _do_more_than_forward(case.resolved)
    if case.virtual or not (more_than_forward or case.resolved.system.sends_datagrams):
        return []
    if case.short:
        late = [Doubt(f.kind, f"{f.text}, but {case.short}", True) for f in by_timers(case)]
        if late:
            return late
    return list(_tolerated(case)) if more_than_forward else []


def _tolerated(case: Case) -> Iterator[Doubt]:
    """Yields a doubt for the packets that no run shows whose program answers at once, once, and to
    the right receiver, if nothing is lost and no process is late."""
    workers = [worker for job in case.jobs.values() for worker in job["workers"].values()]
    again = sum(worker["retransmitted"] for worker in workers) - intended_repeats(case)
    if again > 0:
        yield Doubt("sent-again", f"{again} packets were sent again", False)
    extra = sum(worker["duplicates"] + worker["late"] for worker in workers)
    if extra:
        yield Doubt("sent-unasked", f"{extra} answers came to workers that had them", False)


def _do_more_than_forward(resolved: ResolvedScenario) -> bool:
    """Returns whether a switch runs another program than the one with which Agglab forwards."""
    return any(program.path != own_path(SOURCE) for program in resolved.programs.values())

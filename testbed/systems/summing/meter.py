"""Counts the slots in use on a switch on which each job has slots of its own, separate from those
of other jobs."""

from __future__ import annotations

from agglab.testbed.systems.base import ResolvedScenario, SlotMeter
from agglab.testbed.systems.slot_meter import Part, begun_by_some
from agglab.testbed.systems.slot_meter import slot_meter as meter_of
from agglab.testbed.systems.summing.trees import tree_of


def slot_meter(resolved: ResolvedScenario, deadline_sets: int = 0) -> SlotMeter | None:
    """Returns a function that counts the slots in use. Returns None if the jobs' slots change
    during the run, or if there are too many. Each slot has two cells, and at most one of them holds
    an incomplete sum. deadline_sets: how many cells a slot has instead if sums are closed at a
    deadline (`finals`), while they are incomplete."""
    sets = deadline_sets or 2
    parts: dict[str, list[Part]] = {}
    if resolved.scenario.switch.partition == "dynamic":
        return None
    for job in resolved.jobs:
        used = min(job.slots, job.window)
        cells = list(range(job.first_slot * sets, (job.first_slot + used) * sets))
        for switch, branch in tree_of(resolved.graph, resolved.whole(job)).branches.items():
            everybody = (1 << len(branch.children)) - 1
            part = begun_by_some("contributors", cells, everybody)
            if deadline_sets:
                part = Part(
                    ("contributors", "finals"), cells, lambda some, final: some and not final
                )
            parts.setdefault(switch, []).append(part)
    return meter_of(parts)

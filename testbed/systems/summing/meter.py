"""How many slots hold sums that are not complete, from the registers of a switch's program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import Registers
from agglab.testbed.systems.summing.trees import tree_of

CELLS_MAX = 2048
"""Of a switch; to read more would take longer than the run."""


@dataclass(frozen=True)
class _Part:
    """Cells of one job at one switch; full: the bitmap of a sum that is complete there."""

    cells: list[int]
    full: int


class SlotMeter:
    """Counts slots, at any moment. Each slot has two cells, of which one at most holds a sum that
    is not complete."""

    def __init__(self, parts: dict[str, Sequence[_Part]]) -> None:
        self._parts = parts

    def __call__(self, source: Registers, switch: str) -> int | None:
        """None where the switch cannot be read now, or has no job."""
        found = None
        for part in self._parts.get(switch, ()):
            bitmaps = source.registers(switch, "contributors", part.cells)
            if bitmaps is None:
                return None
            found = (found or 0) + sum(bitmap not in (0, part.full) for bitmap in bitmaps)
        return found


def slot_meter(resolved: ResolvedScenario) -> SlotMeter | None:
    """None where jobs move while the run goes on, or have too many slots to look at all."""
    parts: dict[str, list[_Part]] = {}
    if resolved.scenario.switch.partition == "dynamic":
        return None
    for job in resolved.jobs:
        used = min(job.slots, job.window)
        cells = [
            slot << 1 | half
            for slot in range(job.first_slot, job.first_slot + used)
            for half in (0, 1)
        ]
        for switch, branch in tree_of(resolved.graph, resolved.whole(job)).branches.items():
            parts.setdefault(switch, []).append(_Part(cells, (1 << len(branch.children)) - 1))
    most = max(sum(len(part.cells) for part in own) for own in parts.values())
    return SlotMeter(dict(parts)) if most <= CELLS_MAX else None

"""Counts the slots that hold incomplete sums, from the registers of a switch's program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agglab.testbed.systems.base import Registers, SlotMeter

CELLS_MAX = 2048
"""The largest number of cells that are read from a switch at a time. Reading more would take longer
than the run."""


@dataclass(frozen=True)
class Part:
    """Some cells of one switch. under_way: a function that takes the values of a cell in each of
    `registers` and returns whether the cell holds an incomplete sum."""

    registers: tuple[str, ...]
    cells: list[int]
    under_way: Callable[..., bool]

    def count(self, source: Registers, switch: str) -> int | None:
        """Returns the number of incomplete sums; None if the switch cannot be read now."""
        columns = []
        for name in self.registers:
            read = source.registers(switch, name, self.cells)
            if read is None:
                return None
            columns.append(read)
        return sum(self.under_way(*row) for row in zip(*columns, strict=True))


def begun_by_some(register: str, cells: list[int], everybody: int) -> Part:
    """Returns a Part for a register that says which contributions a sum contains, or how many.
    everybody: the register's value for a complete sum."""
    return Part((register,), cells, lambda so_far: so_far not in (0, everybody))


def slot_meter(parts: Mapping[str, Sequence[Part]]) -> SlotMeter | None:
    """Returns a function that counts the incomplete sums in these parts, given by switch. Returns
    None if there are no cells, or too many to count."""
    cells = [sum(len(part.cells) * len(part.registers) for part in own) for own in parts.values()]
    if not 0 < max(cells, default=0) <= CELLS_MAX:
        return None

    def count(source: Registers, switch: str) -> int | None:
        found = [part.count(source, switch) for part in parts.get(switch, ())]
        known = [slots for slots in found if slots is not None]
        return sum(known) if known and len(known) == len(found) else None

    return count

"""Adds up the counts of switches' counters across restarts of the switches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

Count = tuple[int, int]
"""The number of packets, and their bytes."""


class KeptCounts:
    """The values that the counters of P4 programs had when their switches were stopped."""

    def __init__(self) -> None:
        self._before: dict[Hashable, dict[int, Count]] = {}

    def keep(self, counter: Hashable, cells: Mapping[int, Count]) -> None:
        """Stores the values of the cells of a counter, which the switch is about to lose."""
        self._before[counter] = self.total(counter, cells)

    def total(self, counter: Hashable, cells: Mapping[int, Count]) -> dict[int, Count]:
        """Returns what a counter has counted in each of its cells. cells: the current counts, to
        which those from before the switch was stopped are added."""
        total = dict(self._before.get(counter, {}))
        for index, (packets, size) in cells.items():
            packets_before, size_before = total.get(index, (0, 0))
            total[index] = packets + packets_before, size + size_before
        return total

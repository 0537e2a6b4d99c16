"""Who has which slots. Static: as declared. Dynamic: divided anew among the jobs that run, where a
job moves only between its rounds and never onto slots that another still has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.summing.partition import Range, divide


class Slots:
    """The pool of one run. static: each job's slots by its number; None where they are divided
    anew."""

    def __init__(self, total: int, static: Mapping[int, Range] | None) -> None:
        self._total = total
        self._static = static
        self._running: list[Tenant] = []
        self._held: dict[int, Range] = {}

    def join(self, tenant: Tenant) -> None:
        """The job runs from now on; it has no slots yet."""
        self._running.append(tenant)
        self._running.sort(key=lambda other: other.number)

    def leave(self, tenant: Tenant) -> None:
        if tenant in self._running:
            self._running.remove(tenant)
        self._held.pop(tenant.number, None)

    def held(self, tenant: Tenant) -> Range | None:
        return self._held.get(tenant.number)

    def move(self, tenant: Tenant) -> Range | None:
        """Between two rounds: take what is this job's and free; None if there is nothing yet."""
        if self._static is not None:
            self._held[tenant.number] = self._static[tenant.number]
        elif offered := self._offer(tenant):
            self._held[tenant.number] = offered
        return self.held(tenant)

    def _offer(self, tenant: Tenant) -> Range | None:
        """The job's due part, without what others still hold of it."""
        first, count = due(self._running, self._total)[tenant.number]
        others = (held for number, held in self._held.items() if number != tenant.number)
        low, high = first, first + count
        for start, length in sorted(others):
            if start < high and low < start + length:
                before, after = (low, min(high, start)), (max(low, start + length), high)
                low, high = max(before, after, key=lambda part: part[1] - part[0])
        return (low, high - low) if high > low else None


def due(running: Sequence[Tenant], total: int) -> dict[int, Range]:
    """Each job's part when all have moved: in the order of their numbers, by their shares."""
    parts = divide(total, [tenant.share for tenant in running])
    first, ranges = 0, {}
    for tenant, count in zip(running, parts, strict=True):
        ranges[tenant.number] = (first, count)
        first += count
    return ranges

"""Keeps track of which job has which slots. In a static partition, a job keeps the slots that the
scenario gives it. In a dynamic partition, the slots are divided again whenever the set of running
jobs changes. A job changes its slots only between its rounds, and never to slots that another job
still has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.summing.partition import Range, divide


class Slots:
    """The slots of one run. static: each job's slots by its number; None if they are divided
    dynamically."""

    def __init__(self, total: int, static: Mapping[int, Range] | None) -> None:
        self._total = total
        self._static = static
        self._running: list[Job] = []
        self._held: dict[int, Range] = {}

    def join(self, job: Job) -> None:
        """Adds the job to the running jobs. It has no slots until `move` gives it some."""
        self._running.append(job)
        self._running.sort(key=lambda other: other.number)

    def leave(self, job: Job) -> None:
        if job in self._running:
            self._running.remove(job)
        self._held.pop(job.number, None)

    def held(self, job: Job) -> Range | None:
        return self._held.get(job.number)

    def move(self, job: Job) -> Range | None:
        """Gives the job the free slots of the part that it is due, and returns them; None if none
        are free yet. It is called between two rounds."""
        if self._static is not None:
            self._held[job.number] = self._static[job.number]
        elif offered := self._offer(job):
            self._held[job.number] = offered
        return self.held(job)

    def _offer(self, job: Job) -> Range | None:
        """Returns the largest range of slots in the job's part that no other job still has."""
        first, count = due(self._running, self._total)[job.number]
        others = (held for number, held in self._held.items() if number != job.number)
        low, high = first, first + count
        for start, length in sorted(others):
            if start < high and low < start + length:
                before, after = (low, min(high, start)), (max(low, start + length), high)
                low, high = max(before, after, key=lambda part: part[1] - part[0])
        return (low, high - low) if high > low else None


def due(running: Sequence[Job], total: int) -> dict[int, Range]:
    """Returns the part of the slots that each job is due once all jobs have moved. The parts are in
    the order of the jobs' numbers, and their sizes follow from the shares."""
    parts = divide(total, [job.share for job in running])
    first, ranges = 0, {}
    for job, count in zip(running, parts, strict=True):
        ranges[job.number] = (first, count)
        first += count
    return ranges

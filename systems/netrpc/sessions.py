"""The sessions of NetRPC: the slots of a job, and what else determines its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agglab.systems.netrpc import wire
from agglab.systems.netrpc.service import load
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ResolvedScenario
from agglab.testbed.systems.summing.partition import Range
from agglab.testbed.systems.summing.sessions import SlotSessions


class Share(NamedTuple):
    """A job's share. first_slot, slots: the switch's slots for gathers. service: the name of the
    service or the path of its class. cells: the entries of the map, for all jobs together."""

    first_slot: int
    slots: int
    service: str
    cells: int


def window(chosen: int, service: str) -> int:
    """Returns the number of positions of a caller. A service with maps has at least two, and one of
    them is for gathers."""
    return max(min(chosen, wire.POSITIONS), 2 if load(service).maps() else 1)


class CallSessions:
    """The Sessions (systems.base) of NetRPC. services: the jobs' services, by the jobs' numbers."""

    def __init__(self, resolved: ResolvedScenario, services: Mapping[int, str], cells: int) -> None:
        self._slots = SlotSessions(resolved)
        self._services, self._cells = services, cells

    def _share(self, job: Job, held: Range | None) -> Share | None:
        return None if held is None else Share(*held, self._services[job.number], self._cells)

    def join(self, job: Job) -> None:
        self._slots.join(job)

    def leave(self, job: Job) -> None:
        self._slots.leave(job)

    def reserved(self, job: Job) -> Share | None:
        return self._share(job, self._slots.reserved(job))

    def held(self, job: Job) -> Share | None:
        return self._share(job, self._slots.held(job))

    def take(self, job: Job) -> Share | None:
        return self._share(job, self._slots.take(job))

    def changed(self, job: Job) -> Mapping[str, Any]:
        return self._slots.changed(job)

    def begin(self, job: Job) -> Mapping[str, Any]:
        begun = self._slots.begin(job)
        return {
            "first_tag": begun["first_tag"],
            "window": window(begun["window"], self._services[job.number]),
        }

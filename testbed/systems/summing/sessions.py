"""Sessions: the slots that a job has, and tags that no older packet bears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agglab.testbed.scenario.jobs import Tenant
from agglab.testbed.systems.base import NoSession, Setting
from agglab.testbed.systems.summing.partition import Range, ranges
from agglab.testbed.systems.summing.slots import Slots

SESSION_BITS = 20
"""A session's first tag is a multiple of 2^20, and 1 (docs/protocol.md, Sessions)."""
TAGS_COMPARABLE = 1 << 31
"""A tag that is so far ahead of one that some cell still holds is taken for one behind it."""


class SlotSessions:
    """See systems.base.Sessions; a share is a Range of slots."""

    def __init__(self, setting: Setting) -> None:
        switch = setting.scenario.switch
        places = zip(setting.jobs, ranges(setting.scenario), strict=True)
        dynamic = switch.partition == "dynamic"
        self._static = None if dynamic else {job.number: place for job, place in places}
        self._slots = Slots(switch.slots, self._static)
        self._lanes = setting.lanes
        self._next_tag = 1

    def join(self, job: Tenant) -> None:
        self._slots.join(job)

    def leave(self, job: Tenant) -> None:
        self._slots.leave(job)

    def reserved(self, job: Tenant) -> Range | None:
        return None if self._static is None else self._static[job.number]

    def held(self, job: Tenant) -> Range | None:
        return self._slots.held(job)

    def take(self, job: Tenant) -> Range | None:
        return self._slots.move(job)

    def changed(self, job: Tenant) -> Mapping[str, Any]:
        return {"event": "slots", "range": self.held(job)}

    def begin(self, job: Tenant) -> Mapping[str, Any]:
        held = self.held(job)
        assert held is not None, "the job has slots"
        workload, (_, slots) = job.workload, held
        window = min(workload.window or slots, slots)
        chunks = -(-workload.elements // self._lanes)
        first_tag = self._next_first_tag((2 + chunks // window) * workload.rounds)
        return {"first_tag": first_tag, "slots": slots, "window": window}

    def _next_first_tag(self, tags: int) -> int:
        """Of a new session that may use so many tags a slot, ahead of all that switches may
        hold."""
        first = self._next_tag
        if first >= TAGS_COMPARABLE:
            raise NoSession("no tags are left for a new session: the run's sessions used 2^31")
        self._next_tag = (((first + tags) >> SESSION_BITS) + 1 << SESSION_BITS) + 1
        return first

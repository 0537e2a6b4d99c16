"""The sessions of jobs: the slots of a job, and tags that no older packet has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import NoSession, ResolvedScenario
from agglab.testbed.systems.summing.partition import Range
from agglab.testbed.systems.summing.slots import Slots

SESSION_BITS = 20
"""A session's first tag is a multiple of 2^20, plus 1 (docs/protocol.md, Sessions)."""
TAGS_COMPARABLE = 1 << 31
"""The range within which tags can be compared. If a tag is this far or farther ahead of a tag that
a cell still holds, it counts as being behind that tag."""


class SlotSessions:
    """The Sessions (systems.base) of systems that sum in slots. A share is a Range of slots."""

    def __init__(self, resolved: ResolvedScenario) -> None:
        dynamic = resolved.scenario.switch.partition == "dynamic"
        places = {job.number: (job.first_slot, job.slots) for job in resolved.jobs}
        self._static = None if dynamic else places
        self._slots = Slots(resolved.slots, self._static)
        self._lanes = resolved.lanes
        self._next_tag = 1

    def join(self, job: Job) -> None:
        self._slots.join(job)

    def leave(self, job: Job) -> None:
        self._slots.leave(job)

    def reserved(self, job: Job) -> Range | None:
        return None if self._static is None else self._static[job.number]

    def held(self, job: Job) -> Range | None:
        return self._slots.held(job)

    def take(self, job: Job) -> Range | None:
        return self._slots.move(job)

    def changed(self, job: Job) -> Mapping[str, Any]:
        return {"event": "slots", "range": self.held(job)}

    def begin(self, job: Job) -> Mapping[str, Any]:
        held = self.held(job)
        assert held is not None, "the job has slots"
        _, slots = held
        window = min(job.window, slots)
        chunks = -(-job.elements // self._lanes)
        first_tag = self._next_first_tag((2 * job.all_reduces + chunks // window) * job.rounds)
        return {"first_tag": first_tag, "slots": slots, "window": window}

    def _next_first_tag(self, tags: int) -> int:
        """Returns the first tag of a new session. It is ahead of all tags that switches may hold.
        tags: how many tags the session may use for each slot."""
        first = self._next_tag
        if first >= TAGS_COMPARABLE:
            raise NoSession(
                "no tags are left for a new session: the run's sessions have used all 2^31"
            )
        self._next_tag = (((first + tags) >> SESSION_BITS) + 1 << SESSION_BITS) + 1
        return first

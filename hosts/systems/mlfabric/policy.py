"""Policies by which the scheduler chooses the updates that are sent next. They are pure functions
of the waiting updates.

"fifo" is asynchronous training as it is without a scheduler. "shortest" is MLfabric's order: the
update with the fewest chunks first, and of equal updates the one that was requested first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agglab.hosts.systems.mlfabric.group import Member
from agglab.hosts.systems.mlfabric.wire import MEMBERS_MAX, Reason


@dataclass(frozen=True)
class Waiting:
    """One request that waits. order: its place among all requests that have come."""

    member: Member
    order: int


Order = Callable[[Waiting], tuple[int, ...]]

ORDERS: Mapping[str, Order] = {
    "fifo": lambda one: (one.order,),
    "shortest": lambda one: (len(one.member.chunks), one.order),
}


@dataclass(frozen=True)
class Policy:
    """A policy. order: one of ORDERS. bound: the largest number of versions by which an update may
    be old when it is committed; 0 for any number. group: the largest number of updates that travel
    together. divergence: the largest norm of what is committed at once, in units; 0 for any
    norm."""

    order: str
    bound: int
    group: int
    divergence: int

    def refused(self, member: Member, version: int) -> Reason | None:
        """Returns the reason why an update must not be sent, or None. The update would be the next
        to be committed after `version`."""
        if self.bound and version - member.read > self.bound:
            return Reason.STALE
        if self.divergence and member.norm > self.divergence:
            return Reason.LARGE
        return None

    def choose(self, waiting: Sequence[Waiting], room: int) -> list[Waiting]:
        """Returns the next group. It begins with the first update in order. Later updates of other
        workers join it as long as there is room and the replica's bound allows their sum. room: the
        largest number of updates."""
        found: list[Waiting] = []
        most = min(room, self.group, MEMBERS_MAX)
        for one in sorted(waiting, key=ORDERS[self.order]):
            norm = sum(each.member.norm for each in [*found, one])
            ranks = {each.member.rank for each in found}
            if len(found) == most:
                break
            if one.member.rank in ranks or (found and self.divergence and norm > self.divergence):
                continue
            found.append(one)
        return found

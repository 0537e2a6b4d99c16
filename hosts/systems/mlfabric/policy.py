"""Policies for which update the scheduler lets send next: pure functions of the waiting updates.

FIFO is asynchronous training as it is without a scheduler. SHORTEST is MLfabric's order: the update
with the fewest chunks first, of equal ones the first that asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agglab.hosts.systems.mlfabric.group import Member
from agglab.hosts.systems.mlfabric.wire import MEMBERS_MAX, Reason


@dataclass(frozen=True)
class Waiting:
    """One request. order: its place among all that have come."""

    member: Member
    order: int


Order = Callable[[Waiting], tuple[int, ...]]

ORDERS: Mapping[str, Order] = {
    "fifo": lambda one: (one.order,),
    "shortest": lambda one: (len(one.member.chunks), one.order),
}


@dataclass(frozen=True)
class Policy:
    """order: one of ORDERS. bound: the most versions that an update may be old when it is
    committed; 0: any number. group: how many updates travel together at most. divergence: the
    largest norm of what is committed at once, in units; 0: any norm."""

    order: str
    bound: int
    group: int
    divergence: int

    def refused(self, member: Member, version: int) -> Reason | None:
        """Returns the reason why an update must not be sent, if it would be the next to be
        committed after `version`."""
        if self.bound and version - member.read > self.bound:
            return Reason.STALE
        if self.divergence and member.norm > self.divergence:
            return Reason.LARGE
        return None

    def choose(self, waiting: Sequence[Waiting], room: int) -> list[Waiting]:
        """The next group: the first in order, and those after it of other workers, as long as there
        are fewer than `room` and the bound of the replica allows their sum."""
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

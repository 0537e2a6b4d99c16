"""The policies by which the scheduler chooses the updates that are sent next. Their methods are
pure functions of the waiting updates.

With the order "fifo", updates are sent as they were requested, as in asynchronous training without
a scheduler. With "shortest", which is MLfabric's order, the update with the fewest chunks is sent
first. Of updates with equally many chunks, the one that was requested first is sent first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agglab.systems.mlfabric.group import Member
from agglab.systems.mlfabric.wire import MEMBERS_MAX, Reason


@dataclass(frozen=True)
class Waiting:
    """An update whose transfer has been requested and not granted. order: the number of requests
    that came before its own."""

    member: Member
    order: int


Order = Callable[[Waiting], tuple[int, ...]]

ORDERS: Mapping[str, Order] = {
    "fifo": lambda one: (one.order,),
    "shortest": lambda one: (len(one.member.chunks), one.order),
}


@dataclass(frozen=True)
class Policy:
    """The settings of a policy. order: one of ORDERS. bound: the largest number of versions by
    which the model that an update was computed from may be old when the update is committed; 0 for
    any number. group: the largest number of updates that are granted together. divergence: the
    largest norm, in units, of updates that are granted together; 0 for any norm."""

    order: str
    bound: int
    group: int
    divergence: int

    def refused(self, member: Member, version: int) -> Reason | None:
        """Returns the reason why an update must not be sent, or None. version: the version of the
        model after which the update would be committed."""
        if self.bound and version - member.read > self.bound:
            return Reason.STALE
        if self.divergence and member.norm > self.divergence:
            return Reason.LARGE
        return None

    def choose(self, waiting: Sequence[Waiting], room: int) -> list[Waiting]:
        """Returns the updates of the next group. The group begins with the update that is first in
        order. Later updates of other workers are added as long as the group has room and the sum of
        the norms does not exceed `divergence`. room: the largest number of updates."""
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

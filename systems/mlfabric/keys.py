"""The keys of a scenario that are MLfabric's own."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.systems.mlfabric.policy import ORDERS
from agglab.systems.mlfabric.wire import MEMBERS_MAX
from agglab.testbed.schema.key import key, keys_list
from agglab.testbed.schema.kinds import Choice, Flag, Number, Pattern, Whole, duration


@dataclass(frozen=True)
class MlfabricKeys:
    """The keys of the section `mlfabric`."""

    order: str = key(
        "order",
        Choice(tuple(ORDERS)),
        "shortest",
        "who may send first: the worker that asked first, or the one whose update has the "
        "fewest chunks",
    )
    bound: int = key(
        "bound",
        Whole(0, 1_000_000),
        16,
        "the largest age, in versions, at which an update may be committed; 0: any age",
    )
    group: int = key(
        "group",
        Whole(1, MEMBERS_MAX),
        4,
        "the largest number of updates that travel together; the switch at the server sums them",
    )
    ahead: int = key(
        "ahead",
        Whole(1, 64),
        2,
        "how many updates of a worker may be in flight while it computes the next",
    )
    replica: bool = key("replica", Flag(), True, "whether a second server replicates the first")
    divergence: float = key(
        "divergence",
        Number(0.001, 30_000),
        2.0,
        "how far the replica may fall behind: the norm of the updates that it lacks, in units "
        "of a weight",
    )
    silence_s: float = key(
        "silence",
        duration("10ms", "60s"),
        0.5,
        "how long a server may be silent before the replica takes its place",
    )
    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only run servers: first the server's host, then that "
        "of the replica and the scheduler; without any, these are the first workers' hosts",
    )

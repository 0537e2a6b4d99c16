"""The keys of a scenario that are MLfabric's own."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts.systems.mlfabric.policy import ORDERS
from agglab.hosts.systems.mlfabric.wire import MEMBERS_MAX
from agglab.testbed.scenario.key import key, keys_list
from agglab.testbed.scenario.kinds import Choice, Flag, Number, Pattern, Whole, duration


@dataclass(frozen=True)
class MlfabricKeys:
    """The section `mlfabric`."""

    order: str = key(
        "order",
        Choice(tuple(ORDERS)),
        "shortest",
        "who may send first: whoever asked first, or whose update has the fewest chunks",
    )
    bound: int = key(
        "bound",
        Whole(0, 1_000_000),
        16,
        "the most versions that an update may be old when it is committed; 0: any number",
    )
    group: int = key(
        "group",
        Whole(1, MEMBERS_MAX),
        4,
        "updates that travel together at most, their sum made by the switch at the server",
    )
    ahead: int = key(
        "ahead",
        Whole(1, 64),
        2,
        "updates of a worker that may be on their way while it computes the next",
    )
    replica: bool = key("replica", Flag(), True, "whether there is a second server that follows")
    divergence: float = key(
        "divergence",
        Number(0.001, 30_000),
        2.0,
        "by how much the replica may be behind: the length of what it lacks, as a weight",
    )
    silence_s: float = key(
        "silence",
        duration("10ms", "60s"),
        0.5,
        "after which a server that answers nothing is given up for the replica",
    )
    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only serve: the server's, then the replica's, where the "
        "scheduler is, too; without any, these are the first workers'",
    )

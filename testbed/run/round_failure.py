"""Explains in one line why a round cannot end, and names who is responsible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agglab.testbed.base.worker_id import Event
from agglab.testbed.run.agent_group import AgentGroup, how
from agglab.testbed.systems.base import MissingChunks


@dataclass
class RoundFailure:
    """Why a round cannot end, and what is known about the failure.

    unrecoverable: whether running the round again would not help. emptied: whether the reason is a
    switch that lost its state. dead: how the program of each dead agent ended, by rank. left: how
    the user's own program ended, by rank, where the agent still answers. silent: ranks of agents
    that do not answer. waiting, unserved: what workers and servers wait for, by rank, in a form
    that the system defines. finished: the ranks of workers that have already ended the round.
    kernel_drops: how many datagrams the kernel has dropped at workers' sockets in this round.
    """

    first: str
    unrecoverable: bool = False
    emptied: bool = False
    report: str = ""
    dead: dict[int, str] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    kernel_drops: int = 0
    waiting: dict[int, list[Any]] = field(default_factory=dict)
    unserved: dict[int, list[Any]] = field(default_factory=dict)

    def left_by(self, rank: int, event: Event) -> None:
        """Notes what a worker waited for when it left the round, according to its event."""
        self.waiting[rank] = event.get("waiting", [])
        self.kernel_drops += event.get("stats", {}).get("kernel_drops", 0)

    @property
    def gone(self) -> set[int]:
        """The ranks of agents with which, in their present state, no round can be completed."""
        return self.dead.keys() | self.left.keys() | self.silent


def failure_of(event: Event, group: AgentGroup, on_failure: str) -> RoundFailure | None:
    """Returns the failure of a round that an event indicates; None if the event does not indicate a
    failure."""
    if event["event"] == "switch_emptied":
        if on_failure == "fail":
            return None
        return RoundFailure(f"switch {event['switch']} has lost its state", emptied=True)
    rank = event.get("rank", -1)
    if rank not in group.needed or event["event"] not in ("failed", "ended"):
        return None
    failure = RoundFailure(how(group.called(rank), event), report=event.get("report", ""))
    if event["event"] == "ended":
        failure.dead[rank] = how("", event)
    elif event.get("gone"):
        failure.left[rank] = event["error"]
    else:
        failure.unrecoverable = event.get("missing") is None
        failure.left_by(rank, event)
    return failure


def explained(
    failure: RoundFailure, missing: Mapping[str, MissingChunks], group: AgentGroup
) -> tuple[str, int | None]:
    """Returns one line about the failure, and the rank of the agent that it names. It names a dead
    agent if there is one, then one whose user's program ended, then one that does not answer, then
    the one that owes most. No agent is named if it is a switch that is proven to be at fault.
    missing: the packets or results that each host or switch should have sent; the one that owes
    most comes first."""
    owing = [rank for name in missing for rank in group.ranks_at(name)[:1]]
    switch = next((name for name in missing if missing[name].is_proven), None)
    named = [*sorted(failure.dead), *failure.left, *sorted(failure.silent)]
    if not named and not switch:
        named = owing
    if not named:
        return _without_agent(failure, missing, switch, group.job.name), None
    rank = named[0]
    if rank in failure.left and rank not in failure.dead:
        return f"{group.called(rank)}: {failure.left[rank]}", rank
    parts = []
    if rank in failure.dead:
        parts.append(failure.dead[rank].strip())
    elif rank in failure.silent:
        parts.append("answers nothing")
    if owes := missing.get(group.agent(rank).host):
        parts.append(owes.of(group.job.name))
    return f"{group.called(rank)} {' and '.join(parts)}", rank


def _without_agent(
    failure: RoundFailure, missing: Mapping[str, MissingChunks], proven: str | None, job: str
) -> str:
    """Returns one line about a failure for which no agent is named. proven: the switch that is
    proven to be at fault, if there is one."""
    drops = failure.kernel_drops
    dropped = f"; hosts' kernels dropped {drops} datagrams as invalid or in excess" if drops else ""
    if proven and not failure.emptied:
        return f"switch {proven} {missing[proven].of(job)}{dropped}"
    name = next(iter(missing), None)
    return f"{failure.first}; switch {name} {missing[name].of(job)}" if name else failure.first

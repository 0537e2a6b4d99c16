"""The parts that an agent of a run is made of, for every system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.hosts.endpoint import Address
from agglab.hosts.workloads import Work

WORKER, SERVER, SCHEDULER = "worker", "server", "scheduler"
"""Roles. A worker reduces tensors; the others only answer: a server sums what workers send it, a
scheduler says who sends what, and when."""
ROLES = (WORKER, SERVER, SCHEDULER)


@dataclass(frozen=True)
class Part:
    """One agent's part in a job. rank: among its members; workers: how many these are; work: what a
    round of a worker is; settings:
    what the system has agreed on for this session, JSON values (its package says which keys);
    worker: a class of the user's own, `module:Class`, or nothing; hosts: the IPv4 address of each
    member's host, by rank."""

    job: int
    role: str
    rank: int
    workers: int
    bind: Address
    link_rate_bps: float | None
    work: Work
    give_up_s: float
    settings: Mapping[str, Any]
    worker: str = ""
    hosts: Sequence[str] = ()

    @property
    def elements(self) -> int:
        """The largest number of values in a worker's input."""
        return self.work.elements

    @property
    def dtype(self) -> str:
        """The type of these values."""
        return self.work.dtype

    @property
    def peers(self) -> list[Address]:
        """The peers that the settings name: `peers`, [address, port] of each."""
        return [(str(host), int(port)) for host, port in self.settings["peers"]]


@dataclass(frozen=True)
class Hooks:
    """The functions that are called within a round: on_progress(now_ns) five times a second,
    on_batch() whenever packets were waited for. on_look(): between rounds, whenever an agent that
    answers then has taken what came."""

    on_progress: Callable[[int], None] | None = None
    on_batch: Callable[[], None] | None = None
    on_look: Callable[[], None] | None = None


NO_HOOKS = Hooks()

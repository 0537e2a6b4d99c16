"""The description of one agent of a run, in a form that is the same for every system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.hosts.endpoint import Address
from agglab.hosts.workloads import Work

WORKER, SERVER, SCHEDULER = "worker", "server", "scheduler"
"""The roles of agents. A worker reduces tensors. A server sums what workers send it. A scheduler
says who sends what, and when. Servers and schedulers bring no tensors and only answer."""
ROLES = (WORKER, SERVER, SCHEDULER)


@dataclass(frozen=True)
class Part:
    """One agent's part in a job.

    job: the job's number. role: one of ROLES. rank: the agent's number among the members of its
    role. workers: the number of workers in the session. work: what a worker does in a round.
    settings: what the system has agreed on for this session, as JSON values; the system's package
    names the keys. worker: a class of the user's own as `module:Class`, or an empty text. hosts:
    the IPv4 address of each member's host, by rank. first_timeout_s: how long to wait for a first
    answer before packets are sent again; None if the link's rate and delays decide. delays_s: the
    part of the longest round trip between agents of the job that the links' delays cause.
    """

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
    first_timeout_s: float | None = None
    delays_s: float = 0.0

    @property
    def elements(self) -> int:
        """The largest number of values in a worker's input."""
        return self.work.elements

    @property
    def dtype(self) -> str:
        """The type of the values in a worker's input."""
        return self.work.dtype

    @property
    def peers(self) -> list[Address]:
        """The addresses that the settings list under `peers`, as (host, port)."""
        return [(str(host), int(port)) for host, port in self.settings["peers"]]


@dataclass(frozen=True)
class Hooks:
    """Functions that a reducer calls while it works. on_progress(now_ns) is called five times a
    second within a round. on_batch() is called within a round after each wait for packets; if it
    returns a time of time.monotonic_ns, it need not be called before that time. on_look() is called
    between rounds, when an agent that answers between rounds has taken the packets that came and
    has answered them."""

    on_progress: Callable[[int], None] | None = None
    on_batch: Callable[[], int | None] | None = None
    on_look: Callable[[], None] | None = None


NO_HOOKS = Hooks()

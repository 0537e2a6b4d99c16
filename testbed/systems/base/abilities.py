"""What a system declares about itself: its abilities, its counters and its kinds of attack."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.schema.target_names import P4_TARGETS

ALL_REDUCES = ("allreduce", "sparse_allreduce", "embedding_allreduce", "layers", "sgd")
"""The values of `workload.kind` whose result is the sum of one tensor of each worker. `layers` and
`sgd` sum this tensor in parts."""


@dataclass(frozen=True)
class Abilities:
    """What a scenario may ask of a system.

    clocks: the values of `backend` that it supports. targets: the values of `switch.target` that it
    supports. has_servers: whether it has agents besides the workers. In that case, metrics.json
    also has their counts. has_controller: whether tables change during a run. keys: those of
    SHARED_KEYS that it reads. A scenario that gives one of the other shared keys is refused.
    pieces: the types of dense tensors that its workers need not hold whole in virtual time.
    """

    workloads: tuple[str, ...] = ALL_REDUCES
    dtypes: tuple[str, ...] = ("float32", "int32")
    clocks: tuple[str, ...] = ("mininet", "virtual")
    targets: tuple[str, ...] = P4_TARGETS
    has_servers: bool = False
    has_controller: bool = False
    keys: frozenset[str] = frozenset()
    pieces: tuple[str, ...] = ()


SHARED_KEYS = (
    "switch.lanes",
    "switch.slots",
    "switch.partition",
    "workload.worker",
    "workload.window",
    "workload.first_timeout",
    "jobs[].slots",
    "jobs[].first_slot",
    "jobs[].share",
)
"""The keys that every scenario may have and that some systems do not read."""


@dataclass(frozen=True)
class Counter:
    """One counter of a switch's P4 program, in packets.

    name: the counter's name in the program. tally: the total to which it is added, over all
    switches: `malformed` (`totals.malformed`), `forged` (`totals.forged`) or `stale` (packets that
    only a delay explains). of_jobs: whether it counts each job's packets separately.
    """

    name: str
    meaning: str
    tally: str = ""
    of_jobs: bool = True


@dataclass(frozen=True)
class HostCounter:
    """A counter of an agent, in addition to those that all agents have (hosts/endpoint.py).
    explains_repeats: whether it counts packets that the system sends again without any trouble in
    the network."""

    unit: str
    meaning: str
    explains_repeats: bool = False


@dataclass(frozen=True)
class AttackKind:
    """A kind of attack. counted: the key in `System.counters` of the counter that the first switch
    increments for each of its frames."""

    counted: str

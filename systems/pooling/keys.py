"""The keys of a scenario that systems with a shared pool of slots have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agglab.testbed.schema.key import key, keys_list
from agglab.testbed.schema.kinds import Choice, Flag, Pattern, Whole, duration

SHARED, DIVIDED = "shared", "divided"
SCALE_MIN, SCALE_MAX = -64, 64
SCALE_LOG2 = 24


@dataclass(frozen=True)
class PoolingKeys:
    """The keys of a scenario's section for a system that has a shared pool of slots."""

    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only run servers, assigned to the jobs in turn; if "
        "absent, the topology's hosts for servers; if there are none, a server runs beside "
        "each job's first worker",
    )
    pool: str = key(
        "pool",
        Choice((SHARED, DIVIDED)),
        lambda: SHARED,
        "`shared`: a chunk of any job may take any slot; `divided`: each job has an equal part "
        "of the slots",
    )
    scale_log2: int = key(
        "scale_log2",
        Whole(SCALE_MIN, SCALE_MAX),
        SCALE_LOG2,
        "float32 values are multiplied by 2 to the power of this number and summed as integers; "
        "those that do not fit are sent as floats",
    )
    congestion_control: bool = key(
        "congestion_control",
        Flag(),
        True,
        "the window shrinks when packets are lost, or are marked because they would wait long "
        "for a link",
    )
    mark_after_s: float = key(
        "mark_after",
        duration("1us", "10s"),
        0.002,
        "a switch marks packets that would wait longer than this for a link",
    )


def part_of_pool(own: PoolingKeys, slots: int, index: int, jobs: int) -> tuple[int, int]:
    """Returns the first slot and the number of slots that a job may use. index: the job's position
    in the list of jobs."""
    if own.pool == SHARED:
        return 0, slots
    first, end = slots * index // jobs, slots * (index + 1) // jobs
    return first, end - first


def divided_too_much(own: PoolingKeys, slots: int, jobs: Sequence[object]) -> bool:
    """Returns whether some job would have no slot."""
    return own.pool == DIVIDED and len(jobs) > slots

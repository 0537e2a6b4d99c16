"""What counters tell about the work of switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agglab.testbed.systems.base.active_job import ActiveJob
from agglab.testbed.systems.base.readings import Cells
from agglab.testbed.systems.base.traffic import Counts, Histories

OfSwitch = Mapping[str, Cells]
"""A switch's counters, by their keys in `System.counters`."""


def no_frames(job: ActiveJob, switch: str, counters: OfSwitch) -> int:
    """Returns 0: the frames of a system that does not tell how many its switches send."""
    return 0


def in_time(job: ActiveJob, counters: OfSwitch, ran_s: float) -> str:
    """Returns nothing, because the switches of most systems wait for no time."""
    return ""


def unknown_share(servers: Sequence[Counts]) -> float | None:
    """Returns None: the share of a system that does not tell who completed its sums."""
    return None


@dataclass(frozen=True)
class SwitchWork:
    """What counters tell about the work of switches in a run. What a system leaves out is unknown,
    and is not judged.

    arrivals: the keys of counters, exactly one of which counts each frame that a switch receives.
    passes_within: those of packets that a switch split in two and recirculated; for each of them,
    the counters of `arrivals` count one packet more than the switch received. expected_frames: the
    number of frames that a switch should have sent for a job, by its own counters. too_early: what
    a switch did too early for a job that ran for so many seconds; empty if nothing. sums_owed: for
    systems in which results are right even if switches make no sums, how many sums all switches
    together owed in a job's rounds, where 0 is unknown; `complete` counts those that were made.
    share: the share of a job's chunks whose sums switches completed, by the counts of its servers.
    """

    arrivals: tuple[str, ...] = ()
    passes_within: tuple[str, ...] = ()
    expected_frames: Callable[[ActiveJob, str, OfSwitch], int] = no_frames
    too_early: Callable[[ActiveJob, OfSwitch, float], str] = in_time
    sums_owed: Callable[[ActiveJob, Histories, Counts], int] | None = None
    share: Callable[[Sequence[Counts]], float | None] = unknown_share

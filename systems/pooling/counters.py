"""The counters of programs whose jobs share all slots, and the frames that these programs must have
sent according to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agglab.testbed.systems.base import FORWARDING_COUNTERS, Cells, Counter, ResolvedScenario

COUNTERS: dict[str, Counter] = {
    "new": Counter("contribution_new", "contributions summed in a slot"),
    "duplicate": Counter("contribution_duplicate", "contributions that the slot already contained"),
    "collided": Counter(
        "contribution_collided",
        "contributions sent to the server because another chunk had their slot",
    ),
    "passed": Counter(
        "contribution_passed",
        "contributions sent again that no slot contained, and floats; both were sent to the server",
    ),
    "released": Counter(
        "slot_released",
        "contributions sent again, which took the partial sum of the slot to the server",
    ),
    "refused": Counter(
        "contribution_refused",
        "packets for the aggregator whose sender is neither a member nor a server of the job",
        tally="malformed",
    ),
    "complete": Counter("chunk_complete", "completed chunks that were sent to the server"),
    "to_all": Counter("result_to_all", "results sent down to all workers"),
    "to_one": Counter("result_to_one", "results sent down to the one worker that asked again"),
    **FORWARDING_COUNTERS,
}
EVICTED = Counter(
    "slot_evicted",
    "partial sums that a chunk of a higher priority displaced from their slot, sent to the server",
)

POOLING = ("new", "duplicate", "collided", "passed", "released", "refused", "to_all", "to_one")
ARRIVALS = (*POOLING, *FORWARDING_COUNTERS)
"""The counters of frames that the program receives. Exactly one of them counts each frame."""
ONE_FRAME = ("complete", "collided", "passed", "released", "to_one", "evicted")
"""The counters of events for which one frame is sent. For a result to all, one frame is sent for
each child."""


def expected_frames(counters: Mapping[str, Cells], index: int, children: int) -> int:
    """Returns the number of frames that a switch must have sent for one job, by its counters.
    children: the number of the switch's children in the job's tree."""

    def count(kind: str) -> int:
        return counters.get(kind, {}).get(index, (0, 0))[0]

    return count("to_all") * children + sum(count(kind) for kind in ONE_FRAME)


def repeats_by_collisions(
    resolved: ResolvedScenario, counters: Mapping[str, Mapping[str, Cells]]
) -> int:
    """Returns the most contributions that workers sent again because chunks of several jobs wanted
    the same slot. Each time, a sum may have stayed in a slot without the contribution that found
    the slot taken, and all workers ask for it. counters: by switch."""
    if len(resolved.jobs) == 1:
        return 0
    collided = sum(
        packets
        for cells in counters.values()
        for kind in ("collided", "evicted")
        for packets, _ in cells.get(kind, {}).values()
    )
    return collided * max(len(job.hosts) for job in resolved.jobs)


def share_of_switches(servers: Sequence[Mapping[str, int]]) -> float | None:
    """Returns the share of a job's chunks whose sums switches completed, by the counts of its
    servers; None if they summed nothing."""
    summed, whole = (sum(each[name] for each in servers) for name in ("summed_ever", "whole"))
    return whole / summed if summed else None

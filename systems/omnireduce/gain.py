"""Says what limits how much OmniReduce gains with a sparse tensor."""

from __future__ import annotations

from collections.abc import Iterator

from agglab.hosts.workloads import Embedding, Sparse
from agglab.systems.omnireduce.lanes import lanes_for
from agglab.systems.omnireduce.load import FilledPackets, filled_packets
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario

ZEROS_WORTH_SAYING = 0.1


def gain_limits(resolved: ResolvedScenario, job: ActiveJob, most_lanes: int) -> Iterator[str]:
    """Yields sentences about the first round of a job. most_lanes: the largest number of lanes that
    the scenario allows."""
    work = job.job.work
    if not isinstance(work, Sparse | Embedding):
        return
    filled = filled_packets(resolved.seed, resolved.lanes, job, 0)
    if not filled.of_worker:
        return
    yield _union(filled)
    if filled.zeros < ZEROS_WORTH_SAYING:
        return
    block = work.block if isinstance(work, Sparse) else work.width
    better = lanes_for([job.job], most_lanes)
    advice = f"; `switch.lanes: {better}` fits them better" if better != resolved.lanes else ""
    yield (
        f"{filled.zeros:.0%} of the values that workers send are zero, because packets of "
        f"{resolved.lanes} values do not match blocks of {block}{advice}"
    )


def _union(filled: FilledPackets) -> str:
    return (
        f"{filled.anywhere / filled.all:.0%} of the packets are sent to every worker, because some "
        f"worker fills them; a single worker fills {filled.of_worker / filled.all:.0%}"
    )

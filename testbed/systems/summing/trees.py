"""The tree of switches that sums a job, and the bytes that cross its links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from agglab.testbed.systems.base import ActiveJob, ByteRange, Cells
from agglab.testbed.systems.plan import Entries, Tree
from agglab.testbed.systems.summing.plan import PlacedJob, job_trees, plan
from agglab.topologies import Topology

Answers = Callable[[int, int], ByteRange]
"""A function that takes the number and the bytes of packets because of which a switch sent
something again. It returns the bytes that the switch sent."""


def tables(graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
    """Returns the entries of every switch (see System.tables)."""
    places: list[PlacedJob | None] = [None] * (1 + max((job.index for job in jobs), default=-1))
    for job in jobs:
        first, slots = job.share
        places[job.index] = PlacedJob(job.job.number, job.hosts, first, slots)
    return plan(graph, places).entries


@lru_cache(maxsize=64)
def tree_of(graph: Topology, job: ActiveJob) -> Tree:
    """Returns the job's tree. Raises ValueError with one line if there is none."""
    placed = PlacedJob(job.job.number, job.hosts, 0, 1)
    return job_trees(graph, [*[None] * job.index, placed])[job.job.number]


def directions(tree: Tree) -> Iterator[str]:
    """Yields both directions of each cable of the tree."""
    for switch, branch in tree.branches.items():
        for _, node in branch.children:
            yield from (f"{node}->{switch}", f"{switch}->{node}")


def retransmitted_bytes(
    tree: Tree,
    index: int,
    more: Mapping[str, int],
    counters: Mapping[str, Mapping[str, Cells]],
    answers: Answers,
) -> dict[str, ByteRange]:
    """Returns the retransmitted bytes by direction (see Traffic). Bytes sent
    upwards are counted by the worker or switch that sent them again. A switch counts the
    bytes that it sent downwards only for all children together."""

    def repeated(switch: str, kind: str) -> ByteRange:
        return answers(*counters[switch].get(kind, {}).get(index, (0, 0)))

    again = {}
    for switch, branch in tree.branches.items():
        down = repeated(switch, "repeated")
        for _, node in branch.children:
            by_worker = ByteRange(more[node], more[node]) if node in more else None
            again[f"{node}->{switch}"] = by_worker or repeated(node, "partial_repeated")
            again[f"{switch}->{node}"] = ByteRange(0, down.most)
    return again

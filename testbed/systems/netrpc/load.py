"""What a round puts on the links, and what is sent again."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from agglab.hosts.systems.netrpc import wire
from agglab.hosts.systems.netrpc.wire import Kind
from agglab.testbed.plan import Tree
from agglab.testbed.plan.forwarding import wiring_of
from agglab.testbed.systems.base import ActiveJob, Again, Cells
from agglab.testbed.systems.netrpc.plan import climb
from agglab.testbed.systems.summing.bounds import Load
from agglab.topologies import Topology


def all_reduce(
    graph: Topology, tree: Tree, job: ActiveJob, elements: int, is_float: bool, lanes: int
) -> Load:
    """Of a round: an OPEN, for floats an AGREE at each position in use, and the chunks. Nothing is
    added up below the root: each link carries what all workers below it send and hear."""
    chunks, window = -(-elements // lanes), job.job.window
    size = (1 + chunks) * wire.frame_bytes(Kind.ARRAY, lanes)
    if is_float:
        size += min(chunks, window) * wire.frame_bytes(Kind.NOTHING, lanes)
    sent: dict[str, int] = {}
    for host in job.hosts:
        for up, down in crossed(graph, tree, host):
            sent[up] = sent.get(up, 0) + size
            sent[down] = sent.get(down, 0) + size
    return Load(sent, chunks, -(-chunks // window))


def crossed(graph: Topology, tree: Tree, host: str) -> list[tuple[str, str]]:
    """The directions of each link between a host and the root, up and down, its own first."""
    nodes = [host, *climb(tree, wiring_of(graph), host)]
    return [(f"{a}->{b}", f"{b}->{a}") for a, b in pairwise(nodes)]


def sent_again(
    graph: Topology,
    tree: Tree,
    job: ActiveJob,
    more: Mapping[str, int],
    counters: Mapping[str, Mapping[str, Cells]],
) -> dict[str, Again]:
    """See System.sent_again. A worker's own link carried all that it sent again, the others at most
    that; of the answers to calls that had been executed before, none is longer than its call."""
    answered = counters[tree.root].get("duplicate", {}).get(job.index, (0, 0))[1]
    again: dict[str, Again] = {}
    for host in job.hosts:
        for hop, (up, down) in enumerate(crossed(graph, tree, host)):
            size, before = more.get(host, 0), again.get(up, Again(0, 0))
            least = size if hop == 0 else 0
            again[up] = Again(before.least + least, before.most + size)
            again[down] = Again(0, answered)
    return again

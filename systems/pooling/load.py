"""Computes how many bytes a round puts on the links if no two chunks need the same slot, and the
least time of the round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from agglab.hosts import wire as base_wire
from agglab.systems.pooling.hashed_slots import hashed_slots
from agglab.systems.pooling.keys import PoolingKeys, part_of_pool
from agglab.systems.pooling.scales import unfit_chunks
from agglab.systems.pooling.trees import directions, server_of, tree_of
from agglab.systems.pooling.worker import chunks_of_round
from agglab.testbed.systems.base import ActiveJob, Bounds, ByteRange, ResolvedScenario
from agglab.testbed.systems.between_hosts import lossy_crossing_s
from agglab.testbed.systems.forwarding import path_s, rates, slowest_crossing_s
from agglab.testbed.systems.plan import Tree
from agglab.topologies import Topology

CLASH = (
    "which chunks want the same slot at the same time, and so go to the server, depends on chance"
)


def sent(
    resolved: ResolvedScenario, job: ActiveJob, own: PoolingKeys, number: int, frame_bytes: int
) -> dict[str, int]:
    """Returns the bytes by direction (see Traffic).

    Every chunk crosses each cable once upwards and once downwards. Above the switch that sums it,
    it is a sum. For a chunk that does not fit the scale, these packets only report that. Each
    worker's floats of that chunk then cross every cable to the server, and their sum crosses every
    cable downwards.
    """
    chunks = chunks_of_round(job.job.elements, resolved.lanes)
    again = unfit_chunks(resolved.seed, resolved.lanes, own.scale_log2, job, number)
    tree, server = tree_of(resolved.graph, job), server_of(job)
    packets: Counter[str] = Counter(once(resolved.graph, job, chunks))
    for direction in _of_floats(tree, job, server) if again else ():
        packets[direction] += again
    return {direction: count * frame_bytes for direction, count in packets.items()}


def once(graph: Topology, job: ActiveJob, size: int) -> dict[str, int]:
    """Returns the bytes by direction if `size` bytes cross every cable of the job in each
    direction."""
    sizes: Counter[str] = Counter()
    for direction in directions(tree_of(graph, job), server_of(job)):
        sizes[direction] += size
    return dict(sizes)


def _of_floats(tree: Tree, job: ActiveJob, server: str) -> list[str]:
    """Returns the directions that a chunk of floats crosses, as often as it crosses them. Each
    worker's values take the whole path to the server, which may be on the worker's own host. Their
    sum crosses every cable downwards."""
    crossed = _down(tree, server)
    above = {node: switch for switch, at in tree.branches.items() for _, node in at.children}
    for host in job.hosts:
        node = host
        while node != tree.root:
            crossed.append(f"{node}->{above[node]}")
            node = above[node]
        crossed.append(f"{tree.root}->{server}")
    return crossed


def _down(tree: Tree, server: str) -> list[str]:
    ways = [f"{server}->{tree.root}"]
    for switch, branch in tree.branches.items():
        ways += [f"{switch}->{node}" for _, node in branch.children]
    return ways


def unpredictable(resolved: ResolvedScenario, own: PoolingKeys) -> str:
    """Returns why bytes cannot be predicted (see System.traffic). Each chunk is certain to
    find its slot free only if no two chunks in flight have the same slot."""
    jobs, taken = resolved.jobs, set[int]()
    for index, job in enumerate(jobs):
        first, slots = part_of_pool(own, resolved.slots, index, len(jobs))
        chunks = chunks_of_round(job.elements, resolved.lanes) + job.all_reduces - 1  # at most
        used = min(job.window, chunks * job.rounds)
        found = set(hashed_slots(job.number, job.window, first, slots)[:used].tolist())
        if used > slots or taken & found:
            return CLASH
        taken |= found
    return ""


def bounds(
    resolved: ResolvedScenario, job: ActiveJob, sizes: Mapping[str, int], frame_bytes: int
) -> Bounds:
    """Returns the bounds of a single job whose chunks are all summed in switches. sizes: the bytes
    that cross each direction."""
    graph, server = resolved.graph, server_of(job)
    crossed = {name: rate for name, rate in rates(graph) if sizes.get(name)}
    slowest_bps = min(crossed.values(), default=min(rate for _, rate in rates(graph)))
    trip_s = max(
        path_s(graph, host, server, frame_bytes) + path_s(graph, server, host, frame_bytes)
        for host in job.hosts
    )
    in_flight_s = job.job.window * frame_bytes * 8 / slowest_bps
    return Bounds(
        payload_s=job.job.elements * base_wire.VALUE_BYTES * 8 / slowest_bps,
        link_s=slowest_crossing_s(graph, sizes),
        lossy_s=lossy_crossing_s(graph, sizes),
        window_share=min(1.0, in_flight_s / trip_s) if trip_s else 1.0,
    )


def retransmitted_bytes(
    graph: Topology, job: ActiveJob, more: Mapping[str, int]
) -> dict[str, ByteRange]:
    """Returns the retransmitted bytes by direction (see Traffic).

    Everything that a worker sends again crosses its own cable, and any part of it each cable to the
    server. Everything that a server sends again crosses its own cable, and any part of it each
    cable to workers.
    """
    tree, server = tree_of(graph, job), server_of(job)
    from_workers = sum(more.get(host, 0) for host in job.hosts)
    from_server = more.get(server, 0)
    own = {host: ByteRange(more.get(host, 0), more.get(host, 0)) for host in (*job.hosts, server)}
    found: dict[str, ByteRange] = {}
    down = set(_down(tree, server))
    for direction in directions(tree, server):
        source = direction.partition("->")[0]
        if source in own:
            found[direction] = own[source]
        else:
            most = from_server if direction in down else from_workers
            before = found.get(direction, ByteRange(0, 0))
            found[direction] = ByteRange(0, before.most + most)
    # Where the server is a worker's host, both cross the cable to it.
    to_server = f"{tree.root}->{server}"
    if server in job.hosts:
        found[to_server] = ByteRange(0, from_workers + from_server)
    return found

"""The table entries of switches whose slots all jobs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agglab.hosts import wire
from agglab.systems.pooling.trees import members_below, server_of, tree_of
from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.systems.plan import Branch, Entries, Replica, TableEntry, Tree
from agglab.testbed.systems.plan.entries import ip_number, mac_number
from agglab.testbed.systems.plan.forwarding import flooding_groups, forwarding_tables, wiring_of
from agglab.topologies import Topology

# Constants of p4/include/pooling.p4; group 1 is plan.forwarding's.
FIRST_JOB_GROUP = 2
CONTRIBUTION, RESULT = 0, 1
SERVER_PORT_BASE = wire.WORKER_PORT_BASE - 8192
"""A server's UDP port is this number plus the number of its job."""


Match = dict[str, int | tuple[int, int]]


def tables(graph: Topology, jobs: Sequence[ActiveJob], preempts: bool) -> Mapping[str, Entries]:
    """Returns the entries (see System.tables). preempts: whether the program takes slots away from
    chunks."""
    wiring = wiring_of(graph)
    found = {}
    for switch in wiring.switches:
        groups = flooding_groups(wiring, switch)
        entries = [*forwarding_tables(wiring, switch), *_links(graph, switch)]
        for job in jobs:
            branch = tree_of(graph, job).branches.get(switch)
            if branch is not None:
                group = FIRST_JOB_GROUP + job.index
                groups[group] = tuple(Replica(port) for port, _ in branch.children)
                entries += _job_entries(graph, job, branch, group)
                entries += _evicted(graph, job, branch) if preempts else ()
        found[switch] = Entries(tuple(entries), groups)
    return found


def up_port(graph: Topology, job: ActiveJob, branch: Branch) -> int:
    """Returns the port through which a switch sends packets to the job's server."""
    if branch.parent is not None:
        return branch.parent[0]
    _, port = wiring_of(graph).attached[server_of(job)]
    return port


def _job_entries(
    graph: Topology, job: ActiveJob, branch: Branch, group: int
) -> Iterator[TableEntry]:
    tree, up = tree_of(graph, job), up_port(graph, job, branch)
    number, below = job.job.number, members_below(tree, job, branch.switch)
    job_parameters = {"job_index": job.index, "all": below, "parent": up, "group": group}
    yield TableEntry("jobs", {"job": number}, "set_job", job_parameters)
    yield _sender(up, number, RESULT, "from_above", {})
    yield _receiver(graph, job, up, CONTRIBUTION, None if branch.parent else server_of(job))
    for port, node in branch.children:
        bits = members_below(tree, job, node)
        if node in tree.branches:
            yield _sender(port, number, CONTRIBUTION, "from_switch", {"below": bits})
            yield _receiver(graph, job, port, RESULT, None)
        else:
            yield _sender(port, number, CONTRIBUTION, "from_worker", {"worker": bits})
            yield _receiver(graph, job, port, RESULT, node)
    yield from _ways(tree, job, branch)


def _evicted(graph: Topology, job: ActiveJob, branch: Branch) -> Iterator[TableEntry]:
    """Yields the entries for the job's incomplete sums whose slot another chunk took away."""
    parameters = {"job_index": job.index, "parent": up_port(graph, job, branch)}
    yield TableEntry("evicted", {"job": job.job.number}, "forward_evicted", parameters)


def _ways(tree: Tree, job: ActiveJob, branch: Branch) -> Iterator[TableEntry]:
    """Yields the entries for results that go to one worker."""
    for port, node in branch.children:
        bits = members_below(tree, job, node)
        for rank in range(bits.bit_length()):
            if bits >> rank & 1:
                match: Match = {"job": job.job.number, "members": 1 << rank}
                yield TableEntry("result_ports", match, "to_one", {"port": port})


def _sender(
    port: int, job: int, is_result: int, action: str, parameters: dict[str, int]
) -> TableEntry:
    match: Match = {
        "ingress_port": port,
        "job": job,
        "is_result": is_result,
    }
    return TableEntry("senders", match, action, parameters)


def _receiver(
    graph: Topology, job: ActiveJob, port: int, is_result: int, host: str | None
) -> TableEntry:
    """Returns the entry for a port. host: the host of the worker or server behind the port; None
    for another switch."""
    number = job.job.number
    mac, ip, udp_port = wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT
    if host is not None:
        mac, ip = graph.host(host).mac, graph.host(host).ip
        udp_port = (wire.WORKER_PORT_BASE if is_result else SERVER_PORT_BASE) + number
    match: Match = {
        "egress_port": port,
        "job": number,
        "is_result": is_result,
    }
    to = {"mac": mac_number(mac), "address": ip_number(ip), "udp_port": udp_port}
    return TableEntry("receivers", match, "to_receiver", to)


def _links(graph: Topology, switch: str) -> Iterator[TableEntry]:
    """Yields the entries of the links whose load the program monitors."""
    for port, link in graph.ports(switch).items():
        way = link.a_to_b if link.a.node == switch else link.b_to_a
        if way.rate_bps:
            ns = max(1, round(8e9 / way.rate_bps))
            yield TableEntry("links", {"egress_port": port}, "set_link_rate", {"ns": ns})

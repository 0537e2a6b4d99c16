"""The tree that leads from a job's workers over switches to its server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.systems.plan import Branch, Tree, Wiring
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.topologies import Topology


def server_of(job: ActiveJob) -> str:
    """Returns the host of a job's server. If there are several servers, jobs are assigned to them
    in turn."""
    servers = job.job.servers
    return servers[job.index % len(servers)]


@lru_cache(maxsize=256)
def tree_of(graph: Topology, job: ActiveJob) -> Tree:
    """Returns the shortest paths from a job's workers to its server. The root is the switch to
    which the server is attached. Raises ValueError with one line if there is no path."""
    wiring, server = wiring_of(graph), server_of(job)
    root, _ = wiring.attached[server]
    before = wiring.from_each[root]
    children: dict[str, list[str]] = {root: []}
    for host in job.hosts:
        node, above = host, wiring.attached[host][0]
        if above not in before:
            raise ValueError(f"no path from {host} to {server}")
        while node != root and node not in children.setdefault(above, []):
            children[above].append(node)
            node, above = above, before[above]
    ordered = [switch for switch in before if switch in children]
    return Tree(root, {name: _branch(wiring, name, children[name], before) for name in ordered})


def _branch(wiring: Wiring, switch: str, children: list[str], before: dict[str, str]) -> Branch:
    above = before[switch]
    parent = None if above == switch else (wiring.port_to(switch, above), above)
    at = {node: port for port, node in wiring.ports[switch].items()}
    return Branch(switch, tuple((at[node], node) for node in children), parent)


def members_below(tree: Tree, job: ActiveJob, node: str) -> int:
    """Returns the workers below a switch, or the worker on a host, as bits."""
    if node not in tree.branches:
        return 1 << job.hosts.index(node)
    bits = 0
    for _, child in tree.branches[node].children:
        bits |= members_below(tree, job, child)
    return bits


def directions(tree: Tree, server: str) -> Iterator[str]:
    """Yields both directions of each cable that a job's packets cross. If the server is on a
    worker's host, the cable of that host is yielded twice."""
    yield from (f"{tree.root}->{server}", f"{server}->{tree.root}")
    for switch, branch in tree.branches.items():
        for _, node in branch.children:
            yield from (f"{node}->{switch}", f"{switch}->{node}")

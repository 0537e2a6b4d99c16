"""The table entries of switches for Libra, the number of slots that a job needs, and the worker to
which a server sends results for all workers at a switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agglab.hosts import wire as base_wire
from agglab.systems.libra.load import addressed_worker, racks_of
from agglab.testbed.systems.base import FORWARDING_COUNTERS, ActiveJob, Counter
from agglab.testbed.systems.plan import Entries, Replica, TableEntry
from agglab.testbed.systems.plan.entries import ip_number, mac_number
from agglab.testbed.systems.plan.forwarding import flooding_groups, forwarding_tables, wiring_of
from agglab.topologies import Topology

SERVER_PORT_BASE = base_wire.WORKER_PORT_BASE - 8192
"""A server's UDP port is this number plus the number of its job."""
FIRST_JOB_GROUP = 2
"""The multicast group of the first job. Group 1 belongs to plan.forwarding."""
JOBS_MAX = 16
SERVERS_MAX = 64

COUNTERS: dict[str, Counter] = {
    "hot_new": Counter("hot_new", "packets of hot keys, summed"),
    "hot_duplicate": Counter("hot_duplicate", "packets of hot keys that had already been summed"),
    "hot_passed": Counter(
        "hot_passed",
        "packets of hot keys whose round or shape is not the group's, forwarded to the server",
    ),
    "passed": Counter("passed", "pushes and pulls of cold keys, forwarded to their server"),
    "complete": Counter(
        "group_complete", "complete sums of all workers at the switch, sent to a server"
    ),
    "repeated": Counter("sum_repeated", "complete sums sent to a server again"),
    "copied": Counter("result_copied", "results copied to all workers at the switch"),
    "refused": Counter(
        "refused",
        "packets for the aggregator that are malformed or have an unknown sender",
        "malformed",
    ),
    **FORWARDING_COUNTERS,
}


def slots_of(hot: int, lanes: int) -> int:
    """Returns how many groups a job may need. Every server's last group may be incomplete. Groups
    with the same number are adjacent for all servers that have them."""
    return -(-hot // lanes) + 2 * SERVERS_MAX if hot else 0


def tables(graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
    """Returns the entries (see System.tables). A job whose workers send directly to servers needs
    only forwarding."""
    if len(jobs) > JOBS_MAX:
        raise ValueError(f"{len(jobs)} jobs: the program holds at most {JOBS_MAX}")
    wiring = wiring_of(graph)
    found = {}
    for switch in wiring.switches:
        groups = flooding_groups(wiring, switch)
        entries = list(forwarding_tables(wiring, switch))
        for job in jobs:
            ranks = racks_of(graph, job).get(switch)
            if ranks and job.job.slots:
                entries += _job_entries(graph, job, switch, ranks)
                ports = [wiring.attached[job.job.hosts[rank]][1] for rank in ranks]
                groups[FIRST_JOB_GROUP + job.index] = tuple(map(Replica, ports))
        found[switch] = Entries(tuple(entries), groups)
    return found


def _job_entries(
    graph: Topology, job: ActiveJob, switch: str, ranks: Sequence[int]
) -> Iterator[TableEntry]:
    """Yields the entries for the workers of these ranks."""
    number, attached = job.job.number, wiring_of(graph).attached
    place = {rank: at for at, rank in enumerate(job.members)}
    everybody = sum(1 << place[rank] for rank in ranks)
    for rank in ranks:
        host = graph.host(job.job.hosts[rank])
        port, address = attached[host.name][1], ip_number(host.ip)
        own = {
            "job_index": job.index,
            "worker": 1 << place[rank],
            "all_workers": everybody,
            "address": address,
        }
        yield TableEntry("members", {"ingress_port": port, "job": number}, "contribute", own)
        to = {
            "mac": mac_number(host.mac),
            "address": address,
            "udp_port": base_wire.WORKER_PORT_BASE + number,
        }
        yield TableEntry("receivers", {"egress_port": port, "job": number}, "to_worker", to)
    for index, server in enumerate(job.job.servers):
        yield _to_server(graph, job, switch, index)
        told = graph.host(job.job.hosts[addressed_worker(job, list(ranks), server)])
        if told.name != server:
            yield from _copied(graph, job, switch, server, ip_number(told.ip))


def _to_server(graph: Topology, job: ActiveJob, switch: str, index: int) -> TableEntry:
    server = graph.host(job.job.servers[index])
    port = wiring_of(graph).port_to_host(switch, server.name)
    assert port is not None, "the job would have been refused"
    parameters = {
        "mac": mac_number(server.mac),
        "address": ip_number(server.ip),
        "udp_port": SERVER_PORT_BASE + job.job.number,
        "port": port,
        "first_slot": job.job.first_slot,
        "slots": job.job.slots,
        "server_count": len(job.job.servers),
    }
    match: dict[str, int | tuple[int, int]] = {"job": job.job.number, "server": index}
    return TableEntry("servers", match, "to_server", parameters)


def _copied(
    graph: Topology, job: ActiveJob, switch: str, server: str, told: int
) -> Iterator[TableEntry]:
    """Yields the entries for every port at which the server's packets may arrive: the server's own
    port, or the ports to other switches."""
    wiring = wiring_of(graph)
    home, own_port = wiring.attached[server]
    ports = [own_port] if home == switch else [port for port, _ in wiring.neighbours(switch)]
    for port in ports:
        match: dict[str, int | tuple[int, int]] = {
            "ingress_port": port,
            "src": ip_number(graph.host(server).ip),
            "dst": told,
            "job": job.job.number,
        }
        parameters = {"job_index": job.index, "group": FIRST_JOB_GROUP + job.index}
        yield TableEntry("groups", match, "copy", parameters)


@dataclass(frozen=True)
class RackPeer:
    """The workers at one switch, as a server addresses them. positions: their positions among the
    job's members. peer: the index, among the server's peers, of the one to which the server sends
    packets for all of them. address: the address of that peer; None if the peer is a worker."""

    positions: list[int]
    peer: int
    address: list[str | int] | None


def rack_peers(graph: Topology, job: ActiveJob, server: str) -> list[RackPeer]:
    """Returns one item for each switch with workers of the job."""
    place = {rank: at for at, rank in enumerate(job.members)}
    found, next_peer = [], len(job.members)
    for ranks in racks_of(graph, job).values():
        rank = addressed_worker(job, ranks, server)
        host = graph.host(job.job.hosts[rank])
        positions = [place[each] for each in ranks]
        if host.name == server or not job.job.slots:
            found.append(RackPeer(positions, place[rank], None))
            continue
        found.append(RackPeer(positions, next_peer, [host.ip, base_wire.AGGREGATOR_PORT]))
        next_peer += 1
    return found

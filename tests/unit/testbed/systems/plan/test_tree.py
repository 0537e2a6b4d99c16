"""Aggregation trees, forwarding and flooding over graphs of every kind."""

from collections import Counter, deque
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.hosts import wire
from agglab.testbed.systems.plan import Entries, Wiring, aggregation_tree
from agglab.testbed.systems.plan.entries import ip_number, mac_number
from agglab.testbed.systems.plan.forwarding import neighbours
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import Topology, fabrics, rack

SHAPES = {
    "rack": rack(3),
    "two_tier": fabrics.two_tier(3, 2),
    "three_tier": fabrics.three_tier(2, 2, 2),
    "leaf_spine": fabrics.leaf_spine(3, 2, 2),
    "fat_tree": fabrics.fat_tree(4),
    "ring": fabrics.ring_of_racks(5, 2),
}
EVERY_SHAPE = pytest.mark.parametrize("graph", SHAPES.values(), ids=SHAPES.keys())


def names(graph: Topology) -> tuple[str, ...]:
    return tuple(host.name for host in graph.hosts)


def leads_to(graph: Topology, node: str, port: int) -> tuple[str, int]:
    """What is plugged in at the other end."""
    link = graph.ports(node)[port]
    far = link.b if link.a.node == node else link.a
    return far.node, far.port


@EVERY_SHAPE
def test_every_worker_counts_once_at_the_root(graph: Topology) -> None:
    """Follow each branch's children down: bits of one switch are distinct, shares add up to 1."""
    tree = plan(graph, [PlacedJob(1, names(graph), 0, 4)]).trees[1]
    reached = []

    def follow(switch: str) -> None:
        branch = tree.branches[switch]
        assert len(set(branch.children)) == len(branch.children) > 0
        for port, node in branch.children:
            assert leads_to(graph, switch, port)[0] == node
            if node in tree.branches:
                parent = tree.branches[node].parent
                assert parent is not None and leads_to(graph, node, parent[0]) == (switch, port)
                follow(node)
            else:
                reached.append(node)

    assert tree.branches[tree.root].parent is None
    follow(tree.root)
    assert sorted(reached) == sorted(names(graph))


@EVERY_SHAPE
def test_entries_of_a_job_are_those_of_its_tree(graph: Topology) -> None:
    made = plan(graph, [PlacedJob(7, names(graph), 3, 4)])
    tree = made.trees[7]
    for switch, entries in made.entries.items():
        members = [entry for entry in entries.tables if entry.table == "members"]
        results = [entry for entry in entries.tables if entry.table == "results"]
        branch = tree.branches.get(switch)
        if branch is None:
            assert members == results == [] and set(entries.groups) == {1}
            continue
        everybody = (1 << len(branch.children)) - 1
        bits = [e.parameters["worker"] for e in members if e.action == "contribute"]
        assert sum(bits) == everybody and all(e.parameters["first_slot"] == 3 for e in members)
        assert [copy.port for copy in entries.groups[2]] == [port for port, _ in branch.children]
        concluding = [e.match["ingress_port"] for e in members if e.action == "conclude"]
        assert concluding == ([branch.parent[0]] if branch.parent else [])
        parents = {e.parameters["parent"] for e in members if e.action == "contribute"}
        assert parents == {branch.parent[0] if branch.parent else 511}
        to_switches = {e.match["egress_port"] for e in results if e.parameters["udp_port"] == 48864}
        below = {port for port, node in branch.children if node in tree.branches}
        assert to_switches == below | set(concluding)


@EVERY_SHAPE
def test_frames_are_forwarded_to_their_host_from_everywhere(graph: Topology) -> None:
    entries = plan(graph, []).entries
    for switch in entries:
        for host in graph.hosts:
            node, hops = switch, 0
            while node in entries:
                mac = int(host.mac.replace(":", ""), 16)
                (entry,) = [
                    e for e in entries[node].tables if e.table == "macs" and e.match["dst"] == mac
                ]
                node, _ = leads_to(graph, node, entry.parameters["port"])
                hops += 1
                assert hops < 10, "a loop"
            assert node == host.name


@pytest.mark.parametrize(
    "graph", [fabrics.three_tier(3, 3, 29), fabrics.fat_tree(4, 33)], ids=["three_tier", "fat_tree"]
)
def test_above_256_hosts_datagrams_are_routed_by_rack(graph: Topology) -> None:
    """From one host to some of every rack, hop by hop: by the MAC address that the sender knows,
    and by the longest prefix where that is the switches' own."""
    entries = plan(graph, []).entries
    tables = {switch: len(made.tables) for switch, made in entries.items()}
    hosts_of_a_rack = Counter(graph.ports(host.name)[0].b.node for host in graph.hosts)
    racks = len(hosts_of_a_rack)
    for switch, size in tables.items():
        own = hosts_of_a_rack.get(switch, 0)
        assert size == 3 * own + racks - (own > 0)
    source = graph.hosts[0]
    known = dict(neighbours(graph, source.name))
    for host in graph.hosts[1::7]:
        node, mac, hops = leads_to(graph, source.name, 0)[0], known[host.ip], 0
        while node in entries:
            port, mac = hop(entries[node], mac, ip_number(host.ip))
            node, _ = leads_to(graph, node, port)
            hops += 1
            assert hops < 10, "a loop"
        assert (node, mac) == (host.name, host.mac)


def hop(entries: Entries, mac: str, address: int) -> tuple[int, str]:
    """The port by which a switch forwards or routes a datagram, and the MAC address that it then
    has."""
    if mac != wire.AGGREGATOR_MAC:
        (found,) = [
            e for e in entries.tables if e.table == "macs" and e.match["dst"] == mac_number(mac)
        ]
        return found.parameters["port"], mac
    routes = []
    for entry in entries.tables:
        if entry.table == "routes":
            value, length = entry.match["dst"]
            if address >> (32 - length) == value >> (32 - length):
                routes.append((length, entry.parameters))
    _, best = max(routes, key=lambda found: found[0])
    return best["port"], ":".join(f"{byte:02x}" for byte in best["next_hop"].to_bytes(6, "big"))


@EVERY_SHAPE
def test_a_flooded_frame_reaches_every_host_once(graph: Topology) -> None:
    made = plan(graph, []).entries
    groups = {switch: [copy.port for copy in made[switch].groups[1]] for switch in made}
    for source in names(graph):
        heard = dict.fromkeys(names(graph), 0)
        travelling = deque([leads_to(graph, source, 0)])
        for _ in range(1000):
            if not travelling:
                break
            switch, came_by = travelling.popleft()
            for port in set(groups[switch]) - {came_by}:
                far, far_port = leads_to(graph, switch, port)
                if far in heard:
                    heard[far] += 1
                else:
                    travelling.append((far, far_port))
        assert heard == {host: int(host != source) for host in heard}


def test_jobs_spread_over_the_spines() -> None:
    graph = fabrics.leaf_spine(3, 2, 4)
    jobs = [PlacedJob(n, (f"h{n}", f"h{n + 4}", f"h{n + 8}"), n, 1) for n in (1, 2, 3, 4)]
    trees = plan(graph, jobs).trees
    assert [trees[n].root for n in (1, 2, 3, 4)] == ["s4", "s5", "s4", "s5"]
    kept = plan(graph, [None, jobs[1]])
    assert kept.trees[2].root == "s5"
    members = [e for e in kept.entries["s5"].tables if e.table == "members"]
    assert {e.parameters["job_index"] for e in members} == {1}


def test_a_job_of_one_rack_stays_in_it() -> None:
    trees = plan(fabrics.two_tier(3, 2), [PlacedJob(1, ("h3", "h4"), 0, 1)]).trees
    assert list(trees[1].branches) == ["s2"]


def test_the_root_is_in_the_middle() -> None:
    """Two racks at one end of a chain, one at the other; the switch between has no workers."""
    graph = fabrics.custom(
        ["s1", "s2", "s3", "s4"],
        [("h1", "s1"), ("s1", "s2"), ("h2", "s2"), ("s2", "s3"), ("s3", "s4"), ("h3", "s4")],
    )
    tree = aggregation_tree(Wiring(graph), ("h1", "h2", "h3"), 0)
    assert tree.root == "s2"
    assert tree.branches["s3"].parent and tree.branches["s3"].parent[1] == "s2"
    assert dict(tree.uplinks()) == {"s1": "s2", "s3": "s2", "s4": "s3"}


def test_that_the_farthest_is_near_counts_before_all_distances_together() -> None:
    """A chain: s2 is three cables from s5 and four from all together; s3 two, and five."""
    graph = fabrics.custom(
        ["s1", "s2", "s3", "s4", "s5"],
        [
            *(("h1", "s1"), ("h2", "s2"), ("h3", "s5")),
            *(("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s5")),
        ],
    )
    assert aggregation_tree(Wiring(graph), ("h1", "h2", "h3"), 0).root == "s3"


def test_what_cannot_be_planned_is_named() -> None:
    graph = fabrics.custom(["s1", "s2"], [("h1", "s1"), ("h2", "s2")])
    with pytest.raises(ValueError, match="job 3: no switch reaches s1 and s2"):
        plan(graph, [PlacedJob(3, ("h1", "h2"), 0, 1)])
    links = [(f"h{n}", "s1") for n in range(1, 66)]
    with pytest.raises(
        ValueError, match="job 1: 65 children at switch s1, but the program has only 64"
    ):
        plan(fabrics.custom(["s1"], links), [PlacedJob(1, tuple(h for h, _ in links), 0, 1)])


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 5), st.data())
def test_any_part_of_the_hosts_is_summed_whole(
    racks: int, spines: int, index: int, data: st.DataObject
) -> None:
    """Each worker's share of a sum that is halved at no switch: the root gets exactly all."""
    graph = fabrics.leaf_spine(racks, spines, 3)
    hosts = tuple(data.draw(st.lists(st.sampled_from(names(graph)), min_size=1, unique=True)))
    tree = aggregation_tree(Wiring(graph), hosts, index)

    def gathered(switch: str) -> Fraction:
        below = (node for _, node in tree.branches[switch].children)
        return sum(
            (gathered(n) if n in tree.branches else Fraction(1, len(hosts)) for n in below),
            Fraction(0),
        )

    assert gathered(tree.root) == 1
    assert all(branch.children for branch in tree.branches.values())

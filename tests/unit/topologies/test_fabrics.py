"""Graphs of several switches: their cables, numbers and addresses, and what is refused."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import needs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.topologies import (
    Direction,
    Drop,
    Topology,
    custom,
    fat_tree,
    leaf_spine,
    rack,
    ring_of_racks,
    three_tier,
    two_tier,
)
from agglab.topologies.kinds import KINDS

ROOT = Path(__file__).resolve().parents[3]


def cables(topology: Topology) -> list[str]:
    return [f"{link.a.node}:{link.a.port}-{link.b.node}:{link.b.port}" for link in topology.links]


def test_two_racks_written_out() -> None:
    topology = two_tier(2, 2)
    assert cables(topology) == [
        "h1:0-s1:1",
        "h2:0-s1:2",
        "h3:0-s2:1",
        "h4:0-s2:2",
        "s1:3-s3:1",
        "s2:3-s3:2",
    ]
    assert [host.ip for host in topology.hosts] == ["10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2"]
    assert topology.hosts[3].mac == "02:00:00:00:02:02"
    assert [switch.device_id for switch in topology.switches] == [1, 2, 3]
    assert topology.kind == "two_tier"


def test_servers_stand_behind_the_workers_of_their_rack() -> None:
    topology = two_tier(2, 2, servers=1)
    assert cables(topology) == [
        "h1:0-s1:1",
        "h2:0-s1:2",
        "p1:0-s1:3",
        "h3:0-s2:1",
        "h4:0-s2:2",
        "p2:0-s2:3",
        "s1:4-s3:1",
        "s2:4-s3:2",
    ]
    addresses = {host.name: (host.ip, host.mac) for host in topology.hosts}
    assert addresses["p2"] == ("10.0.2.3", "02:00:00:00:02:03")
    without = {host.name: (host.ip, host.mac) for host in two_tier(2, 2).hosts}
    assert without.items() < addresses.items(), "the workers' hosts are as they were"
    assert [host.name for host in topology.hosts if host.for_servers] == ["p1", "p2"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_has_servers_at_every_rack(kind: str) -> None:
    plain, served = KINDS[kind](), KINDS[kind](servers=2)
    own = [host for host in served.hosts if host.for_servers]
    assert [host for host in served.hosts if not host.for_servers] == list(plain.hosts)
    assert [host.name for host in own] == [f"p{n}" for n in range(1, len(own) + 1)]
    at = [served.ports(host.name)[0].b.node for host in own]
    racks = dict.fromkeys(plain.ports(host.name)[0].b.node for host in plain.hosts)
    assert at == [switch for switch in racks for _ in range(2)]
    with_servers = [link.name for link in served.links if not link.name.startswith("p")]
    assert with_servers == [link.name for link in plain.links], "and so the seeds of losses"


def test_leaf_spine_joins_every_rack_with_every_spine() -> None:
    topology = leaf_spine(3, 2, 1)
    assert cables(topology)[3:] == [
        "s1:2-s4:1",
        "s1:3-s5:1",
        "s2:2-s4:2",
        "s2:3-s5:2",
        "s3:2-s4:3",
        "s3:3-s5:3",
    ]


def test_ring() -> None:
    assert [link.name for link in ring_of_racks(4, 1).links[4:]] == [
        "s1-s2",
        "s2-s3",
        "s3-s4",
        "s4-s1",
    ]


def test_pods_of_racks_under_a_root() -> None:
    topology = three_tier(2, 3, 1)
    assert [host.ip for host in topology.hosts] == [f"10.0.{n}.1" for n in range(1, 7)]
    assert [link.name for link in topology.links[6:]] == [
        *("s1-s7", "s2-s7", "s3-s7", "s4-s8", "s5-s8", "s6-s8"),
        *("s7-s9", "s8-s9"),
    ]


@pytest.mark.parametrize("k", [2, 4, 6])
def test_fat_tree_is_that_of_the_paper(k: int) -> None:
    topology = fat_tree(k)
    half = k // 2
    assert len(topology.hosts) == k**3 // 4
    assert len(topology.switches) == k * k + half * half
    assert len(topology.links) == 3 * k**3 // 4
    degrees = {switch.name: len(topology.ports(switch.name)) for switch in topology.switches}
    assert set(degrees.values()) == {k}, "every switch has k ports"
    names = list(degrees)
    pods = {name: index // half for index, name in enumerate(names[: k * half])}
    for core in names[k * k :]:
        below = [link.a.node for link in topology.ports(core).values()]
        # names[k * half + n] is an aggregation switch of pod n // half.
        assert sorted((names.index(name) - k * half) // half for name in below) == list(range(k))
    for edge, pod in pods.items():
        above = [link.b.node for link in topology.ports(edge).values() if link.a.node == edge]
        assert above == names[(k + pod) * half : (k + pod + 1) * half]


def reached(topology: Topology, start: str) -> set[str]:
    seen, waiting = {start}, deque([start])
    while waiting:
        node = waiting.popleft()
        for link in topology.ports(node).values():
            for other in {link.a.node, link.b.node} - seen:
                seen.add(other)
                waiting.append(other)
    return seen


def default(kind: str, racks: int, workers: int) -> Topology:
    """With as many racks as it has if nothing is said."""
    return KINDS[kind](workers=workers)


SHAPES: list[Callable[[int, int], Topology]] = [
    two_tier,
    lambda racks, workers: three_tier(3, racks, workers),
    lambda racks, workers: leaf_spine(racks, 3, workers),
    lambda racks, workers: fat_tree(2 * (racks % 4 + 1), workers),
    lambda racks, workers: ring_of_racks(racks + 2, workers),
    *(partial(default, kind) for kind in KINDS if kind != "rack"),  # its addresses have rack 0
]


@settings(max_examples=40, deadline=None)
@given(shape=st.sampled_from(SHAPES), racks=st.integers(1, 12), workers=st.integers(1, 9))
def test_every_fabric_is_one_piece(
    shape: Callable[[int, int], Topology], racks: int, workers: int
) -> None:
    topology = shape(racks, workers)
    nodes = {host.name for host in topology.hosts} | {each.name for each in topology.switches}
    assert reached(topology, "h1") == nodes
    for switch in topology.switches:
        assert list(topology.ports(switch.name)) == list(
            range(1, len(topology.ports(switch.name)) + 1)
        )
    assert len({host.ip for host in topology.hosts}) == len(topology.hosts)
    for host in topology.hosts:
        (link,) = topology.ports(host.name).values()
        assert host.ip.split(".")[2] == link.b.node[1:], "the address names the rack"
        assert link.a.node == host.name, "a host is end a of its link"


def test_custom() -> None:
    topology = custom(
        ["core", "left", "right"],
        [("a", "left"), ("left", "core"), ("core", "right"), ("right", "b"), ("left", "c")],
    )
    assert cables(topology) == [
        "a:0-left:1",
        "left:2-core:1",
        "core:2-right:1",
        "b:0-right:2",
        "c:0-left:3",
    ]
    assert {host.name: host.ip for host in topology.hosts} == {
        "a": "10.0.2.1",
        "b": "10.0.3.1",
        "c": "10.0.2.2",
    }


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: two_tier(0, 4), "racks must be 1 to 254, not 0"),
        (lambda: two_tier(2, 255), "a rack holds 1 to 254 workers, not 255"),
        (lambda: three_tier(0, 2, 4), "pods must be 1 to 510, not 0"),
        (lambda: three_tier(2, 128, 4), "racks must be 1 to 254, not 256"),
        (lambda: leaf_spine(2, 0, 4), "spines must be 1 to 506, not 0"),
        (lambda: leaf_spine(2, 507, 4), "spines must be 1 to 506, not 507"),
        (lambda: leaf_spine(2, 505, 4, 2), "spines must be 1 to 504, not 505"),
        (lambda: fat_tree(5), "a fat tree's k must be even, not 5"),
        (lambda: fat_tree(22), "k must be 2 to 20, not 22"),
        (lambda: ring_of_racks(2, 1), "racks must be 3 to 254, not 2"),
        (lambda: custom([], [("a", "b")]), "switches must be 1 to 254, not 0"),
        (lambda: custom(["s"], [("a", "b"), ("a", "s")]), "the link a-b has a host at both ends"),
        (lambda: custom(["s"], [("s", "s")]), "a link leads from s to itself"),
        (lambda: custom(["s", "t"], [("a", "s"), ("t", "a")]), "host a has two links, to s and t"),
        (lambda: custom(["s", "t"], [("s", "t"), ("t", "s")]), "the link t-s appears twice"),
        (lambda: custom(["s", "t"], [("a", "s")]), "switch t has no link"),
        (lambda: custom(["s"], [("h1", "s"), ("too-long-a-name", "s")]), "exceeds 15 bytes"),
    ],
)
def test_refused(build: Callable[[], Topology], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        build()


def test_with_directions_by_pattern() -> None:
    plain = two_tier(2, 2)
    lossy = plain.with_directions("s*->h*", rate_bps=5, impairments=(Drop(0.5),))
    slow = lossy.with_directions("h[12]-s1", rate_bps=7).with_directions("s?-s3", delay_us=9)
    ways = {name: way for link in slow.links for name, _, _, way in link.directions()}
    assert ways["h1->s1"] == Direction(rate_bps=7)
    assert ways["s1->h1"] == Direction(rate_bps=7, impairments=(Drop(0.5),))
    assert ways["h3->s2"] == Direction()
    assert ways["s2->h3"] == Direction(rate_bps=5, impairments=(Drop(0.5),))
    assert ways["s3->s2"] == ways["s1->s3"] == Direction(delay_us=9)
    assert plain == two_tier(2, 2)
    with pytest.raises(ValueError, match=r"'h9-\*' matches no link"):
        plain.with_directions("h9-*", rate_bps=1)


def test_files_for_mn_build_the_same_graphs() -> None:
    needs.require("mininet")
    from agglab.testbed.real import distutils_stand_in

    distutils_stand_in.provide()
    before = list(sys.path)
    scope: dict[str, object] = {}
    path = ROOT / "topologies" / "mn.py"
    exec(compile(path.read_text(), str(path), "exec"), scope)  # as mn does
    assert sys.path == before, "already importable: nothing added"
    topos = scope["topos"]
    assert isinstance(topos, dict)
    expected = {
        "rack": (rack(3), {"workers": 3}),
        "two_tier": (two_tier(3, 2, 1), {"racks": 3, "workers": 2, "servers": 1}),
        "three_tier": (three_tier(2, 3, 2), {"pods": 2, "racks": 3, "workers": 2}),
        "leaf_spine": (leaf_spine(3, 2, 2), {"racks": 3, "spines": 2, "workers": 2}),
        "fat_tree": (fat_tree(4), {"k": 4}),
        "ring_of_racks": (ring_of_racks(3, 1), {"racks": 3, "workers": 1}),
    }
    assert set(topos) == set(KINDS)
    for name, (graph, arguments) in expected.items():
        made = topos[name](**arguments)
        assert sorted(made.hosts()) == sorted(host.name for host in graph.hosts)
        ends = {
            (info["node1"], info["port1"], info["node2"], info["port2"])
            for _, _, info in made.links(withInfo=True)
        }
        assert ends == {(x.a.node, x.a.port, x.b.node, x.b.port) for x in graph.links}
        assert made.nodeInfo("h1")["ip"] == f"{graph.hosts[0].ip}/16"

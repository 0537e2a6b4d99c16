"""Links as text: the lines given to ip and tc."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.network.links import (
    burst_bytes,
    create_lines,
    first_ends,
    node_lines,
    own_rate_lines,
    queue_lines,
    rate_lines,
)
from topologies import Direction, Jitter, Reorder, rack


def test_a_pair_is_born_in_its_two_namespaces() -> None:
    lines = create_lines(rack(2, mtu=9000), {"h1": 101, "h2": 102, "s1": 103})
    assert lines == [
        "link add name h1-eth0 netns 101 mtu 9000 address 02:00:00:00:00:01 type veth "
        "peer name s1-eth1 netns 103 mtu 9000 address 02:01:00:01:00:01",
        "link add name h2-eth0 netns 102 mtu 9000 address 02:00:00:00:00:02 type veth "
        "peer name s1-eth2 netns 103 mtu 9000 address 02:01:00:01:00:02",
    ]


def test_a_host_knows_every_neighbour_and_the_aggregator_but_not_itself() -> None:
    assert node_lines(rack(3), "h2") == [
        "link set dev lo up",
        "link set dev h2-eth0 up",
        "address add 10.0.0.2/16 dev h2-eth0",
        "neighbour add 10.0.0.1 lladdr 02:00:00:00:00:01 dev h2-eth0 nud permanent",
        "neighbour add 10.0.0.3 lladdr 02:00:00:00:00:03 dev h2-eth0 nud permanent",
        "neighbour add 10.0.255.254 lladdr 02:00:00:00:ff:fe dev h2-eth0 nud permanent",
    ]


def test_a_switch_has_no_address() -> None:
    assert node_lines(rack(2), "s1") == [
        "link set dev lo up",
        "link set dev s1-eth1 up",
        "link set dev s1-eth2 up",
    ]


def test_first_ends_are_those_of_the_node_set_up_first() -> None:
    hosts_first = first_ends(rack(2), ["h1", "h2", "s1"])
    assert hosts_first == {"h1": ["h1-eth0"], "h2": ["h2-eth0"], "s1": []}
    mixed = first_ends(rack(2), ["h2", "s1", "h1"])
    assert mixed == {"h2": ["h2-eth0"], "s1": ["s1-eth1"], "h1": []}


def test_each_end_shapes_what_it_sends() -> None:
    up = Direction(rate_bps=100_000_000, queue_packets=77)
    down = Direction(rate_bps=1_000_000_000, queue_bytes=123456)
    topology = rack(1, up, down)
    assert queue_lines(topology, "h1") == [
        "qdisc add dev h1-eth0 root handle 1: tbf rate 100000000bit burst 25000 limit 25000",
        "qdisc add dev h1-eth0 parent 1:1 handle 10: pfifo limit 77",
    ]
    assert queue_lines(topology, "s1") == [
        "qdisc add dev s1-eth1 root handle 1: tbf rate 1000000000bit burst 250000 limit 250000",
        "qdisc add dev s1-eth1 parent 1:1 handle 10: bfifo limit 123456",
    ]


def test_an_unshaped_direction_has_no_queue() -> None:
    assert queue_lines(rack(4), "s1") == []


def test_a_queue_without_a_limit_gets_the_stated_default() -> None:
    assert queue_lines(rack(1, Direction(rate_bps=1000)), "h1")[1].endswith("pfifo limit 1000")


def test_delay_is_under_the_rate_and_holds_what_is_under_way() -> None:
    both = queue_lines(rack(1, Direction(rate_bps=48_000_000, delay_us=5000)), "h1")
    # 48 Mbit/s is 100,000 frames of 60 bytes a second, so 500 in 5 ms, after a queue of 1000.
    assert both[1] == "qdisc add dev h1-eth0 parent 1:1 handle 20: netem delay 5000us limit 1501"
    alone = queue_lines(rack(1, Direction(delay_us=70)), "h1")
    assert alone == ["qdisc add dev h1-eth0 root handle 20: netem delay 70us limit 1071"]


@settings(deadline=None)
@given(rate_bps=st.integers(1, 10**11), frame=st.integers(82, 65549))
def test_a_bucket_holds_a_frame_and_no_more_than_two_milliseconds(
    rate_bps: int, frame: int
) -> None:
    burst = burst_bytes(rate_bps, frame)
    assert burst >= frame
    assert burst <= max(2 * frame, rate_bps / 8 * 0.002)


@pytest.mark.parametrize("workers", [1, 8, 254])
def test_interfaces_of_a_namespace_have_macs_of_their_own(workers: int) -> None:
    pids = {f"h{n}": n for n in range(1, workers + 1)} | {"s1": 9999}
    macs = re.findall("address (..(?::..){5})", "\n".join(create_lines(rack(workers), pids)))
    assert len(macs) == len(set(macs)) == 2 * workers


def test_a_rate_for_a_time_keeps_the_queue() -> None:
    """The bucket would give its child fifo its own limit: that is put right in the same batch."""
    slow = Direction(rate_bps=1_000_000, queue_packets=7)
    lines = rate_lines("h1-eth0", slow, 1514, 8_000_000)
    assert lines == [
        "qdisc change dev h1-eth0 root handle 1: tbf rate 8000000bit burst 3028 limit 3028",
        "qdisc change dev h1-eth0 parent 1:1 handle 10: pfifo limit 7",
    ]
    assert own_rate_lines("h1-eth0", slow, 1514) == [
        "qdisc change dev h1-eth0 root handle 1: tbf rate 1000000bit burst 3028 limit 3028",
        "qdisc change dev h1-eth0 parent 1:1 handle 10: pfifo limit 7",
    ]


def test_an_unshaped_end_gets_a_rate_and_loses_it() -> None:
    plain, delayed = Direction(), Direction(delay_us=10)
    (bucket, queue) = rate_lines("s1-eth1", plain, 1514, 8_000_000)
    assert bucket.startswith("qdisc add dev s1-eth1 root handle 1: tbf rate 8000000bit")
    assert queue == "qdisc add dev s1-eth1 parent 1:1 handle 10: pfifo limit 1000"
    assert own_rate_lines("s1-eth1", plain, 1514) == ["qdisc del dev s1-eth1 root"]
    replaced = rate_lines("s1-eth1", delayed, 1514, 8_000_000)
    assert replaced[0] == "qdisc del dev s1-eth1 root"
    assert "parent 1:1 handle 20: netem delay 10us" in replaced[2]
    assert "root handle 20: netem delay 10us" in own_rate_lines("s1-eth1", delayed, 1514)[1]


@pytest.mark.parametrize(
    ("direction", "says"),
    [
        (Direction(delay_us=50, impairments=(Jitter(20),)), "netem delay 60us 10us limit "),
        (Direction(impairments=(Jitter(5),)), "netem delay 2.5us 2.5us limit "),
        (Direction(impairments=(Reorder(0.25, 40),)), "netem delay 40us reorder 75% limit "),
    ],
)
def test_delays_by_chance_are_netems(direction: Direction, says: str) -> None:
    (line,) = queue_lines(rack(1, up=direction), "h1")
    assert says in line

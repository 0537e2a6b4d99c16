"""Links as text: the lines given to ip and tc."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed.real.links import (
    Sender,
    burst_bytes,
    create_lines,
    distribution,
    first_ends,
    node_lines,
    senders,
)
from agglab.topologies import Direction, Jitter, Reorder, Topology, rack


def queue_lines(topology: Topology, node: str) -> list[str]:
    """What shapes all that a node sends."""
    sent = senders(topology, {}).values()
    return [line for sending, sender in sent if sending == node for line in sender.lines()]


def test_a_pair_is_born_in_its_two_namespaces() -> None:
    lines = create_lines(rack(2, mtu=9000), {"h1": 101, "h2": 102, "s1": 103})
    size = "mtu 9000 gso_max_segs 1"
    assert lines == [
        f"link add name h1-eth0 netns 101 {size} address 02:00:00:00:00:01 type veth "
        f"peer name s1-eth1 netns 103 {size} address 02:01:00:01:00:01",
        f"link add name h2-eth0 netns 102 {size} address 02:00:00:00:00:02 type veth "
        f"peer name s1-eth2 netns 103 {size} address 02:01:00:01:00:02",
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


def test_a_delay_comes_before_the_rate_and_holds_what_is_under_way() -> None:
    both = queue_lines(rack(1, Direction(rate_bps=48_000_000, delay_us=5000)), "h1")
    assert both == [
        "qdisc add dev h1-eth0 root handle 20: netem delay 5000us limit 5000",
        "qdisc add dev h1-eth0 parent 20:1 handle 1: tbf rate 48000000bit burst 12000 limit 12000",
        "qdisc add dev h1-eth0 parent 1:1 handle 10: pfifo limit 1000",
    ]
    alone = queue_lines(rack(1, Direction(delay_us=70)), "h1")
    assert alone == ["qdisc add dev h1-eth0 root handle 20: netem delay 70us limit 1000"]


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
    slow = Sender("h1-eth0", Direction(rate_bps=1_000_000, queue_packets=7), 1514)
    assert slow.rate_lines(8_000_000) == [
        "qdisc change dev h1-eth0 root handle 1: tbf rate 8000000bit burst 3028 limit 3028",
        "qdisc change dev h1-eth0 parent 1:1 handle 10: pfifo limit 7",
    ]
    assert slow.rate_lines(None) == [
        "qdisc change dev h1-eth0 root handle 1: tbf rate 1000000bit burst 3028 limit 3028",
        "qdisc change dev h1-eth0 parent 1:1 handle 10: pfifo limit 7",
    ]


def test_an_unshaped_end_gets_a_rate_and_loses_it() -> None:
    plain = Sender("s1-eth1", Direction(), 1514)
    (bucket, queue) = plain.rate_lines(8_000_000)
    assert bucket.startswith("qdisc add dev s1-eth1 root handle 1: tbf rate 8000000bit")
    assert queue == "qdisc add dev s1-eth1 parent 1:1 handle 10: pfifo limit 1000"
    assert plain.rate_lines(None) == ["qdisc del dev s1-eth1 root"]
    delayed = Sender("s1-eth1", Direction(delay_us=10), 1514)
    (bucket, _) = delayed.rate_lines(8_000_000)
    assert bucket.startswith("qdisc add dev s1-eth1 parent 20:1 handle 1: tbf rate 8000000bit")
    assert delayed.rate_lines(None) == ["qdisc del dev s1-eth1 parent 20:1"]


@pytest.mark.parametrize(
    ("direction", "says"),
    [
        (Direction(delay_us=50, impairments=(Jitter(20),)), "70us 20us distribution jitter20 "),
        (Direction(impairments=(Jitter(5),)), "5us 5us distribution jitter5 "),
        (
            Direction(delay_us=3, impairments=(Reorder(0.25, 40), Jitter(6))),
            "49us 46us distribution reorder0.25x40-jitter6 ",
        ),
    ],
)
def test_delays_by_chance_are_netems(direction: Direction, says: str) -> None:
    (line,) = queue_lines(rack(1, up=direction), "h1")
    assert f"netem delay {says}" in line


def test_delays_that_faults_may_add_find_their_netem_there() -> None:
    late = Jitter(3_000_000)
    sender = Sender("h1-eth0", Direction(rate_bps=10**6, delay_us=50), 1514, (late,))
    assert sender.lines()[0].endswith("root handle 20: netem delay 50us limit 3000050")
    assert sender.delay_lines([late]) == [
        "qdisc change dev h1-eth0 root handle 20: netem delay 3000050us 3000000us "
        "distribution jitter3000000 limit 3000050"
    ]
    assert sender.delay_lines([]) == [
        "qdisc change dev h1-eth0 root handle 20: netem delay 50us limit 3000050"
    ]
    unshaped = Sender("h1-eth0", Direction(), 1514, (late,))
    assert unshaped.lines() == [
        "qdisc add dev h1-eth0 root handle 20: netem delay 0us limit 3000000"
    ]


def added_us(drawn: list[Jitter | Reorder], span_us: int) -> list[float]:
    """What the entries of a table add to a delay, as netem's tabledist() reads them."""
    entries = [int(line) for line in distribution(drawn).split()]
    assert len(entries) == 8192
    return [span_us * (1 + entry / 8192) for entry in entries]


def test_jitter_is_even_from_nothing_to_its_most() -> None:
    added = sorted(added_us([Jitter(8000)], 8000))
    assert all(abs(us - 8000 * n / 8192) < 2 for n, us in enumerate(added))


def test_reordering_delays_its_share_and_nothing_else() -> None:
    added = added_us([Reorder(0.1, 700)], 700)
    assert sorted(set(added)) == [0, 700]
    assert added.count(700) == round(0.1 * 8192)


def test_two_delays_are_independent() -> None:
    """Of the late ones the jitter is as of the others: its mean, its least and its most."""
    added = added_us([Jitter(1000), Reorder(0.25, 5000)], 6000)
    late = [us - 5000 for us in added if us >= 5000]
    assert len(late) == 2048
    assert min(late) < 5 and max(late) > 995
    assert abs(sum(late) / len(late) - 500) < 20


@given(
    st.lists(
        st.builds(Jitter, st.integers(0, 10**7))
        | st.builds(Reorder, st.floats(0, 1), st.integers(0, 10**7)),
        min_size=1,
        max_size=3,
    )
)
@settings(deadline=None, max_examples=20)
def test_no_delay_is_negative_or_too_long(drawn: list[Jitter | Reorder]) -> None:
    assert all(-8192 <= int(line) <= 0 for line in distribution(drawn).split())

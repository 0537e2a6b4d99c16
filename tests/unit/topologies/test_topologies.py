"""Graphs: what a rack looks like, and which graphs are refused."""

from __future__ import annotations

import ipaddress
import itertools
import pickle

import pytest

from agglab.topologies import Direction, Drop, Host, Link, LinkEnd, Switch, Topology, rack


def test_rack_of_two_written_out() -> None:
    up, down = Direction(rate_bps=10), Direction(rate_bps=20)
    assert rack(2, up, down, mtu=9000) == Topology(
        "rack",
        (Host("h1", "10.0.0.1", "02:00:00:00:00:01"), Host("h2", "10.0.0.2", "02:00:00:00:00:02")),
        (Switch("s1", 1),),
        (
            Link(LinkEnd("h1", 0), LinkEnd("s1", 1), up, down, 9000),
            Link(LinkEnd("h2", 0), LinkEnd("s1", 2), up, down, 9000),
        ),
    )


def test_equal_racks_have_equal_hashes_that_are_not_sent_to_other_processes() -> None:
    assert hash(rack(3)) == hash(rack(3)) != hash(rack(4))
    sent = rack(3)
    hash(sent)
    received = pickle.loads(pickle.dumps(sent))
    assert received == sent and "_hash" not in vars(received)  # names hash differently there


@pytest.mark.parametrize(("workers", "number"), [(1, 0), (1, 254), (254, 0), (254, 254), (17, 93)])
def test_addresses_of_a_rack_differ_and_avoid_the_aggregator(workers: int, number: int) -> None:
    hosts = rack(workers, number=number).hosts
    ips = {ipaddress.ip_address(host.ip) for host in hosts}
    macs = {bytes.fromhex(host.mac.replace(":", "")) for host in hosts}
    assert len(ips) == len(macs) == workers
    assert ips <= set(ipaddress.ip_network("10.0.0.0/16"))
    assert ipaddress.ip_address("10.0.255.254") not in ips
    # Locally administered, unicast, and the last two bytes are the address's.
    assert all(mac[0] & 3 == 2 for mac in macs)
    assert {mac[-2:] for mac in macs} == {ip.packed[-2:] for ip in ips}


@pytest.mark.parametrize("workers", [0, -1, 255])
def test_rack_refuses_a_number_of_workers(workers: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 254 workers, not {workers}"):
        rack(workers)


@pytest.mark.parametrize(("workers", "servers"), [(254, 1), (200, 55), (4, -1)])
def test_rack_refuses_a_number_of_servers(workers: int, servers: int) -> None:
    with pytest.raises(ValueError, match=f"0 to {254 - workers} servers, not {servers}"):
        rack(workers, servers=servers)


def test_interface_names_are_mininets() -> None:
    topology = rack(10)
    assert [link.a.interface for link in topology.links] == [f"h{n}-eth0" for n in range(1, 11)]
    assert [link.b.interface for link in topology.links] == [f"s1-eth{n}" for n in range(1, 11)]


def test_directions_name_sender_and_receiver() -> None:
    link = rack(1, Direction(rate_bps=1), Direction(rate_bps=2)).link("h1-s1")
    host, switch = LinkEnd("h1", 0), LinkEnd("s1", 1)
    assert list(link.directions()) == [
        ("h1->s1", host, switch, Direction(rate_bps=1)),
        ("s1->h1", switch, host, Direction(rate_bps=2)),
    ]


def test_with_link_changes_one_direction_of_one_link() -> None:
    topology = rack(3, Direction(rate_bps=1), Direction(rate_bps=2))
    lossy = Direction(rate_bps=3, impairments=(Drop(0.25),))
    changed = topology.with_link("h2-s1", b_to_a=lossy)
    ways = [(link.a_to_b.rate_bps, link.b_to_a.rate_bps) for link in changed.links]
    assert ways == [(1, 2), (1, 3), (1, 2)]
    assert topology.link("h2-s1").b_to_a.rate_bps == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate_bps": 0}, "rate 0 bit/s is not positive"),
        ({"delay_us": -1}, "delay -1 us is negative"),
        ({"queue_packets": 0}, "a queue holds at least one packet"),
        ({"queue_packets": 9, "queue_bytes": 9}, "in packets or in bytes, not in both"),
        ({"impairments": (Drop(0.1), Drop(0.2))}, "at most one impairment Drop"),
    ],
)
def test_direction_refuses(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Direction(**options)  # type: ignore[arg-type]


def test_a_queue_in_bytes_holds_the_largest_frame() -> None:
    rack(1, Direction(queue_bytes=1514))
    with pytest.raises(ValueError, match="a queue of 1514 bytes cannot hold a frame of 9014"):
        rack(1, Direction(queue_bytes=1514), mtu=9000)
    with pytest.raises(ValueError, match="a queue of 0 bytes"):
        rack(1, down=Direction(queue_bytes=0))


@pytest.mark.parametrize("mtu", [0, 67, 65536])
def test_link_refuses_an_mtu(mtu: int) -> None:
    with pytest.raises(ValueError, match=f"mtu {mtu} is not between 68 and 65535"):
        rack(1, mtu=mtu)


@pytest.mark.parametrize("probability", [-0.001, 1.001, float("nan")])
def test_drop_refuses_what_is_no_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        Drop(probability)


HOSTS = (Host("h1", "10.0.0.1", "02:00:00:00:00:01"),)
SWITCHES = (Switch("s1", 1),)
CABLE = Link(LinkEnd("h1", 0), LinkEnd("s1", 1))


@pytest.mark.parametrize(
    ("hosts", "switches", "links", "message"),
    [
        (HOSTS * 2, SWITCHES, (CABLE,), "node h1 exists twice"),
        (HOSTS, SWITCHES, (CABLE, CABLE), "link h1-s1 exists twice"),
        ((), SWITCHES, (CABLE,), "ends at node h1, which does not exist"),
        (
            HOSTS,
            (Switch("a-long-switch", 1),),
            (Link(LinkEnd("h1", 0), LinkEnd("a-long-switch", 1)),),
            "a-long-switch-eth1 exceeds 15 bytes",
        ),
    ],
)
def test_topology_refuses(
    hosts: tuple[Host, ...], switches: tuple[Switch, ...], links: tuple[Link, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Topology("custom", hosts, switches, links)


def test_two_cables_in_one_port_are_refused() -> None:
    others = (Host("h2", "10.0.0.2", "02:00:00:00:00:02"),)
    cables = (CABLE, Link(LinkEnd("h2", 0), LinkEnd("s1", 1)))
    with pytest.raises(ValueError, match="interface s1-eth1 exists twice"):
        Topology("custom", HOSTS + others, SWITCHES, cables)


def test_ports_are_in_order_whatever_the_order_of_links() -> None:
    links = rack(4).links
    for order in itertools.islice(itertools.permutations(links), 6):
        topology = Topology("rack", rack(4).hosts, SWITCHES, order)
        assert list(topology.ports("s1")) == [1, 2, 3, 4]

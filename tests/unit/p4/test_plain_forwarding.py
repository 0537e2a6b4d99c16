"""p4/forwarding.p4, filled for a rack of three hosts: what leaves by which port, byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from frames import AGGREGATOR_MAC, ETHERNET, checksum, ipv4, worker_address, worker_mac

from agglab.testbed.systems.plan import forwarding
from agglab.testbed.virtual.switches import CompiledProgram
from agglab.topologies import rack
from agglab.verification import programs
from p4native.switch import Pipeline

IPV4_TYPE, TAG = 0x0800, struct.pack("!HH", 0x8100, 5)
BROADCAST = b"\xff" * 6
TTL = 8
Counted = Callable[[str], int]


@pytest.fixture
def switch() -> Iterator[Pipeline]:
    program = CompiledProgram(programs.compiled("ring", lanes=1, slots=1).json)
    entries = forwarding(rack(3))["s1"]
    with program.pipeline(seed=1) as pipeline:
        for entry in entries.tables:
            program.add(pipeline, entry)
        for group, replicas in entries.groups.items():
            pipeline.replication.set_multicast_group(group, replicas)
        yield pipeline


@pytest.fixture
def counted(switch: Pipeline) -> Counted:
    def packets(counter: str) -> int:
        return switch.counters.read(f"ForwardingIngress.forwarding.{counter}", 0)[0]

    return packets


def frame(to: bytes, packet: bytes, tags: bytes = b"", port: int = 1) -> bytes:
    return to + worker_mac(port) + tags + struct.pack("!H", IPV4_TYPE) + packet


def packet(to: int, source: int = 1, ttl: int = TTL) -> bytes:
    return ipv4(b"payload.", worker_address(source), worker_address(to), ttl=ttl)


def test_a_frame_leaves_as_it_came_by_the_port_of_its_address(switch, counted: Counted) -> None:
    sent = frame(worker_mac(3), packet(3))
    assert switch.process(1, sent, 0) == [(3, sent)]
    tagged = frame(worker_mac(2), packet(2), TAG + TAG)
    assert switch.process(1, tagged, 0) == [(2, tagged)]
    assert counted("forwarded") == 2


def test_what_is_for_everybody_or_nobody_known_goes_to_all_the_others(switch: Pipeline) -> None:
    for to in (BROADCAST, worker_mac(9)):
        sent = frame(to, packet(9, source=2), port=2)
        assert sorted(switch.process(2, sent, 0)) == [(1, sent), (3, sent)]


def test_a_routed_packet_has_other_addresses_and_a_right_checksum(switch: Pipeline) -> None:
    ((port, routed),) = switch.process(1, frame(AGGREGATOR_MAC, packet(3)), 0)
    assert port == 3
    assert routed[:14] == struct.pack(ETHERNET, worker_mac(3), AGGREGATOR_MAC, IPV4_TYPE)
    assert routed[14:] == packet(3, ttl=TTL - 1)
    assert checksum(routed[14:34]) == 0


@pytest.mark.parametrize("options", [b"", b"\x94\4\0\0", bytes(40)])
def test_a_routed_packet_with_options_has_a_right_checksum(
    switch: Pipeline, options: bytes
) -> None:
    """The number of the packet gives the header every checksum in turn."""
    header = bytearray(packet(3)[:20])
    header[0] += len(options) // 4
    end = 14 + 20 + len(options)
    for number in range(0, 2**16, 5):
        header[2:6] = struct.pack("!HH", 20 + len(options) + 8, number)
        header[10:12] = bytes(2)
        header[10:12] = struct.pack("!H", checksum(bytes(header) + options))
        sent = bytes(header) + options + b"payload."
        ((_, routed),) = switch.process(1, frame(AGGREGATOR_MAC, sent), 0)
        assert checksum(routed[14:end]) == 0 and routed[22] == TTL - 1
        assert routed[26:] == sent[12:]


def test_a_routed_packet_whose_checksum_was_wrong_is_not_mended(switch: Pipeline) -> None:
    wrong = bytearray(frame(AGGREGATOR_MAC, packet(3)))
    wrong[25] ^= 1
    ((_, routed),) = switch.process(1, bytes(wrong), 0)
    assert checksum(routed[14:34]) != 0


def test_a_packet_whose_checksum_was_wrong_is_not_mended(switch: Pipeline) -> None:
    """It is the receiver's to judge, unless the switch changes the header."""
    wrong = bytearray(frame(worker_mac(3), packet(3)))
    wrong[24] ^= 1
    assert switch.process(1, bytes(wrong), 0) == [(3, bytes(wrong))]


@pytest.mark.parametrize(
    ("port", "sent", "counter"),
    [
        (1, frame(AGGREGATOR_MAC, packet(3, ttl=1)), "unroutable"),
        (1, frame(AGGREGATOR_MAC, packet(200)), "unroutable"),
        (2, frame(worker_mac(3), packet(3, source=1)), "forged"),
        (1, frame(worker_mac(3), packet(3))[:20], "malformed"),
    ],
    ids=["no more hops", "no way", "another's address", "cut short"],
)
def test_what_goes_nowhere_is_counted(
    switch: Pipeline, counted: Counted, port: int, sent: bytes, counter: str
) -> None:
    assert switch.process(port, sent, 0) == []
    assert counted(counter) == 1 and counted("forwarded") == 0

"""Runs of datagrams that cross veth as one buffer: the packet loop sees, counts, loses and captures
each packet by itself, and gathers what leaves."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader
from switch_lab import SOL_PACKET, Lab, Stub
from waiting import until

from agglab.hosts.segments import most
from agglab.testbed.real.interfaces import offloads_off
from agglab.testbed.run.impairments.rng import draw
from p4native.switch.io import Loss, PacketLoop

pytestmark = pytest.mark.root

UDP_SEGMENT = 103
PACKET_VNET_HDR = 15
MACS = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
PORT = 7000
PAYLOAD_BYTES, HEADER_BYTES = 1000, 42
RUNS, RUN = 20, 40
QUARTER = 1 << 62


@pytest.fixture
def lab() -> Iterator[Lab]:
    lab = Lab()
    for own, other in ((0, 1), (1, 0)):
        host, end = lab.hosts[own], f"h{own + 1}"
        host.sh(f"ip link set {end} address {MACS[own]}")
        host.sh(f"ip addr add 10.9.0.{own + 1}/24 dev {end}")
        host.sh(f"ip neigh replace 10.9.0.{other + 1} lladdr {MACS[other]} dev {end}")
    yield lab
    lab.close()


class Running:
    """A loop on s1 and s2, and a UDP socket at each host."""

    def __init__(self, lab: Lab, stub: Path, **options: Any) -> None:
        self.loop = lab.switch.call(lambda: PacketLoop({1: "s1", 2: "s2"}, **options))
        self.loop.set_pipeline(Stub(stub))
        self.sender, self.receiver = (
            lab.hosts[n].call(lambda n=n: bound(f"10.9.0.{n + 1}")) for n in range(2)
        )
        self.loop.start()

    def send(self, payloads: list[bytes]) -> None:
        """As one buffer."""
        size = struct.pack("=H", len(payloads[0]))
        said = [(socket.IPPROTO_UDP, UDP_SEGMENT, size)]
        self.sender.sendmsg([b"".join(payloads)], said, 0, ("10.9.0.2", PORT))

    def receive(self, count: int) -> list[bytes]:
        return [self.receiver.recv(70000) for _ in range(count)]

    def ports(self) -> tuple[dict[str, Any], dict[str, Any]]:
        counts = self.loop.stats()["ports"]
        return counts["1"], counts["2"]

    def close(self) -> None:
        self.loop.close()
        self.sender.close()
        self.receiver.close()


def bound(address: str) -> socket.socket:
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    own.bind((address, PORT))
    own.settimeout(10)
    return own


def payloads(run: int) -> list[bytes]:
    return [bytes([run, n]) * (PAYLOAD_BYTES // 2) for n in range(RUN)]


def send_all(running: Running) -> list[bytes]:
    sent = [payloads(run) for run in range(RUNS)]
    for each in sent:
        running.send(each)
    return [payload for each in sent for payload in each]


def sent_by(lab: Lab, end: str) -> int:
    """How many times the switch's end gave the kernel something to send."""
    words = lab.switch.sh(f"ip -s link show {end}").split("TX:")[1].split("\n")[1].split()
    return int(words[1])


@pytest.mark.long(but=["buffers"])
@pytest.mark.parametrize("gathers", [True, False], ids=["buffers", "single"])
def test_each_packet_counts_and_arrives_in_order(
    lab: Lab,
    stub_path: Path,
    gathers: bool,
) -> None:
    if not gathers:
        lab.switch.call(lambda: offloads_off(["s2"]))
    running = Running(lab, stub_path)
    try:
        expected = send_all(running)
        assert running.receive(len(expected)) == expected
        packets, size = RUNS * RUN, RUNS * RUN * (PAYLOAD_BYTES + HEADER_BYTES)
        until(lambda: running.ports()[1]["tx_packets"] == packets, "all counted")
        entry, way_out = running.ports()
        assert (entry["rx_packets"], entry["rx_bytes"], entry["rx_gso"]) == (packets, size, RUNS)
        assert (way_out["tx_packets"], way_out["tx_bytes"]) == (packets, size)
        assert (sent_by(lab, "s2") < packets / 10) == gathers
    finally:
        running.close()


@pytest.mark.long(but=["True"])
@pytest.mark.parametrize("outgoing", [False, True])
def test_losses_are_of_packets(lab: Lab, stub_path: Path, outgoing: bool) -> None:
    loss = Loss(2 if outgoing else 1, outgoing, 99, QUARTER)
    running = Running(lab, stub_path, losses=[loss])
    try:
        expected = send_all(running)
        lost = [k for k in range(len(expected)) if draw(99, k) < QUARTER]
        kept = [payload for k, payload in enumerate(expected) if k not in set(lost)]
        assert lost and running.receive(len(kept)) == kept
        told = running.ports()[1 if outgoing else 0][loss.name]
        assert (told["seen"], told["dropped"], told["numbers"]) == (
            len(expected),
            len(lost),
            lost,
        )
    finally:
        running.close()


def test_captures_hold_single_packets(
    lab: Lab,
    stub_path: Path,
    tmp_path: Path,
) -> None:
    running = Running(lab, stub_path, pcap_folder=tmp_path)
    try:
        running.send(payloads(3))
        assert running.receive(RUN) == payloads(3)
    finally:
        running.close()
    for name in ("s1_in", "s2_out"):
        with contextlib.closing(RawPcapReader(str(tmp_path / f"{name}.pcap"))) as reader:
            frames = [data for data, _ in reader]
        assert [frame[HEADER_BYTES:] for frame in frames] == payloads(3)
        lengths = {int.from_bytes(frame[16:18], "big") for frame in frames}
        assert lengths == {PAYLOAD_BYTES + HEADER_BYTES - 14}


def buffer(ip_bytes: int) -> bytes:
    """What a packet socket says of its frame, and the frame, which has 3000 bytes of IPv4."""
    header = struct.pack("=BBHHHH", 1, 5, HEADER_BYTES, PAYLOAD_BYTES, 34, 6)
    ethernet = bytes.fromhex("0200000000020200000000010800")
    ip = struct.pack("!BBHIHHII", 0x45, 0, ip_bytes, 0, 0x4011, 0, 0x0A090001, 0x0A090002)
    return header + ethernet + ip + struct.pack("!HHHH", PORT, PORT, 2980, 0) + bytes(2972)


def test_a_buffer_of_a_forged_length_is_lost_alone_and_counted(lab: Lab, stub_path: Path) -> None:
    running = Running(lab, stub_path)
    raw = lab.hosts[0].packet_socket("h1")
    raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, struct.pack("=i", 1))
    try:
        raw.send(buffer(2999))
        running.send(payloads(1))
        assert running.receive(RUN) == payloads(1)
        entry, _ = running.ports()
        assert (entry["rx_gso"], entry["rx_gso_drops"], entry["rx_packets"]) == (1, 1, RUN)
        raw.send(buffer(3000))
        assert running.receive(3) == [bytes(1000), bytes(1000), bytes(972)]
    finally:
        raw.close()
        running.close()


def test_hosts_follow_the_interface(lab: Lab) -> None:
    assert lab.hosts[0].call(lambda: most("10.9.0.1")) == 64
    lab.hosts[0].call(lambda: offloads_off(["h1"]))
    assert lab.hosts[0].call(lambda: most("10.9.0.1")) == 1
    assert lab.hosts[0].call(lambda: most("10.9.0.9")) == 1

"""The packet loop on real interfaces, with the hand-written program of stub_pipeline.c."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader
from switch_lab import Lab, Stub, receive
from waiting import until

from p4native.switch.io import PacketLoop

pytestmark = pytest.mark.root

TO_OTHER = bytes.fromhex("020000000002020000000001")
GROUP = bytes.fromhex("ffffffffffff020000000001")
TYPE = b"\x88\xb5"
SYS_POLL = "7" if platform.machine() == "x86_64" else "73"


@pytest.fixture
def lab() -> Iterator[Lab]:
    lab = Lab()
    yield lab
    lab.close()


class Running:
    """A loop on s1, s2, s3 and a raw socket at each host."""

    def __init__(self, lab: Lab, stub: Stub, **options: Any) -> None:
        interfaces = {1: "s1", 2: "s2", 3: "s3"}
        self.loop = lab.switch.call(lambda: PacketLoop(interfaces, **options))
        self.loop.set_pipeline(stub)
        self.hosts = lab.packet_sockets()
        self.loop.start()

    def port(self, number: int) -> dict[str, int]:
        """A port's counts, once the loop sleeps: a frame is counted after it was sent."""
        until(data_plane_sleeps, "the data plane sleeps")
        counts: dict[str, int] = self.loop.stats()["ports"][str(number)]
        return counts

    def close(self) -> None:
        self.loop.close()
        for host in self.hosts:
            host.close()


@pytest.fixture
def stub(stub_path: Path) -> Stub:
    return Stub(stub_path)


@pytest.fixture
def running(lab: Lab, stub: Stub) -> Iterator[Running]:
    running = Running(lab, stub)
    yield running
    running.close()


def data_plane_sleeps() -> bool:
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # other threads end
            if (task / "comm").read_text() == "data-plane\n":
                return (task / "syscall").read_text().split()[0] == SYS_POLL
    return False


@pytest.mark.long(but=["1514"])
@pytest.mark.parametrize("length", [14, 60, 1514, 9014])
def test_frames_of_every_length_pass_unchanged(running: Running, length: int) -> None:
    frame = (TO_OTHER + TYPE + os.urandom(9000))[:length]
    running.hosts[0].send(frame)
    assert receive(running.hosts[1]) == frame
    running.hosts[1].send(frame)
    assert receive(running.hosts[0]) == frame
    assert (running.port(1)["rx_packets"], running.port(1)["rx_bytes"]) == (1, length)
    assert (running.port(2)["tx_packets"], running.port(2)["tx_bytes"]) == (1, length)


@pytest.mark.long(but=["802.1Q"])
@pytest.mark.parametrize(
    "tags", ["81000064", "88a80065", "810000018100e002"], ids=["802.1Q", "802.1ad", "two tags"]
)
def test_vlan_tags_stay_in_place(running: Running, tags: str) -> None:
    frame = TO_OTHER + bytes.fromhex(tags) + TYPE + os.urandom(100)
    running.hosts[0].send(frame)
    assert receive(running.hosts[1]) == frame
    assert running.port(1)["rx_bytes"] == len(frame)


def test_copies_go_to_every_other_port(running: Running) -> None:
    frame = GROUP + TYPE + os.urandom(300)
    running.hosts[1].send(frame)
    assert receive(running.hosts[0]) == receive(running.hosts[2]) == frame
    assert [running.port(n)["tx_packets"] for n in (1, 2, 3)] == [1, 0, 1]


def test_what_the_switch_sends_does_not_come_back(running: Running) -> None:
    running.hosts[0].send(GROUP + TYPE + bytes(46))
    assert receive(running.hosts[1])
    running.hosts[0].send(TO_OTHER + TYPE + bytes(46))
    assert receive(running.hosts[1])[:6] == TO_OTHER[:6]
    assert [running.port(n)["rx_packets"] for n in (1, 2, 3)] == [2, 0, 0]


def test_a_full_ring_is_counted(lab: Lab, stub: Stub) -> None:
    running = Running(lab, stub, ring_frames=64)
    sent = 2000
    try:
        # The loop waits for the program's lock, so the ring fills.
        stub.library.pl_lock(stub.handle)
        for number in range(sent):
            running.hosts[0].send(TO_OTHER + TYPE + number.to_bytes(4, "big") + bytes(42))
        stub.library.pl_unlock(stub.handle)
        until(lambda: sum(_in_and_dropped(running)) == sent, "all frames accounted for")
        taken, dropped = _in_and_dropped(running)
        assert dropped > 0 and taken >= 64
        received = [int.from_bytes(receive(running.hosts[1])[14:18], "big") for _ in range(taken)]
        assert received == sorted(set(received)) and received[:64] == list(range(64))
    finally:
        running.close()


def _in_and_dropped(running: Running) -> tuple[int, int]:
    counts = running.port(1)
    return counts["rx_packets"], counts["ring_drops"]


def test_a_full_egress_queue_is_counted_as_the_queue_counts_it(lab: Lab, running: Running) -> None:
    lab.switch.sh("tc qdisc add dev s2 root tbf rate 1mbit burst 3000 limit 6000")
    sent = 60
    for _ in range(sent):
        running.hosts[0].send(TO_OTHER + TYPE + bytes(1000))
    until(lambda: running.port(1)["rx_packets"] == sent, "all arrived")

    def accounted() -> bool:
        counts = running.port(2)
        return counts["tx_packets"] + counts["tx_drops"] == sent

    until(accounted, "all sent or dropped")
    dropped = running.port(2)["tx_drops"]
    assert 0 < dropped < sent
    words = lab.switch.sh("tc -s qdisc show dev s2").replace(",", "").split()
    assert int(words[words.index("(dropped") + 1]) == dropped


def test_shaping_does_not_run_into_the_sockets_own_limit(lab: Lab, running: Running) -> None:
    """A queue of 1000 frames holds them: neither the send buffer nor the ring out, which is full
    long before, may be the tighter limit, and the order stays."""
    lab.switch.sh("tc qdisc add dev s2 root tbf rate 500mbit burst 10000 limit 20mb")
    for number in range(1000):
        running.hosts[0].send(TO_OTHER + TYPE + number.to_bytes(4, "big") + bytes(8896))
    received = [receive(running.hosts[1]) for _ in range(1000)]
    assert [int.from_bytes(frame[14:18], "big") for frame in received] == list(range(1000))
    assert {len(frame) for frame in received} == {8914}
    assert running.port(2)["tx_drops"] == 0


def test_frames_of_a_time_without_the_interface_never_come_late(lab: Lab, running: Running) -> None:
    """More of them than the ring out has slots; all are counted, what follows passes in order."""
    lab.switch.sh("ip link set s2 down")
    for _ in range(500):
        running.hosts[0].send(TO_OTHER + TYPE + b"lost" + bytes(8000))
    until(lambda: running.port(2)["tx_errors"] == 500, "all refused")
    lab.switch.sh("ip link set s2 up")
    for number in range(300):
        running.hosts[0].send(TO_OTHER + TYPE + number.to_bytes(4, "big") + bytes(8000))
    received = [receive(running.hosts[1])[14:18] for _ in range(300)]
    assert received == [number.to_bytes(4, "big") for number in range(300)]
    assert running.port(2)["tx_packets"] == 300


def test_a_frame_too_long_for_its_way_out_is_counted(lab: Lab, running: Running) -> None:
    lab.switch.sh("ip link set s2 mtu 1500")
    for length in (100, 8000, 101, 8001, 102):
        running.hosts[0].send(TO_OTHER + TYPE + bytes(length))
    assert [len(receive(running.hosts[1])) for _ in range(3)] == [114, 115, 116]
    counts = running.port(2)
    assert (counts["tx_packets"], counts["tx_oversize"], counts["tx_drops"]) == (3, 2, 0)


def test_an_mtu_raised_later_still_passes(lab: Lab, stub: Stub) -> None:
    for namespace, end in zip(
        (lab.switch, *lab.hosts[:2], lab.switch), ("s1", "h1", "h2", "s2"), strict=True
    ):
        namespace.sh(f"ip link set {end} mtu 1500")
    running = Running(lab, stub)
    try:
        for namespace, end in zip(
            (lab.switch, *lab.hosts[:2], lab.switch), ("s1", "h1", "h2", "s2"), strict=True
        ):
            namespace.sh(f"ip link set {end} mtu 65535")
        frames = [TO_OTHER + TYPE + os.urandom(n) for n in (60, 9000, 61, 60000, 62, 65000)]
        frames.append(TO_OTHER + bytes.fromhex("81000064") + TYPE + os.urandom(9000))
        for frame in frames:
            running.hosts[0].send(frame)
        assert [receive(running.hosts[1]) for _ in frames] == frames
        assert running.port(1)["rx_truncated"] == 0
    finally:
        running.close()


def test_an_interface_that_goes_down_or_away_is_survived(lab: Lab, running: Running) -> None:
    lab.switch.sh("ip link set s2 down")
    running.hosts[0].send(TO_OTHER + TYPE + bytes(46))
    until(lambda: running.port(2)["tx_errors"] == 1, "an error counted")
    batches = running.loop.stats()["batches"]
    lab.switch.sh("ip link set s2 up")
    running.hosts[0].send(TO_OTHER + TYPE + bytes(47))
    assert len(receive(running.hosts[1])) == 61
    assert running.loop.stats()["batches"] - batches < 20, "it does not spin meanwhile"
    lab.switch.sh("ip link del s3")
    running.hosts[0].send(GROUP + TYPE + bytes(48))
    assert len(receive(running.hosts[1])) == 62
    batches = running.loop.stats()["batches"]
    running.hosts[0].send(TO_OTHER + TYPE + bytes(49))
    assert len(receive(running.hosts[1])) == 63
    assert running.loop.stats()["batches"] - batches < 20


def test_captures_hold_what_came_and_went(lab: Lab, stub: Stub, tmp_path: Path) -> None:
    running = Running(lab, stub, pcap_folder=tmp_path)
    before = time.time()
    frames = [TO_OTHER + TYPE + os.urandom(n) for n in (46, 1500, 8900)]
    frames.append(TO_OTHER + bytes.fromhex("81000064") + TYPE + os.urandom(64))
    try:
        for frame in frames:
            running.hosts[0].send(frame)
            assert receive(running.hosts[1]) == frame
        running.hosts[2].send(GROUP + TYPE + bytes(46))
        receive(running.hosts[0])
        # An idle switch leaves nothing in its buffers: 24 bytes, then 16 and the frame each.
        size = 24 + sum(16 + len(frame) for frame in frames)
        s1_in = tmp_path / "s1_in.pcap"
        until(lambda: s1_in.stat().st_size == size, "captures written while running")
    finally:
        running.close()
    last = GROUP + TYPE + bytes(46)
    expected = {
        "s1_in": frames,
        "s1_out": [last],
        "s2_in": [],
        "s2_out": [*frames, last],
        "s3_in": [last],
        "s3_out": [],
    }
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(expected)
    for name, content in expected.items():
        with contextlib.closing(RawPcapReader(str(tmp_path / f"{name}.pcap"))) as reader:
            records = list(reader)
            assert reader.nano
        assert [data for data, _ in records] == content
        times = [meta.sec + meta.usec / 1e9 for _, meta in records]
        assert times == sorted(times) and all(before - 1 < at < time.time() + 1 for at in times)


def test_tcp_with_every_offload_on(lab: Lab, running: Running) -> None:
    """Hosts leave checksums and segmentation to hardware that a veth does not have."""
    macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
    for own, other in ((0, 1), (1, 0)):
        host, end = lab.hosts[own], f"h{own + 1}"
        host.sh(f"ip link set {end} address {macs[own]}")
        host.sh(f"ip addr add 10.9.0.{own + 1}/24 dev {end}")
        host.sh(f"ip neigh replace 10.9.0.{other + 1} lladdr {macs[other]} dev {end}")
    data = os.urandom(3_000_000)
    listener = lab.hosts[1].call(lambda: _listen(("10.9.0.2", 7000)))
    received = bytearray()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while part := connection.recv(1 << 16):
                received.extend(part)

    server = threading.Thread(target=serve)
    server.start()
    client = lab.hosts[0].call(lambda: _connect(("10.9.0.2", 7000)))
    with client:
        client.sendall(data)
    server.join()
    listener.close()
    assert bytes(received) == data
    counts = running.port(1)
    assert counts["rx_gso"] > 0 and counts["rx_checksums"] > 0 and counts["rx_gso_drops"] == 0


def _listen(address: tuple[str, int]) -> socket.socket:
    return socket.create_server(address)


def _connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address)


@pytest.mark.long
@pytest.mark.skipif("P4NATIVE_SANITIZE" in os.environ, reason="this is the process it starts")
def test_all_of_this_under_the_sanitizers(tmp_path: Path) -> None:
    find = ["cc", "-print-file-name=libasan.so"]
    runtime = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
    environment = dict(
        os.environ,
        P4NATIVE_SANITIZE="1",
        P4NATIVE_CACHE=str(tmp_path),
        LD_PRELOAD=runtime,
        # Python itself keeps memory until it exits.
        ASAN_OPTIONS="detect_leaks=0",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout

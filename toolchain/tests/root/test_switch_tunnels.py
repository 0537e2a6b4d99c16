"""TCP through a tunnel over the switch, with hosts that leave the cutting to their cards."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from switch_lab import Lab, Stub
from waiting import until

from p4native.switch.io import PacketLoop

pytestmark = pytest.mark.root
CONTENT = random.Random(7).randbytes(4_000_000)
ADDRESS, PORT = "10.8.0.2", 5001


@pytest.fixture(params=["", "udpcsum", "noudpcsum"])
def vxlan(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Two hosts with a VXLAN device each, over the switch."""
    lab = Lab()
    for number, other in ((1, 2), (2, 1)):
        host, end = lab.hosts[number - 1], f"h{number}"
        host.sh(f"ip link set {end} address 02:00:00:00:00:0{number}")
        host.sh(f"ip addr add 10.9.0.{number}/24 dev {end}")
        host.sh(f"ip neigh replace 10.9.0.{other} lladdr 02:00:00:00:00:0{other} dev {end}")
        host.sh(
            f"ip link add t0 type vxlan id 7 dev {end} local 10.9.0.{number} remote 10.9.0.{other}"
            f" dstport 4789 {request.param}"
        )
        host.sh(f"ip addr add 10.8.0.{number}/24 dev t0")
        host.sh("ip link set t0 up")
    yield lab
    lab.close()


def received_from(server: socket.socket, parts: list[bytes]) -> None:
    connection, _ = server.accept()
    with connection:
        connection.settimeout(20)
        while part := connection.recv(1 << 20):
            parts.append(part)


@pytest.mark.long(but=["udpcsum"])
def test_tcp_in_vxlan_arrives_whole(vxlan: Lab, stub_path: Path) -> None:
    loop = vxlan.switch.call(lambda: PacketLoop({1: "s1", 2: "s2"}))
    loop.set_pipeline(Stub(stub_path))
    loop.start()
    server = vxlan.hosts[1].call(lambda: socket.create_server((ADDRESS, PORT)))
    parts: list[bytes] = []
    receiver = threading.Thread(target=received_from, args=(server, parts))
    receiver.start()
    try:
        with vxlan.hosts[0].call(lambda: socket.create_connection((ADDRESS, PORT), 20)) as sender:
            sender.sendall(CONTENT)
        receiver.join(60)
        assert b"".join(parts) == CONTENT
        until(lambda: loop.stats()["ports"]["1"]["rx_gso"] > 0, "a buffer of several packets")
        assert loop.stats()["ports"]["1"]["rx_gso_drops"] == 0
    finally:
        loop.close()
        server.close()

"""The switch as a program: on real interfaces, over gRPC, started wrongly, stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from p4.v1 import p4runtime_pb2
from scapy.utils import rdpcap
from switch_lab import Lab, receive
from switch_process import (
    CPU_PORT,
    FRAME,
    JSON,
    P4INFO,
    PORTS,
    ROOT,
    Failure,
    Program,
    address,
    entry,
    group,
)
from waiting import until

pytestmark = pytest.mark.root


@pytest.fixture
def start(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def make(*words: str, **options: Any) -> Program:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Program(lab, folder, *words, **options))
        return started[-1]

    yield make
    for program in started:
        if program.process.poll() is None:
            program.stop()


def test_it_forwards_counts_captures_and_stops(
    lab: Lab, start: Callable[..., Program], tmp_path: Path
) -> None:
    words = (*PORTS, "--p4info", str(P4INFO), f"--pcap={tmp_path}", str(JSON))
    program = start(*words, target="--cpu-port 255")
    program.write(entry("I.forward", b"\x02"), entry("I.multicast", b"\x07", port=2))
    program.write(group(7, 1, 3))
    hosts = lab.packet_sockets()
    jumbo = FRAME + bytes(8954)
    tagged = FRAME[:12] + bytes.fromhex("81000064") + FRAME[12:]
    for frame in (FRAME, jumbo, tagged):
        hosts[0].send(frame)
        assert receive(hosts[1]) == frame
    hosts[1].send(FRAME)
    assert receive(hosts[0]) == receive(hosts[2]) == FRAME

    def sent(port: str) -> int:
        packets: int = program.stats()["ports"][port]["tx_packets"]
        return packets

    until(lambda: (sent("2"), sent("3")) == (3, 1), "frames are counted, after they were sent")
    assert program.stats()["ports"]["1"]["rx_packets"] == 3
    assert program.stop() == 0, program.errors
    assert program.errors == ""
    final = json.loads((program.folder / "stats.json").read_text())
    assert {name: port["tx_packets"] for name, port in final["ports"].items()} == {
        "1": 1,
        "2": 3,
        "3": 1,
        "255": 0,
    }
    assert final["cpu_ns"] > 0 and final["device_id"] == 0
    assert sorted(p.name for p in program.folder.iterdir()) == ["stats.json"]
    assert [bytes(p) for p in rdpcap(f"{tmp_path}/s2_out.pcap")] == [FRAME, jumbo, tagged]
    assert [bytes(p) for p in rdpcap(f"{tmp_path}/s2_in.pcap")] == [FRAME]
    for host in hosts:
        host.close()


def test_packets_reach_the_controller_and_come_from_it(
    lab: Lab, start: Callable[..., Program]
) -> None:
    program = start(*PORTS, "--p4info", str(P4INFO), str(JSON), target=f"--cpu-port {CPU_PORT}")
    hosts = lab.packet_sockets()
    hosts[1].send(FRAME)  # no entry: punted by the default action
    packet = next(program.stream).packet
    assert packet.payload == FRAME
    values = {item.metadata_id: item.value for item in packet.metadata}
    assert values == {1: b"\x02", 2: b"\x03", 3: b"\xbe\xef"}
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = FRAME[:30]
    for number, value in ((1, b"\x03"), (2, b"\0")):
        request.packet.metadata.add(metadata_id=number, value=value)
    program.requests.put(request)
    assert receive(hosts[2]) == FRAME[:30]
    request.packet.metadata[0].value = b"\x04\x00"
    program.requests.put(request)
    error = next(program.stream).error
    assert error.canonical_code == 3 and "egress_port" in error.message
    for host in hosts:
        host.close()


def test_a_program_is_pushed_and_replaced_while_it_runs(
    lab: Lab, start: Callable[..., Program]
) -> None:
    program = start(*PORTS, "--no-p4")
    hosts = lab.packet_sockets()
    hosts[0].send(FRAME)
    for out in (2, 3):
        program.push(JSON.read_bytes())
        program.write(entry("I.forward", bytes([out])))
        hosts[0].send(FRAME)
        assert receive(hosts[out - 1]) == FRAME
    assert program.stats()["no_program"] == 1
    for host in hosts:
        host.close()


@pytest.mark.long
def test_an_idle_switch_sleeps(start: Callable[..., Program]) -> None:
    program = start(*PORTS, str(JSON))
    before = program.stats()["batches"]
    # Only a condition can be waited for: another process's start takes longer than many polls.
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.3)"], check=True)
    assert program.stats()["batches"] - before <= 2


@pytest.mark.long(but=["15"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_it_cleanly(start: Callable[..., Program], number: int) -> None:
    program = start("--no-p4")
    assert program.stop(number) == 0
    assert (program.errors, sorted(p.name for p in program.folder.iterdir())) == (
        "",
        ["stats.json"],
    )


# It compiles the packet loop as any other does.
SLOW_COMPILER = """#!/bin/sh
case "$*" in *program.c*) ;; *) exec /usr/bin/cc "$@" ;; esac
touch "$(dirname "$0")/called"
exec sleep 1000
"""


@pytest.fixture
def failure(lab: Lab) -> Failure:
    return Failure(lab)


def test_a_missing_interface(failure: Failure, tmp_path: Path) -> None:
    code, error = failure("-i", "1@s1", "-i", "2@nope", str(JSON), *address(tmp_path))
    assert code == 5 and "port 2 (nope)" in error
    assert list(tmp_path.iterdir()) == []


def test_wrong_programs(failure: Failure, tmp_path: Path) -> None:
    code, error = failure("-i", "1@s1", "/no/such.json", *address(tmp_path))
    assert code == 4 and "/no/such.json: cannot be read: No such file" in error
    broken = tmp_path / "broken.json"
    broken.write_text('{"tables": ')
    assert failure("-i", "1@s1", str(broken), *address(tmp_path))[0] == 4
    broken.write_text(json.dumps({**json.loads(JSON.read_text()), "pipelines": [{"name": 3}]}))
    code, error = failure("-i", "1@s1", str(broken), *address(tmp_path))
    assert code == 4 and "pipelines" in error
    other = tmp_path / "other.p4info.txtpb"
    other.write_text(P4INFO.read_text().replace('"I.lpm_table"', '"I.another"'))
    code, error = failure("--p4info", str(other), str(JSON), *address(tmp_path))
    assert code == 4 and "I.another" in error
    other.write_text("nonsense {")
    code, error = failure("--p4info", str(other), str(JSON), *address(tmp_path))
    assert code == 4 and str(other) in error


def test_a_taken_address(
    failure: Failure, start: Callable[..., Program], tmp_path: Path, lab: Lab
) -> None:
    program = start("--no-p4")
    taken = program.folder
    code, error = failure("--no-p4", *address(taken))
    assert code == 6 and f"unix:{taken}/grpc" in error
    code, error = failure("--no-p4", "--stats-socket", f"{taken}/stats", *address(tmp_path))
    assert code == 6 and f"{taken}/stats" in error
    assert program.stats() and program.stop() == 0, "the one that runs is not disturbed"
    lab.switch.sh("ip link set lo up")
    listener = lab.switch.call(lambda: socket.create_server(("127.0.0.1", 9559)))
    with listener:
        code, error = failure("--no-p4", "--", "--grpc-server-addr", "127.0.0.1:9559")
        assert code == 6 and "127.0.0.1:9559" in error


@pytest.mark.long
def test_a_killed_switch_leaves_no_sockets(start: Callable[..., Program]) -> None:
    killed = start("--no-p4")
    assert sorted(path.name for path in killed.folder.iterdir()) == ["grpc", "stats", "stats.json"]
    killed.process.kill()
    killed.process.wait()
    # By the process that removes them, which was not killed.
    until(lambda: not list(killed.folder.iterdir()), "sockets are removed")


@pytest.mark.long
def test_dead_sockets_are_not_in_the_way(lab: Lab, tmp_path: Path) -> None:
    for name in ("grpc", "stats"):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"{tmp_path}/{name}")
    again = Program(lab, tmp_path, "--no-p4")
    assert again.stats()["device_id"] == 0
    assert again.stop() == 0


@pytest.mark.long
def test_no_permission(failure: Failure, tmp_path: Path) -> None:
    without = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
    code, error = failure("-i", "1@s1", str(JSON), *address(tmp_path), before=without)
    assert code == 3 and "CAP_NET_RAW" in error


@pytest.mark.long
def test_a_missing_pcap_folder_and_an_unwritable_file(failure: Failure, tmp_path: Path) -> None:
    code, error = failure("-i", "1@s1", "--pcap=/no/such", str(JSON), *address(tmp_path))
    assert code == 2 and "/no/such" in error
    code, error = failure("--no-p4", "--log-file", "/no/such/log", *address(tmp_path))
    assert code == 5 and "/no/such/log" in error
    code, error = failure("--no-p4", "--stats-file", "/no/such/stats", *address(tmp_path))
    assert code == 5 and "/no/such/stats" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_signal_while_it_starts_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    """A compiler that never ends: the switch is stopped while it waits for it."""
    with tempfile.TemporaryDirectory() as everybodys:
        Path(everybodys).chmod(0o777)  # the compiler is called by another user
        slow = Path(everybodys) / "cc"
        slow.write_text(SLOW_COMPILER)
        slow.chmod(0o755)
        environment = {**os.environ, "PATH": f"{everybodys}:{os.environ['PATH']}"}
        environment["P4NATIVE_CACHE"] = str(tmp_path / "cache")
        command = lab.switch.command(
            sys.executable, "-m", "p4native.switch", str(JSON), *address(tmp_path)
        )
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
        until((Path(everybodys) / "called").exists, "the compiler is called")
        process.terminate()
        assert process.wait() == 0
    assert process.stderr is not None and process.stderr.read() == b""
    process.stderr.close()
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.long
def test_a_port_whose_interface_is_made_again_forwards_again(
    lab: Lab, start: Callable[..., Program]
) -> None:
    """Although the switch is no longer root."""
    program = start(*PORTS, "--p4info", str(P4INFO), str(JSON))
    program.write(entry("I.forward", b"\x02"))
    errors = program.process.stderr
    assert errors is not None
    lab.switch.sh("ip link delete s1")
    assert "port 1 (s1): the interface is gone; packets for it are lost" in errors.readline()
    lab.switch.sh(f"ip link add s1 type veth peer name h1 netns {lab.hosts[0].pid}")
    assert "port 1 (s1): the interface is back, and is attached again" in errors.readline()
    lab.switch.sh("ip link set s1 up")
    lab.hosts[0].sh("ip link set h1 up")
    assert "port 1 (s1): the interface is up again" in errors.readline()
    hosts = lab.packet_sockets()
    hosts[0].send(FRAME)
    assert receive(hosts[1]) == FRAME
    program.write(entry("I.forward", b"\x01", port=2))
    hosts[1].send(FRAME)
    assert receive(hosts[0]) == FRAME
    for host in hosts:
        host.close()

"""The switch program in a laboratory: one that runs, with a controller; one that must not start."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from switch_lab import FIXTURES, Lab

from p4native.switch.p4runtime.text import read_p4info

ROOT = Path(__file__).resolve().parents[2]
JSON, P4INFO = FIXTURES / "p4runtime/entities.json", FIXTURES / "p4runtime/entities.p4info.txtpb"
CPU_PORT = 255  # what entities.p4 says
MAC = bytes.fromhex("0a0000000001")
FRAME = MAC + bytes.fromhex("0b0000000002") + bytes.fromhex("0800") + bytes(range(46))
PORTS = ("-i", "1@s1", "-i", "2@s2", "-i", "3@s3")


class Program:
    """A switch that is ready; its sockets and files are in `folder`, its code in `root`."""

    def __init__(
        self, lab: Lab, folder: Path, *words: str, target: str = "", root: Path = ROOT
    ) -> None:
        self.folder = folder
        ready, told = os.pipe()
        command = [sys.executable, "-m", "p4native.switch", *words]
        command += ["--stats-socket", f"{folder}/stats", "--stats-file", f"{folder}/stats.json"]
        command += ["--ready-fd", str(told), "--", "--grpc-server-addr", f"unix:{folder}/grpc"]
        self.process = subprocess.Popen(
            lab.switch.command(*command, *target.split()),
            cwd=root,
            pass_fds=[told],
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(told)
        with open(ready, "rb") as pipe:
            assert pipe.read() == b"\n", self.process.communicate()[1]
        self.channel = grpc.insecure_channel(f"unix:{folder}/grpc")
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.election_id.low = 1
        self.requests.put(request)
        assert next(self.stream).arbitration.status.code == 0

    def write(self, *entities: p4runtime_pb2.Entity) -> None:
        request = p4runtime_pb2.WriteRequest(election_id=p4runtime_pb2.Uint128(low=1))
        for entity in entities:
            request.updates.add(type="INSERT", entity=entity)
        self.stub.Write(request)

    def push(self, config: bytes) -> None:
        """Load a program: BMv2 JSON with the tables of P4INFO."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(action="VERIFY_AND_COMMIT")
        request.election_id.low = 1
        request.config.p4info.CopyFrom(read_p4info(P4INFO.read_bytes()))
        request.config.p4_device_config = config
        self.stub.SetForwardingPipelineConfig(request)

    def stats(self) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{self.folder}/stats")
            with connection.makefile("rb") as lines:
                answer: dict[str, Any] = json.loads(lines.read())
        return answer

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.requests.put(None)
        self.process.send_signal(number)
        assert self.process.stderr is not None
        code = self.process.wait()
        self.errors = self.process.stderr.read()
        self.process.stderr.close()
        self.channel.close()
        return code


def entry(action: str, *args: bytes, port: int = 1) -> p4runtime_pb2.Entity:
    p4info = read_p4info(P4INFO.read_bytes())
    entity = p4runtime_pb2.Entity()
    table = next(t for t in p4info.tables if t.preamble.name == "I.exact_table")
    entity.table_entry.table_id = table.preamble.id
    for number, value in ((1, MAC), (2, bytes([port]))):
        entity.table_entry.match.add(field_id=number).exact.value = value
    chosen = next(a for a in p4info.actions if a.preamble.name == action)
    entity.table_entry.action.action.action_id = chosen.preamble.id
    for number, value in enumerate(args, 1):
        entity.table_entry.action.action.params.add(param_id=number, value=value)
    return entity


def group(number: int, *ports: int) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    replication = entity.packet_replication_engine_entry.multicast_group_entry
    replication.multicast_group_id = number
    for port in ports:
        replication.replicas.add(egress_port=port, instance=1)
    return entity


class Failure:
    """Runs a switch that must not start."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def __call__(self, *words: str, before: tuple[str, ...] = ()) -> tuple[int, str]:
        command = self.lab.switch.command(*before, sys.executable, "-m", "p4native.switch", *words)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("switch: ")
        return done.returncode, done.stderr


def address(folder: Path) -> tuple[str, ...]:
    return ("--", "--grpc-server-addr", f"unix:{folder}/grpc")

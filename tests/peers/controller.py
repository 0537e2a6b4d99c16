"""A P4Runtime client that says what it is answered as plain values, and the two servers to ask."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")


import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2
from p4.v1 import p4runtime_pb2 as pb
from p4.v1 import p4runtime_pb2_grpc

from p4native.switch.p4runtime.text import read_p4info

assert p4native.switch.p4runtime
ROOT = Path(__file__).resolve().parents[2]
DEVICE_ID = 7
CPU_PORT = 255
TIMEOUT_S = 20
MARKER = 99
"""The kind of packet that nothing happens to: it says that all before it have been answered."""
VOLATILE = ("timestamp", "elapsedNs", "listId")


@contextmanager
def server(command: list[str], folder: Path) -> Iterator[str]:
    """The address of a started server with no interfaces."""
    address = f"unix:{folder}/grpc"
    words = [*command, "--no-p4", "--device-id", str(DEVICE_ID)]
    words += ["--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
    with open(folder / "log", "w") as log:
        # A namespace of its own: BMv2's Thrift port is the same for all.
        process = subprocess.Popen(
            ["unshare", "--net", "--map-root-user", *words],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
    try:
        channel = grpc.insecure_channel(address, OPTIONS)
        grpc.channel_ready_future(channel).result(TIMEOUT_S)
        channel.close()
        yield address
    finally:
        process.kill()
        process.wait()


OPTIONS = [
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 50),
]
OURS = [sys.executable, "-m", "p4native.switch"]
PEER = ["simple_switch_grpc"]


class Controller:
    """One channel and its stream. Answers are status names, or entities as sorted dictionaries."""

    def __init__(self, address: str, p4info: bytes, program: bytes) -> None:
        self._made_of = address, p4info, program
        self.others: list[Controller] = []
        self.p4info = read_p4info(p4info)
        self.program = program
        self.channel = grpc.insecure_channel(address, OPTIONS)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        threading.Thread(target=self._listen, daemon=True).start()
        self.election = pb.Uint128()
        self.role = ""

    def _listen(self) -> None:
        try:
            for message in self.stream:
                self.heard.put(message)
        except grpc.RpcError as error:
            self.heard.put(error)

    def another(self) -> Controller:
        """One more controller of the same server, closed by `close_all`."""
        self.others.append(Controller(*self._made_of))
        return self.others[-1]

    def close_all(self) -> None:
        for controller in (self, *self.others):
            controller.close()

    def close(self) -> None:
        self.requests.put(None)
        self.stream.cancel()
        self.channel.close()

    def next(self, kind: str = "", within_s: float = TIMEOUT_S) -> Any:
        """The next message of the stream, of that kind; the code's name when the stream has ended;
        None for nothing."""
        limit = time.monotonic() + within_s
        while True:
            try:
                message = self.heard.get(timeout=max(0.0, limit - time.monotonic()))
            except queue.Empty:
                return None
            if isinstance(message, grpc.RpcError):
                return message.code().name
            if kind in ("", message.WhichOneof("update")):
                return message

    # ---- requests

    def arbitrate(self, election: int | None, device: int = DEVICE_ID, role: str = "") -> Any:
        request = pb.StreamMessageRequest()
        request.arbitration.device_id = device
        if role:
            request.arbitration.role.name = role
        if election is not None:
            request.arbitration.election_id.high = election >> 64
            request.arbitration.election_id.low = election & (1 << 64) - 1
            self.election.CopyFrom(request.arbitration.election_id)
        self.role = role
        self.requests.put(request)
        return self.next_arbitration()

    def next_arbitration(self, within_s: float = TIMEOUT_S) -> Any:
        message = self.next("arbitration", within_s)
        if message is None or isinstance(message, str):
            return message
        found = message.arbitration
        return code_pb2.Code.Name(found.status.code), found.election_id.low, found.role.name

    def configure(self, action: str, config: Any = "own") -> str:
        request = pb.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID, election_id=self.election, role=self.role
        )
        request.action = request.Action.Value(action)
        if config == "own":
            request.config.p4info.CopyFrom(self.p4info)
            request.config.p4_device_config = self.program
            request.config.cookie.cookie = 77
        elif config is not None:
            request.config.CopyFrom(config)
        return self.code(lambda: self.stub.SetForwardingPipelineConfig(request, timeout=60))

    def configuration(self, kind: str) -> Any:
        request = pb.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)
        request.response_type = request.ResponseType.Value(kind)
        try:
            config = self.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S).config
        except grpc.RpcError as error:
            return error.code().name
        same = config.p4info == self.p4info, config.p4_device_config == self.program
        return config.cookie.cookie, *same

    def write(self, *updates: tuple[str, Any], **fields: Any) -> Any:
        """OK, the codes of each update, or the code of the whole."""
        request = pb.WriteRequest(
            **{
                "device_id": DEVICE_ID,
                "election_id": self.election,
                "role": self.role,
                **fields,
            }
        )
        for kind, entity in updates:
            request.updates.add(type=pb.Update.Type.Value(kind), entity=entity)
        try:
            self.stub.Write(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            return update_codes(error) or error.code().name
        return "OK"

    def read(self, *queries: Any, device: int = DEVICE_ID) -> Any:
        """What is read, in an order of its own, or the code."""
        request = pb.ReadRequest(device_id=device, entities=queries)
        try:
            answers = list(self.stub.Read(request, timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            return error.code().name
        return sorted((plain(entity) for answer in answers for entity in answer.entities), key=repr)

    def packets(self, *packets: bytes) -> list[bytes]:
        """What comes back for these packets."""
        for payload in (*packets, bytes([MARKER]) + bytes(9)):
            request = pb.StreamMessageRequest()
            request.packet.payload = payload
            request.packet.metadata.add(metadata_id=1, value=b"\x01")
            request.packet.metadata.add(metadata_id=2, value=b"\x00")
            self.requests.put(request)
        heard = []
        while (message := self.next("packet")) is not None and not isinstance(message, str):
            if message.packet.payload[0] == MARKER:
                return heard
            heard.append(message.packet.payload)
        raise AssertionError(f"the marker did not come back: {message}")

    @staticmethod
    def code(call: Any) -> str:
        try:
            call()
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    # ---- entities by name

    def id(self, kind: str, name: str) -> int:
        things = getattr(self.p4info, kind)
        return next(t.preamble.id for t in things if t.preamble.name in (name, f"I.{name}"))

    def action(self, name: str, *args: bytes) -> Any:
        message = pb.Action(action_id=self.id("actions", name))
        for number, value in enumerate(args, 1):
            message.params.add(param_id=number, value=value)
        return message

    def entry(self, table: str, *match: Any, does: Any = None, **fields: Any) -> Any:
        """does: an action, or a dictionary of TableAction."""
        message = pb.TableEntry(table_id=self.id("tables", table), match=match, **fields)
        if isinstance(does, dict):
            message.action.CopyFrom(pb.TableAction(**does))
        elif does is not None:
            message.action.action.CopyFrom(does)
        return pb.Entity(table_entry=message)


def update_codes(error: Any) -> list[str]:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            codes = []
            for detail in status_pb2.Status.FromString(value).details:
                found = pb.Error()
                assert detail.Unpack(found)
                codes.append(code_pb2.Code.Name(found.canonical_code))
            return codes
    return []


def plain(message: Any) -> dict[str, Any]:
    """A message as a dictionary, without what no two runs have the same."""
    found: dict[str, Any] = json_format.MessageToDict(message)
    return without(found)


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "..." if k in VOLATILE else without(v) for k, v in value.items()}
    return [without(v) for v in value] if isinstance(value, list) else value

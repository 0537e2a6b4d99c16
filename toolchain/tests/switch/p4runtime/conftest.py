"""A P4Runtime server in this process, driven by a real gRPC client over a Unix socket."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# gRPC's core tells the terminal of connections that end.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from google.rpc import status_pb2
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

from p4native.switch import Pipeline
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.links import Links
from p4native.switch.p4runtime.server import Server
from p4native.switch.p4runtime.text import read_p4info

HERE = Path(__file__).parent
DEVICE_ID = 7
assert p4native.switch.p4runtime


class Client:
    """One controller: a channel, its stream, and short ways to write and read."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        self.election_id = p4runtime_pb2.Uint128()

    def arbitrate(self, low: int, device_id: int = DEVICE_ID, role: str = "") -> Any:
        """Introduce itself and return the next message of the stream."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = device_id
        if role:
            request.arbitration.role.name = role
        request.arbitration.election_id.low = low
        self.election_id.low = low
        self.requests.put(request)
        return next(self.stream).arbitration

    def write(self, *updates: Any) -> None:
        """One Write of (kind, entity) pairs; raises grpc.RpcError."""
        request = p4runtime_pb2.WriteRequest(device_id=DEVICE_ID, election_id=self.election_id)
        for kind, entity in updates:
            request.updates.add(type=p4runtime_pb2.Update.Type.Value(kind), entity=entity)
        self.stub.Write(request)

    def refused(self, *updates: Any) -> list[tuple[str, str]]:
        """A Write that must fail: the (code, message) of each update."""
        with pytest.raises(grpc.RpcError) as caught:
            self.write(*updates)
        assert caught.value.code() == grpc.StatusCode.UNKNOWN
        return error_details(caught.value)

    def read(self, *queries: Any) -> list[Any]:
        """All entities that one Read returns."""
        request = p4runtime_pb2.ReadRequest(device_id=DEVICE_ID, entities=queries)
        return [entity for reply in self.stub.Read(request) for entity in reply.entities]

    def configure(self, action: str, config: Any = None) -> None:
        """SetForwardingPipelineConfig."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID, election_id=self.election_id
        )
        request.action = request.Action.Value(action)
        if config is not None:
            request.config.CopyFrom(config)
        self.stub.SetForwardingPipelineConfig(request)

    def close(self) -> None:
        """End the stream."""
        self.requests.put(None)
        self.stream.cancel()
        self.channel.close()


def error_details(error: Any) -> list[tuple[str, str]]:
    """(code name, message) of each p4.v1.Error in a failed Write."""
    metadata = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    assert status.code == grpc.StatusCode.UNKNOWN.value[0]
    names = {code.value[0]: code.name for code in grpc.StatusCode}
    details = []
    for packed in status.details:
        detail = p4runtime_pb2.Error()
        assert packed.Unpack(detail)
        details.append((names[detail.canonical_code], detail.message))
    return details


@pytest.fixture(scope="session")
def entities_config() -> Any:
    """entities.p4 as a ForwardingPipelineConfig."""
    return p4runtime_pb2.ForwardingPipelineConfig(
        p4info=read_p4info((HERE / "entities.p4info.txtpb").read_bytes()),
        p4_device_config=(HERE / "entities.json").read_bytes(),
        cookie=p4runtime_pb2.ForwardingPipelineConfig.Cookie(cookie=99),
    )


class Ids:
    """P4Info ids by name."""

    def __init__(self, p4info: p4info_pb2.P4Info) -> None:
        self.p4info = p4info

    def __getattr__(self, kind: str) -> Callable[[str], int]:
        things = getattr(self.p4info, kind)
        return lambda name: next(t.preamble.id for t in things if t.preamble.name == name)


@pytest.fixture(scope="session")
def ids(entities_config: Any) -> Ids:
    """ids.tables("I.lpm_table") and so on."""
    return Ids(entities_config.p4info)


class FakeLinks(Links):
    """Ports 1 to 20, which a test pulls out and puts in."""

    def __init__(self) -> None:
        super().__init__({}, always=range(1, 21))
        self.down: set[int] = set()

    def up(self, port: int) -> bool:
        return port not in self.down

    def watch(self, changed: Callable[[], None]) -> None:
        self.tell = changed

    def pull(self, *ports: int) -> None:
        """Exactly these have no link now."""
        self.down = set(ports)
        self.tell()


class Switch:
    """A server without interfaces; `installed` is what the data plane would run."""

    def __init__(self, folder: Path) -> None:
        self.address = f"unix:{folder}/grpc"
        self.installed: list[Pipeline | None] = []
        self.clients: list[Client] = []
        self.links = FakeLinks()
        self.device = Device(self.installed.append, links=self.links)
        self.server = Server(self.address, DEVICE_ID, self.device, None, self.links)
        self.server.start()

    @property
    def pipeline(self) -> Pipeline:
        """What runs now."""
        pipeline = self.installed[-1]
        assert pipeline is not None
        return pipeline

    def client(self) -> Client:
        """One more controller."""
        self.clients.append(Client(self.address))
        return self.clients[-1]

    def close(self) -> None:
        """End everything."""
        for client in self.clients:
            client.close()
        self.server.stop()


@pytest.fixture
def switch_server(tmp_path: Path) -> Iterator[Switch]:
    """A server that has no program yet."""
    server = Switch(tmp_path)
    yield server
    server.close()


@pytest.fixture
def primary(switch_server: Switch, entities_config: Any) -> Client:
    """The primary of a server that runs entities.p4."""
    client = switch_server.client()
    assert client.arbitrate(1).status.code == 0
    client.configure("VERIFY_AND_COMMIT", entities_config)
    return client

"""Pipeline configuration, sessions and packet I/O over gRPC."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, TableEntry

from p4native.switch import Pipeline
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.p4info import Field
from p4native.switch.p4runtime.packets import decode_packet_in, encode_packet_out
from p4native.switch.p4runtime.server import AddressError, Server
from p4native.switch.p4runtime.status import StatusError
from p4native.switch.p4runtime.text import read_p4info

assert p4native.switch.p4runtime
DEVICE_ID = 7


def code_of(call: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return str(caught.value.code().name)


def everything() -> Entity:
    return Entity(table_entry=TableEntry())


def group(number: int) -> Entity:
    entity = Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = number
    entry.replicas.add(egress_port=number, instance=1)
    return entity


def test_before_a_configuration(switch_server: Any) -> None:
    client = switch_server.client()
    client.arbitrate(1)
    assert code_of(lambda: client.write(("INSERT", group(1)))) == "FAILED_PRECONDITION"
    assert code_of(lambda: client.read(everything())) == "FAILED_PRECONDITION"
    request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)
    assert (
        code_of(lambda: client.stub.GetForwardingPipelineConfig(request)) == "FAILED_PRECONDITION"
    )


def test_commit_installs_and_is_read_back(
    primary: Any, switch_server: Any, entities_config: Any
) -> None:
    assert len(switch_server.installed) == 1
    Request = p4runtime_pb2.GetForwardingPipelineConfigRequest
    expected = {
        "ALL": (True, True),
        "COOKIE_ONLY": (False, False),
        "P4INFO_AND_COOKIE": (True, False),
        "DEVICE_CONFIG_AND_COOKIE": (False, True),
    }
    for name, (p4info, program) in expected.items():
        request = Request(device_id=DEVICE_ID, response_type=Request.ResponseType.Value(name))
        config = primary.stub.GetForwardingPipelineConfig(request).config
        assert config.cookie.cookie == 99
        assert config.p4info == (entities_config.p4info if p4info else type(config.p4info)())
        assert config.p4_device_config == (entities_config.p4_device_config if program else b"")


def test_a_program_inside_a_p4_device_config(
    primary: Any, switch_server: Any, entities_config: Any
) -> None:
    """reassign: true, extras: {}, device_data: the JSON."""
    json = entities_config.p4_device_config
    length = bytes([len(json) & 0x7F | 0x80, len(json) >> 7 & 0x7F | 0x80, len(json) >> 14])
    wrapped = type(entities_config)(p4info=entities_config.p4info)
    wrapped.p4_device_config = b"\x08\x01\x12\x00\x1a" + length + json
    installed = len(switch_server.installed)
    primary.configure("VERIFY_AND_COMMIT", wrapped)
    assert len(switch_server.installed) == installed + 1
    for wrong in (b"\x08\x01", b"\x1a\x7f", b"\xff", b"no JSON"):
        wrapped.p4_device_config = wrong
        assert code_of(lambda: primary.configure("VERIFY", wrapped)) == "INVALID_ARGUMENT"


def test_verify_changes_nothing(primary: Any, switch_server: Any, entities_config: Any) -> None:
    primary.write(("INSERT", group(3)))
    primary.configure("VERIFY", entities_config)
    assert len(switch_server.installed) == 1
    assert primary.read(group(0)) == [group(3)]


def test_verify_and_commit_clears(primary: Any, switch_server: Any, entities_config: Any) -> None:
    primary.write(("INSERT", group(3)))
    primary.configure("VERIFY_AND_COMMIT", entities_config)
    assert len(switch_server.installed) == 2
    assert primary.read(group(0)) == []


def test_reconcile_keeps(primary: Any, switch_server: Any, entities_config: Any) -> None:
    primary.write(("INSERT", group(3)))
    primary.configure("RECONCILE_AND_COMMIT", entities_config)
    assert len(switch_server.installed) == 2
    assert primary.read(group(0)) == [group(3)]


def test_save_then_write_then_commit(
    primary: Any, switch_server: Any, entities_config: Any
) -> None:
    primary.write(("INSERT", group(3)))
    primary.configure("VERIFY_AND_SAVE", entities_config)
    assert len(switch_server.installed) == 1
    primary.write(("INSERT", group(4)))
    primary.configure("COMMIT")
    assert len(switch_server.installed) == 2
    assert primary.read(group(0)) == [group(4)]
    assert code_of(lambda: primary.configure("COMMIT")) == "NOT_FOUND"


def test_commit_of_another_config_drops_the_saved_one(
    primary: Any, switch_server: Any, entities_config: Any
) -> None:
    before = switch_server.pipeline
    primary.configure("VERIFY_AND_SAVE", entities_config)
    primary.write(("INSERT", group(4)))
    primary.configure("VERIFY_AND_COMMIT", entities_config)
    assert primary.read(group(0)) == []
    assert code_of(lambda: primary.configure("COMMIT")) == "NOT_FOUND"
    assert before.handle == 0, "what no longer runs is freed"
    assert switch_server.pipeline.handle != 0


def test_what_is_not_committed_is_freed(
    primary: Any, entities_config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Pipeline] = []
    monkeypatch.setattr(Pipeline, "close", lambda pipeline: closed.append(pipeline))
    primary.configure("VERIFY", entities_config)
    other = p4runtime_pb2.ForwardingPipelineConfig()
    other.CopyFrom(entities_config)
    other.p4info.tables[0].match_fields[0].bitwidth = 47
    assert code_of(lambda: primary.configure("VERIFY", other)) == "INVALID_ARGUMENT"
    assert len(set(map(id, closed))) == 2


def test_a_primary_that_changes_while_a_program_is_compiled(
    primary: Any, switch_server: Any, entities_config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = switch_server.device.prepare
    freed = []

    def change(request: Any) -> Any:
        switch_server.client().arbitrate(2)
        prepared = prepare(request)
        freed.append(prepared.pipeline)
        return prepared

    monkeypatch.setattr(switch_server.device, "prepare", change)
    commit = lambda: primary.configure("VERIFY_AND_COMMIT", entities_config)  # noqa: E731
    assert code_of(commit) == "PERMISSION_DENIED"
    assert len(switch_server.installed) == 1 and freed[0].handle == 0


def test_wrong_configurations(primary: Any, switch_server: Any, entities_config: Any) -> None:
    Config = p4runtime_pb2.ForwardingPipelineConfig

    def refused(action: str, config: Any = None) -> str:
        return code_of(lambda: primary.configure(action, config))

    assert refused("UNSPECIFIED", entities_config) == "INVALID_ARGUMENT"
    assert refused("VERIFY") == "INVALID_ARGUMENT"
    assert refused("COMMIT", entities_config) == "INVALID_ARGUMENT"
    assert refused("VERIFY", Config(p4info=entities_config.p4info)) == "INVALID_ARGUMENT"
    broken = Config(p4info=entities_config.p4info, p4_device_config=b'{"tables": 3')
    assert refused("VERIFY_AND_COMMIT", broken) == "INVALID_ARGUMENT"
    other = Config()
    other.CopyFrom(entities_config)
    other.p4info.tables[0].preamble.name = "I.other_table"
    assert refused("VERIFY_AND_COMMIT", other) == "INVALID_ARGUMENT"
    assert len(switch_server.installed) == 1, "what ran goes on running"
    assert primary.read(everything())


def test_only_the_primary_configures_and_writes(
    primary: Any, switch_server: Any, entities_config: Any
) -> None:
    backup = switch_server.client()
    assert backup.arbitrate(0).status.code == grpc.StatusCode.ALREADY_EXISTS.value[0]
    assert code_of(lambda: backup.write(("INSERT", group(1)))) == "PERMISSION_DENIED"
    assert code_of(lambda: backup.configure("VERIFY", entities_config)) == "PERMISSION_DENIED"
    assert backup.read(group(0)) == [], "anybody may read"


def test_a_new_primary_takes_over(primary: Any, switch_server: Any) -> None:
    heir = switch_server.client()
    assert heir.arbitrate(2).status.code == 0
    update = next(primary.stream).arbitration
    assert (update.status.code, update.election_id.low) == (6, 2)
    heir.write(("INSERT", group(1)))
    assert code_of(lambda: primary.write(("INSERT", group(2)))) == "PERMISSION_DENIED"


def test_a_stream_that_ends_leaves_no_primary(primary: Any, switch_server: Any) -> None:
    watcher = switch_server.client()
    watcher.arbitrate(0)
    primary.close()
    update = next(watcher.stream).arbitration
    assert update.status.code == grpc.StatusCode.NOT_FOUND.value[0]


def test_arbitration_errors_end_the_stream(switch_server: Any) -> None:
    assert code_of(lambda: switch_server.client().arbitrate(1, device_id=8)) == "NOT_FOUND"
    switch_server.client().arbitrate(5)
    assert code_of(lambda: switch_server.client().arbitrate(5)) == "INVALID_ARGUMENT"


def test_requests_for_the_wrong_device_and_atomicity(primary: Any) -> None:
    request = p4runtime_pb2.ReadRequest(device_id=8)
    assert code_of(lambda: list(primary.stub.Read(request))) == "NOT_FOUND"
    write = p4runtime_pb2.WriteRequest(
        device_id=DEVICE_ID, election_id=primary.election_id, atomicity=3
    )
    assert code_of(lambda: primary.stub.Write(write)) == "INVALID_ARGUMENT"


def test_two_servers_cannot_share_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    device = Device(lambda pipeline: None)
    server = Server(address, 1, device, None)
    server.start()
    with pytest.raises(AddressError, match=address):
        Server(address, 2, device, None)
    server.stop()


def test_a_socket_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    with pytest.raises(AddressError, match="at most 107 bytes"):
        Server(f"unix:{folder}/grpc", 0, Device(lambda _: None), None)


def test_capabilities(switch_server: Any) -> None:
    client = switch_server.client()
    answer = client.stub.Capabilities(p4runtime_pb2.CapabilitiesRequest())
    assert answer.p4runtime_api_version.startswith("1.")


def test_packet_out_needs_a_cpu_port(primary: Any) -> None:
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = b"hello"
    for number, value in ((1, b"\x02"), (2, b"\0")):
        request.packet.metadata.add(metadata_id=number, value=value)
    primary.requests.put(request)
    error = next(primary.stream).error
    assert error.canonical_code == grpc.StatusCode.FAILED_PRECONDITION.value[0]
    assert "--cpu-port" in error.message
    assert error.packet_out.packet_out.payload == b"hello"


def test_a_backup_may_not_send_packets(primary: Any, switch_server: Any) -> None:
    backup = switch_server.client()
    backup.arbitrate(0)
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = b"hello"
    backup.requests.put(request)
    error = next(backup.stream).error
    assert error.canonical_code == grpc.StatusCode.PERMISSION_DENIED.value[0]


def test_an_acknowledgement_of_an_unknown_digest_is_answered(primary: Any) -> None:
    request = p4runtime_pb2.StreamMessageRequest()
    request.digest_ack.digest_id = 4
    primary.requests.put(request)
    error = next(primary.stream).error
    assert error.canonical_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert "digest_id 0x4" in error.message and error.digest_list_ack.digest_list_ack.digest_id == 4


FIELDS = (Field(1, "port", 9), Field(2, "reason", 7), Field(3, "cookie", 16))


def test_packet_headers_are_packed_by_width() -> None:
    message = p4runtime_pb2.PacketOut(payload=b"payload")
    for number, value in ((3, b"\xbe\xef"), (1, b"\x01\x02"), (2, b"\x03")):
        message.metadata.add(metadata_id=number, value=value)
    frame = encode_packet_out(FIELDS, message)
    assert frame == bytes.fromhex("8103beef") + b"payload"
    packet = decode_packet_in(FIELDS, frame)
    assert packet is not None and packet.payload == b"payload"
    values = [(item.metadata_id, item.value) for item in packet.metadata]
    assert values == [(1, b"\x01\x02"), (2, b"\x03"), (3, b"\xbe\xef")]
    assert decode_packet_in(FIELDS, b"abc") is None


@pytest.mark.parametrize(
    ("metadata", "what"),
    [({1: b"\x01"}, "reason: it is missing"), ({1: b"\x04\x00"}, "port"), ({9: b"\x01"}, "id 9")],
)
def test_wrong_packet_metadata_is_named(metadata: dict[int, bytes], what: str) -> None:
    message = p4runtime_pb2.PacketOut()
    for number, value in metadata.items():
        message.metadata.add(metadata_id=number, value=value)
    with pytest.raises(StatusError, match=what):
        encode_packet_out(FIELDS, message)


def test_p4info_is_read_as_text_and_as_binary(entities_config: Any) -> None:
    p4info = entities_config.p4info
    assert read_p4info(p4info.SerializeToString()) == p4info
    with pytest.raises(ValueError, match="neither text nor binary"):
        read_p4info(b"tables { nonsense: 3 }")


TYPES = b"""type_info { new_types {
    key: "port_id_t" value { original_type { bitstring { bit { bitwidth: 9 } } } } } }"""


def test_p4info_with_types_of_the_programs_own(primary: Any, entities_config: Any) -> None:
    """`type bit<9> port_id_t;` makes type_info, which is a map."""
    key = b"port_id_t"
    plain = p4info_pb2.P4Info()
    plain.CopyFrom(entities_config.p4info)
    plain.ClearField("type_info")
    text = text_format.MessageToString(plain).encode() + TYPES
    p4info = read_p4info(text)
    assert key in p4info.SerializeToString()
    config = p4runtime_pb2.ForwardingPipelineConfig()
    config.CopyFrom(entities_config)
    config.p4info.CopyFrom(p4info)
    primary.configure("VERIFY_AND_COMMIT", config)
    request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)
    read = primary.stub.GetForwardingPipelineConfig(request).config
    assert read.p4info.SerializeToString() == p4info.SerializeToString()

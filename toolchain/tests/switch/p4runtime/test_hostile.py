"""Controllers that flood, do not listen, or send what no compiler writes: others are served on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from waiting import until

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, StreamMessageRequest, StreamMessageResponse

from p4native.switch.p4runtime.packets import MAX_FRAME
from p4native.switch.p4runtime.server import THREADS
from p4native.switch.p4runtime.service import MAX_CONTROLLERS, MAX_RETURNED_BYTES, Stream
from p4native.switch.p4runtime.status import MAX_STATUS_BYTES, BatchError, Code, StatusError

assert p4native.switch.p4runtime

DEVICE_ID = 7
Change = Callable[[Any], None]


def entry(ids: Any, port: int, value: bytes = b"\x01") -> Entity:
    entity = Entity()
    message = entity.table_entry
    message.table_id = ids.tables("I.exact_table")
    message.match.add(field_id=1).exact.value = value
    message.match.add(field_id=2).exact.value = bytes([port])
    message.action.action.action_id = ids.actions("I.drop")
    return entity


# ---- P4Infos that do not fit the program


def unknown_match_type(p4info: Any) -> None:
    p4info.tables[0].match_fields[0].match_type = 99


def unknown_scope(p4info: Any) -> None:
    p4info.tables[0].action_refs[0].scope = 99


def header_of_part_of_a_byte(p4info: Any) -> None:
    packet_in = next(h for h in p4info.controller_packet_metadata if h.preamble.name == "packet_in")
    packet_in.metadata[0].bitwidth = 10


def negative_width(p4info: Any) -> None:
    p4info.controller_packet_metadata[0].metadata[0].bitwidth = -8


def parameter_too_many(p4info: Any) -> None:
    drop = next(a for a in p4info.actions if a.preamble.name == "I.drop")
    drop.params.add(id=1, name="extra", bitwidth=8)


def action_of_a_const_entry_missing(p4info: Any) -> None:
    drop = next(a for a in p4info.actions if a.preamble.name == "I.drop")
    p4info.actions.remove(drop)
    for table in p4info.tables:
        for ref in [r for r in table.action_refs if r.id == drop.preamble.id]:
            table.action_refs.remove(ref)


def larger_register(p4info: Any) -> None:
    cells = next(r for r in p4info.registers if r.preamble.name == "I.cells")
    cells.size = 9


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (unknown_match_type, "MatchType 99"),
        (unknown_scope, "Scope 99"),
        (header_of_part_of_a_byte, "not a whole number of bytes"),
        (negative_width, "-8 bits"),
        (parameter_too_many, "I.drop has other parameters"),
        (action_of_a_const_entry_missing, "action I.drop is missing"),
        (larger_register, "I.cells has 9 cells"),
    ],
)
def test_a_p4info_that_does_not_fit(
    primary: Any,
    entities_config: Any,
    switch_server: Any,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    what: str,
) -> None:
    made: list[Any] = []
    device = switch_server.device
    load = device._load
    monkeypatch.setattr(device, "_load", lambda text: made.append(load(text)) or made[-1])
    config = p4runtime_pb2.ForwardingPipelineConfig()
    config.CopyFrom(entities_config)
    change(config.p4info)
    with pytest.raises(grpc.RpcError) as caught:
        primary.configure("VERIFY_AND_COMMIT", config)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert what in caught.value.details()
    assert made[0].handle == 0, "it is freed"


# ---- Answers that have to fit into headers


@pytest.mark.parametrize(("count", "texts"), [(60, 59), (150, 1)])
def test_a_failed_batch_of_some_size_has_all_codes(
    primary: Any, ids: Any, count: int, texts: int
) -> None:
    primary.write(("INSERT", entry(ids, 1)))
    updates = [("DELETE", entry(ids, 2 + n % 100)) for n in range(count - 1)]
    refused = primary.refused(("MODIFY", entry(ids, 1)), *updates)
    assert [code for code, _ in refused] == ["OK", *["NOT_FOUND"] * (count - 1)]
    assert [number for number, (_, text) in enumerate(refused) if text] == [*range(1, texts + 1)]


def test_a_failed_batch_of_any_size_says_that_it_failed(primary: Any, ids: Any) -> None:
    updates = [("MODIFY", entry(ids, 1)) for _ in range(1999)]
    primary.write(("INSERT", entry(ids, 1)))
    with pytest.raises(grpc.RpcError) as caught:
        primary.write(*updates, ("INSERT", entry(ids, 1)))
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert caught.value.details().startswith("1 of 2000 updates failed, first: table I.exact_table")


@pytest.mark.parametrize("count", [1, 75, 90, 170, 10_000])
def test_a_status_is_never_longer_than_clients_take(count: int) -> None:
    error = BatchError([StatusError(Code.NOT_FOUND, "x" * 50)] * count)
    assert error.to_status().ByteSize() <= MAX_STATUS_BYTES


def test_a_long_value_is_not_sent_back_whole(primary: Any, ids: Any) -> None:
    [(code, message)] = primary.refused(("INSERT", entry(ids, 1, b"\xff" * 100_000)))
    assert code == "INVALID_ARGUMENT" and "dst" in message and "100000 bytes" in message


def test_a_long_name_is_not_sent_back_whole(primary: Any) -> None:
    request = p4runtime_pb2.WriteRequest(device_id=DEVICE_ID, role="x" * 100_000)
    with pytest.raises(grpc.RpcError) as caught:
        primary.stub.Write(request)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert caught.value.details().startswith("role 'xxx")


def test_a_negative_count_is_refused(primary: Any, ids: Any) -> None:
    entity = entry(ids, 1)
    entity.table_entry.counter_data.packet_count = -1
    default = Entity()
    default.table_entry.table_id = ids.tables("I.exact_table")
    default.table_entry.is_default_action = True
    default.table_entry.counter_data.byte_count = -1
    refused = primary.refused(("INSERT", entity), ("MODIFY", default))
    assert [code for code, _ in refused] == ["INVALID_ARGUMENT"] * 2
    entity.table_entry.ClearField("counter_data")
    primary.write(("INSERT", entity))
    entity.table_entry.counter_data.byte_count = -1
    [(code, _)] = primary.refused(("MODIFY", entity))
    assert code == "INVALID_ARGUMENT"
    query = entry(ids, 1)
    query.table_entry.counter_data.SetInParent()
    [found] = primary.read(query)
    assert found.table_entry.counter_data.byte_count == 0


# ---- Streams


def test_a_stream_that_nobody_reads_stays_short() -> None:
    stream = Stream()
    refusal, samples = StreamMessageResponse(), StreamMessageResponse()
    refusal.error.message = "no"
    samples.digest.list_id = 1
    for _ in range(Stream.MAX_QUEUED):
        stream.send(refusal)
        stream.send(samples)
    assert stream.outgoing.qsize() == Stream.MAX_QUEUED
    election = StreamMessageResponse()
    election.arbitration.device_id = 7
    stream.send(election)
    assert stream.outgoing.qsize() == Stream.MAX_QUEUED + 1, "who is primary is always told"


@pytest.mark.parametrize(("size", "returned"), [(MAX_FRAME + 1, True), (MAX_RETURNED_BYTES, False)])
def test_a_packet_out_that_is_too_long(primary: Any, size: int, returned: bool) -> None:
    request = StreamMessageRequest()
    request.packet.payload = bytes(size)
    primary.requests.put(request)
    error = next(primary.stream).error
    assert error.canonical_code == Code.FAILED_PRECONDITION, "there is no CPU port either"
    assert error.HasField("packet_out") == returned


def test_silent_streams_do_not_use_up_the_threads(switch_server: Any) -> None:
    """Each keeps a thread of the server."""
    streams = [switch_server.client().stream for _ in range(THREADS + 4)]
    until(lambda: sum(map(active, streams)) <= MAX_CONTROLLERS, "the others are refused")
    assert sum(map(active, streams)) == MAX_CONTROLLERS
    codes = {stream.code() for stream in streams if not active(stream)}
    assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    request = p4runtime_pb2.CapabilitiesRequest()
    assert switch_server.clients[0].stub.Capabilities(request).p4runtime_api_version


def active(stream: Any) -> bool:
    return bool(stream.is_active())

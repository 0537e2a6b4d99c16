"""Batches of which all is done or nothing, and those that no packet sees the middle of."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import CounterData, Entity, Update, WriteRequest

assert p4native.switch.p4runtime

DEVICE_ID = 7
KINDS = (
    "table_entry",
    "counter_entry",
    "direct_counter_entry",
    "register_entry",
    "packet_replication_engine_entry",
)
DST = bytes.fromhex("0a0000000001")
FRAME = DST + bytes.fromhex("0b0000000002") + bytes.fromhex("0800") + bytes(46)


def send(client: Any, atomicity: str, *updates: tuple[str, Entity]) -> None:
    request = WriteRequest(device_id=DEVICE_ID, election_id=client.election_id, atomicity=atomicity)
    for kind, entity in updates:
        request.updates.add(type=Update.Type.Value(kind), entity=entity)
    client.stub.Write(request)


def refused(client: Any, atomicity: str, *updates: tuple[str, Entity]) -> list[str]:
    """The code of each update of a batch that fails."""
    with pytest.raises(grpc.RpcError) as caught:
        send(client, atomicity, *updates)
    metadata = dict(caught.value.trailing_metadata())
    names = {code.value[0]: code.name for code in grpc.StatusCode}
    codes = []
    for packed in status_pb2.Status.FromString(metadata["grpc-status-details-bin"]).details:
        detail = p4runtime_pb2.Error()
        assert packed.Unpack(detail)
        codes.append(names[detail.canonical_code])
    return codes


def everything(client: Any) -> list[bytes]:
    queries = []
    for kind in KINDS:
        queries.append(Entity())
        getattr(queries[-1], kind).SetInParent()
    queries[0].table_entry.counter_data.SetInParent()
    return sorted(entity.SerializeToString(deterministic=True) for entity in client.read(*queries))


def forward(ids: Any, port: int, to: int, count: int | None = None) -> Entity:
    entity = Entity()
    entry = entity.table_entry
    entry.table_id = ids.tables("I.exact_table")
    entry.match.add(field_id=1).exact.value = DST
    entry.match.add(field_id=2).exact.value = bytes([port])
    entry.action.action.action_id = ids.actions("I.forward")
    entry.action.action.params.add(param_id=1, value=bytes([to]))
    if count is not None:
        entry.counter_data.packet_count = count
    return entity


def default(ids: Any, action: str) -> Entity:
    entity = Entity()
    entity.table_entry.table_id = ids.tables("I.keyless")
    entity.table_entry.is_default_action = True
    entity.table_entry.action.action.action_id = ids.actions(action)
    return entity


def counter(ids: Any, count: int, index: int | None = None) -> Entity:
    entity = Entity()
    entity.counter_entry.counter_id = ids.counters("I.ports")
    entity.counter_entry.data.CopyFrom(CounterData(packet_count=count))
    if index is not None:
        entity.counter_entry.index.index = index
    return entity


def group(number: int, port: int) -> Entity:
    entity = Entity()
    found = entity.packet_replication_engine_entry.multicast_group_entry
    found.multicast_group_id = number
    found.replicas.add(egress_port=port, instance=port)
    return entity


@pytest.fixture
def filled(primary: Any, ids: Any) -> Any:
    primary.write(
        ("INSERT", forward(ids, 1, 5, count=50)),
        ("INSERT", forward(ids, 2, 6, count=60)),
        ("MODIFY", counter(ids, 33, index=3)),
        ("INSERT", group(1, 3)),
        ("INSERT", group(2, 4)),
        ("MODIFY", default(ids, "NoAction")),
    )
    return primary


def batch(ids: Any) -> list[tuple[str, Entity]]:
    """Something of all kinds, on what is there and what is not."""
    return [
        ("MODIFY", forward(ids, 1, 9, count=7)),
        ("DELETE", forward(ids, 2, 6)),
        ("INSERT", forward(ids, 3, 8)),
        ("MODIFY", counter(ids, 1000)),
        ("MODIFY", forward(ids, 3, 7)),
        ("DELETE", forward(ids, 3, 7)),
        ("DELETE", group(1, 3)),
        ("MODIFY", group(2, 9)),
        ("INSERT", group(3, 9)),
        ("MODIFY", default(ids, "I.drop")),
        ("INSERT", forward(ids, 2, 2)),
    ]


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_a_batch_that_fails_leaves_nothing(filled: Any, ids: Any, atomicity: str) -> None:
    before = everything(filled)
    updates = batch(ids)
    for broken in range(len(updates) + 1):
        wrong = [*updates[:broken], ("DELETE", group(77, 1)), *updates[broken:]]
        codes = refused(filled, atomicity, *wrong)
        assert codes == ["ABORTED"] * broken + ["NOT_FOUND"] + ["ABORTED"] * (
            len(wrong) - broken - 1
        )
        assert everything(filled) == before
    send(filled, atomicity, *updates)
    assert everything(filled) != before


def test_no_packet_sees_the_middle_of_an_atomic_batch(
    filled: Any, switch_server: Any, ids: Any
) -> None:
    """Either to port 5, or to port 6 and dropped: never out of port 6."""
    between = [("MODIFY", counter(ids, n, index=0)) for n in range(50)]
    opened = [("MODIFY", default(ids, "NoAction")), *between, ("MODIFY", forward(ids, 1, 5))]
    closed = [("MODIFY", forward(ids, 1, 6)), *between, ("MODIFY", default(ids, "I.drop"))]
    done = threading.Event()
    seen: set[int] = set()

    def traffic() -> None:
        while not done.is_set():
            seen.update(port for port, _ in switch_server.pipeline.process(1, FRAME))

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        for _ in range(20):
            send(filled, "DATAPLANE_ATOMIC", *closed)
            send(filled, "DATAPLANE_ATOMIC", *opened)
    finally:
        done.set()
        thread.join()
    assert seen == {5}

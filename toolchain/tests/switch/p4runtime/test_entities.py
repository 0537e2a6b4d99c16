"""Counters, direct counters, registers, multicast groups and clone sessions over gRPC."""

from __future__ import annotations

from typing import Any

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from p4.v1.p4runtime_pb2 import CounterData, CounterEntry, Entity, Index, TableEntry

assert p4native.switch.p4runtime

MAC = bytes.fromhex("0a0000000001")
FRAME = MAC + bytes.fromhex("0b0000000002") + bytes.fromhex("0800") + bytes(46)


def table_entry(ids: Any, port: int, action: str, *args: bytes) -> Entity:
    entity = Entity()
    entry = entity.table_entry
    entry.table_id = ids.tables("I.exact_table")
    for number, value in ((1, MAC), (2, bytes([port]))):
        entry.match.add(field_id=number).exact.value = value
    entry.action.action.action_id = ids.actions(action)
    for number, value in enumerate(args, 1):
        entry.action.action.params.add(param_id=number, value=value)
    return entity


def counter(ids: Any, index: int | None = None, data: CounterData | None = None) -> Entity:
    entry = CounterEntry(counter_id=ids.counters("I.ports"), data=data)
    if index is not None:
        entry.index.CopyFrom(Index(index=index))
    return Entity(counter_entry=entry)


def counts(entities: list[Entity]) -> list[tuple[int, int, int]]:
    return [
        (
            e.counter_entry.index.index,
            e.counter_entry.data.packet_count,
            e.counter_entry.data.byte_count,
        )
        for e in entities
    ]


def test_counters(primary: Any, switch_server: Any, ids: Any) -> None:
    for port in (1, 2, 2):
        switch_server.pipeline.process(port, FRAME)
    size = len(FRAME)
    assert counts(primary.read(counter(ids, 2))) == [(2, 2, 2 * size)]
    expected = [(0, 0, 0), (1, 1, size), (2, 2, 2 * size), (3, 0, 0)]
    assert counts(primary.read(counter(ids))) == expected
    assert counts(primary.read(Entity(counter_entry=CounterEntry()))) == expected
    primary.write(("MODIFY", counter(ids, 2, CounterData(packet_count=7, byte_count=8))))
    switch_server.pipeline.process(2, FRAME)
    assert counts(primary.read(counter(ids, 2))) == [(2, 8, 8 + size)]
    primary.write(("MODIFY", counter(ids, None, CounterData())))
    assert counts(primary.read(counter(ids))) == [(i, 0, 0) for i in range(4)]


def test_wrong_counters(primary: Any, ids: Any) -> None:
    refused = primary.refused(
        ("INSERT", counter(ids, 1, CounterData())),
        ("MODIFY", counter(ids, 4, CounterData())),
        ("MODIFY", counter(ids, -1, CounterData())),
        ("MODIFY", Entity(counter_entry=CounterEntry(counter_id=5))),
        ("MODIFY", counter(ids, 1, CounterData(packet_count=-1))),
    )
    assert [code for code, _ in refused] == [
        "INVALID_ARGUMENT",
        "OUT_OF_RANGE",
        *["INVALID_ARGUMENT"] * 3,
    ]
    assert "I.ports" in refused[1][1] and "4" in refused[1][1]


def direct(ids: Any, port: int | None = None) -> Entity:
    entity = Entity()
    entry = entity.direct_counter_entry.table_entry
    entry.table_id = ids.tables("I.exact_table")
    if port is not None:
        entry.match.MergeFrom(table_entry(ids, port, "I.drop").table_entry.match)
    return entity


def hits(entities: list[Entity]) -> list[tuple[int, int]]:
    return [
        (e.direct_counter_entry.data.packet_count, e.direct_counter_entry.data.byte_count)
        for e in entities
    ]


def test_direct_counters(primary: Any, switch_server: Any, ids: Any) -> None:
    one, two = (table_entry(ids, port, "I.forward", b"\x03") for port in (1, 2))
    two.table_entry.counter_data.packet_count = 10
    primary.write(("INSERT", one), ("INSERT", two))
    for port in (1, 2, 2):
        switch_server.pipeline.process(port, FRAME)
    size = len(FRAME)
    assert hits(primary.read(direct(ids, 1))) == [(1, size)]
    assert hits(primary.read(direct(ids))) == [(1, size), (12, 2 * size)]
    query = Entity(table_entry=TableEntry(table_id=ids.tables("I.exact_table")))
    assert not primary.read(query)[0].table_entry.HasField("counter_data")
    query.table_entry.counter_data.SetInParent()
    assert [e.table_entry.counter_data.packet_count for e in primary.read(query)] == [1, 12]
    update = direct(ids, 1)
    update.direct_counter_entry.data.byte_count = 3
    primary.write(("MODIFY", update))
    assert hits(primary.read(direct(ids, 1))) == [(0, 3)]
    modify = table_entry(ids, 2, "I.drop")
    primary.write(("MODIFY", modify))
    assert hits(primary.read(direct(ids, 2))) == [(12, 2 * size)], "a MODIFY without data keeps it"


def test_wrong_direct_counters(primary: Any, ids: Any) -> None:
    elsewhere = Entity()
    elsewhere.direct_counter_entry.table_entry.table_id = ids.tables("I.lpm_table")
    refused = primary.refused(
        ("MODIFY", direct(ids, 1)), ("INSERT", direct(ids, 1)), ("MODIFY", elsewhere)
    )
    codes = [code for code, _ in refused]
    assert codes == ["NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT"]


def register(ids: Any, name: str, index: int | None, value: bytes | None = None) -> Entity:
    entity = Entity()
    entry = entity.register_entry
    entry.register_id = ids.registers(name)
    if index is not None:
        entry.index.index = index
    if value is not None:
        entry.data.bitstring = value
    return entity


def cells(entities: list[Entity]) -> list[bytes]:
    return [e.register_entry.data.bitstring for e in entities]


def test_registers(primary: Any, switch_server: Any, ids: Any) -> None:
    primary.write(("INSERT", table_entry(ids, 1, "I.remember", b"\x0a\xbc", b"\x05")))
    switch_server.pipeline.process(1, FRAME)
    assert cells(primary.read(register(ids, "I.cells", 5))) == [b"\x0a\xbc"]
    assert cells(primary.read(register(ids, "I.levels", None))) == [b"\0", b"\xfe", b"\0", b"\0"]
    primary.write(
        ("MODIFY", register(ids, "I.cells", 6, b"\0\x12")),
        ("MODIFY", register(ids, "I.levels", 3, b"\x80\x00")),
    )
    expected = [b"\0", b"\0", b"\0", b"\0", b"\0", b"\x0a\xbc", b"\x12", b"\0"]
    assert cells(primary.read(register(ids, "I.cells", None))) == expected
    assert cells(primary.read(register(ids, "I.levels", 3))) == [b"\x80\x00"]
    primary.write(("MODIFY", register(ids, "I.cells", None, b"\x07")))
    assert cells(primary.read(register(ids, "I.cells", None))) == [b"\x07"] * 8


def test_wrong_registers(primary: Any, ids: Any) -> None:
    unset = register(ids, "I.cells", 1)
    refused = primary.refused(
        ("MODIFY", register(ids, "I.cells", 8, b"\x01")),
        ("MODIFY", register(ids, "I.cells", 1, b"\x10\x00")),
        ("MODIFY", unset),
        ("DELETE", register(ids, "I.cells", 1, b"\x01")),
    )
    codes = [code for code, _ in refused]
    assert codes == ["OUT_OF_RANGE", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT"]
    assert "I.cells" in refused[1][1] and "12 bits" in refused[1][1]


def group(number: int, *replicas: tuple[int, int]) -> Entity:
    entity = Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = number
    for port, instance in replicas:
        entry.replicas.add(egress_port=port, instance=instance)
    return entity


def session(number: int, *ports: int, **fields: int) -> Entity:
    entity = Entity()
    entry = entity.packet_replication_engine_entry.clone_session_entry
    entry.session_id = number
    for port in ports:
        entry.replicas.add(port=bytes([port]), instance=1)
    for name, value in fields.items():
        setattr(entry, name, value)
    return entity


def test_multicast_groups(primary: Any, switch_server: Any, ids: Any) -> None:
    primary.write(("INSERT", table_entry(ids, 1, "I.multicast", b"\x09")))
    primary.write(("INSERT", group(9, (3, 1), (4, 2))), ("INSERT", group(10, (1, 1))))
    ports = [port for port, _ in switch_server.pipeline.process(1, FRAME)]
    assert ports == [3, 4]
    assert primary.read(group(9)) == [group(9, (3, 1), (4, 2))]
    assert primary.read(group(0)) == [group(9, (3, 1), (4, 2)), group(10, (1, 1))]
    primary.write(("MODIFY", group(9, (5, 1))))
    assert [port for port, _ in switch_server.pipeline.process(1, FRAME)] == [5]
    primary.write(("DELETE", group(9)))
    assert switch_server.pipeline.process(1, FRAME) == []
    with pytest.raises(grpc.RpcError) as caught:
        primary.read(group(9))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_clone_sessions(primary: Any, switch_server: Any, ids: Any) -> None:
    primary.write(("INSERT", table_entry(ids, 1, "I.copy", b"\x02")))
    primary.write(("INSERT", session(5, 3)))
    out = switch_server.pipeline.process(1, FRAME)
    assert sorted(port for port, _ in out) == [2, 3]
    assert primary.read(session(0)) == [session(5, 3)]
    primary.write(("MODIFY", session(5, 3, packet_length_bytes=20)))
    copies = dict(switch_server.pipeline.process(1, FRAME))
    assert (len(copies[2]), len(copies[3])) == (len(FRAME), 20)
    assert primary.read(session(5)) == [session(5, 3, packet_length_bytes=20)]
    primary.write(("DELETE", session(5)))
    assert [port for port, _ in switch_server.pipeline.process(1, FRAME)] == [2]


def test_wrong_groups_and_sessions(primary: Any) -> None:
    primary.write(("INSERT", group(9, (3, 1))))
    backup = group(8, (3, 1))
    replica = backup.packet_replication_engine_entry.multicast_group_entry.replicas[0]
    replica.backup_replicas.add(port=b"\x04")
    refused = primary.refused(
        ("INSERT", group(9, (3, 1))),
        ("MODIFY", group(8, (3, 1))),
        ("DELETE", session(5)),
        ("INSERT", group(0, (3, 1))),
        ("INSERT", group(7, (3, 1), (3, 1))),
        ("INSERT", group(7, (512, 1))),
        ("INSERT", group(7, (5, 65536))),
        ("INSERT", session(40000, 3)),
        ("INSERT", backup),
        ("INSERT", session(5, 3, class_of_service=1)),
        ("INSERT", session(5, 3, packet_length_bytes=-1)),
        ("INSERT", Entity(packet_replication_engine_entry={})),
    )
    assert [code for code, _ in refused] == [
        "ALREADY_EXISTS",
        "NOT_FOUND",
        "NOT_FOUND",
        *["INVALID_ARGUMENT"] * 5,
        "UNIMPLEMENTED",
        "UNIMPLEMENTED",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
    ]

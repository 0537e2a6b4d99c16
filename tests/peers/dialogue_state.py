"""Counters, meters, registers, multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller import Controller
from dialogue import Step, delete, exact, group, insert, lpm, modify, packet
from p4.v1 import p4runtime_pb2 as pb


def counter(
    c: Controller, name: str, index: int | None = None, packets: int = 0, size: int = 0
) -> Any:
    entity = pb.Entity(counter_entry={"counter_id": c.id("counters", name)})
    if index is not None:
        entity.counter_entry.index.index = index
    if packets or size:
        entity.counter_entry.data.packet_count = packets
        entity.counter_entry.data.byte_count = size
    return entity


@group
def counters(c: Controller) -> Iterator[Step]:
    names = ("both", "packets", "bytes")
    c.packets(packet(9, b=1), packet(9, b=1), packet(9, b=0), packet(9, b=9))
    for name in names:
        yield f"read {name}", c.read(counter(c, name))
        yield f"read {name}[1]", c.read(counter(c, name, 1))
        yield f"read {name}[9]", c.read(counter(c, name, 9))
        yield f"read {name}[-1]", c.read(counter(c, name, -1))
        yield f"write {name}[0]", c.write(modify(counter(c, name, 0, 100, 2000)))
        yield f"read {name}[0]", c.read(counter(c, name, 0))
        yield f"write {name}[9]", c.write(modify(counter(c, name, 9, 100, 2000)))
        yield f"write {name}[-1]", c.write(modify(counter(c, name, -1, 100, 2000)))
    c.packets(packet(9, b=0))
    yield "counts on", [c.read(counter(c, name, 0)) for name in names]
    yield "insert", c.write(insert(counter(c, "both", 0, 1, 1)))
    yield "delete", c.write(delete(counter(c, "both", 0, 1, 1)))
    for name in names:
        c.write(modify(counter(c, name, 0, 5, 6)))
    yield "read all", c.read(pb.Entity(counter_entry={}))
    yield "unknown", c.read(pb.Entity(counter_entry={"counter_id": 0x12000001}))
    yield "write unknown", c.write(modify(pb.Entity(counter_entry={"counter_id": 0x12000001})))
    yield "write all cells", c.write(modify(counter(c, "both", None, 3, 4)))
    yield "without data", c.write(modify(counter(c, "both", 1)))
    yield "read cell without data", c.read(counter(c, "both", 1))


@group
def direct_counters(c: Controller) -> Iterator[Step]:
    key = exact(1, b"\5"), exact(2, b"\1")
    entry = c.entry("exact_table", *key, does=c.action("keep"))
    yield "insert", c.write(insert(entry))
    c.packets(packet(1, 5, d=1), packet(1, 5, d=1), packet(1, 6, d=1))

    def direct(entity: Any, packets: int = 0, size: int = 0) -> Any:
        found = pb.Entity(direct_counter_entry={"table_entry": entity.table_entry})
        if packets or size:
            found.direct_counter_entry.data.packet_count = packets
            found.direct_counter_entry.data.byte_count = size
        return found

    plain = c.entry("exact_table", *key)
    yield "read", c.read(direct(plain))
    yield "read of the table", c.read(direct(c.entry("exact_table")))
    asked = c.entry("exact_table")
    asked.table_entry.counter_data.SetInParent()
    yield "read with the entry", c.read(asked)
    yield "write", c.write(modify(direct(plain, 70, 700)))
    yield "read again", c.read(direct(plain))
    c.packets(packet(1, 5, d=1))
    yield "counts on", c.read(direct(plain))
    given = c.entry("exact_table", *key, does=c.action("keep"))
    given.table_entry.counter_data.packet_count = 7
    given.table_entry.counter_data.byte_count = 8
    yield "modify with the entry", c.write(modify(given))
    yield "read of modified", c.read(direct(plain))
    yield "modify leaves it", c.write(modify(entry))
    yield "read of left", c.read(direct(plain))
    yield "unknown entry", c.read(direct(c.entry("exact_table", key[0], exact(2, b"\2"))))
    yield (
        "write unknown entry",
        c.write(modify(direct(c.entry("exact_table", key[0], exact(2, b"\2")), 1))),
    )
    yield "a table without", c.read(direct(c.entry("ternary_table")))
    yield "write to a table without", c.write(modify(direct(c.entry("fixed", exact(1, b"\1")), 1)))
    yield "insert one", c.write(insert(direct(plain, 1)))
    yield "delete", c.write(delete(direct(plain, 1)))
    yield "no entry", c.write(modify(pb.Entity(direct_counter_entry={})))
    inserted = c.entry("exact_table", exact(1, b"\6"), exact(2, b"\1"), does=c.action("keep"))
    inserted.table_entry.counter_data.packet_count = 40
    yield "insert with counts", c.write(insert(inserted))
    yield "read both", c.read(asked)
    wrong = c.entry("ternary_table", exact(4, b"\1"), does=c.action("keep"), priority=1)
    wrong.table_entry.counter_data.packet_count = 1
    yield "counts where none are", c.write(insert(wrong))
    yield (
        "of lpm, packets only",
        c.write(insert(c.entry("lpm_table", lpm(1, b"\x0a\0\0\0", 8), does=c.action("keep")))),
    )
    c.packets(packet(2, c=0x0A000001))
    yield "read packets only", c.read(direct(c.entry("lpm_table")))


def meter(c: Controller, name: str, index: int | None = None, **config: int) -> Any:
    entity = pb.Entity(meter_entry={"meter_id": c.id("meters", name)})
    if index is not None:
        entity.meter_entry.index.index = index
    if config:
        entity.meter_entry.config.CopyFrom(pb.MeterConfig(**config))
    return entity


@group
def meters(c: Controller) -> Iterator[Step]:
    rates = {"cir": 1, "cburst": 2, "pir": 2, "pburst": 4}
    yield "read before", c.read(meter(c, "packet_meters"))
    yield "green before", c.packets(*[packet(6, b=1)] * 3)
    yield "write", c.write(modify(meter(c, "packet_meters", 1, **rates)))
    yield "read", c.read(meter(c, "packet_meters"))
    yield "read one", c.read(meter(c, "packet_meters", 1))
    yield "colours", c.packets(*[packet(6, b=1)] * 6)
    yield "others are green", c.packets(*[packet(6, b=2)] * 6)
    yield "index 9", c.read(meter(c, "packet_meters", 9))
    yield "write index 9", c.write(modify(meter(c, "packet_meters", 9, **rates)))
    yield "write index -1", c.write(modify(meter(c, "packet_meters", -1, **rates)))
    yield (
        "negative",
        c.write(modify(meter(c, "packet_meters", 0, cir=-5, cburst=1, pir=1, pburst=1))),
    )
    yield (
        "committed above peak",
        c.write(modify(meter(c, "packet_meters", 0, cir=9, cburst=1, pir=1, pburst=1))),
    )
    yield "insert", c.write(insert(meter(c, "packet_meters", 0, **rates)))
    yield "reset", c.write(modify(meter(c, "packet_meters", 1)))
    yield "read reset", c.read(meter(c, "packet_meters", 1))
    yield "green again", c.packets(*[packet(6, b=1)] * 6)
    yield "bytes", c.write(modify(meter(c, "byte_meters", 1, cir=1, cburst=25, pir=1, pburst=40)))
    yield "colours by bytes", c.packets(*[packet(7, b=1)] * 4)
    yield (
        "large",
        c.write(
            modify(meter(c, "byte_meters", 0, cir=10**9, cburst=10**6, pir=10**10, pburst=10**7))
        ),
    )
    yield "read large", c.read(meter(c, "byte_meters", 0))
    yield (
        "huge burst",
        c.write(modify(meter(c, "byte_meters", 0, cir=1, cburst=2**40, pir=1, pburst=2**40))),
    )
    yield "unknown", c.read(pb.Entity(meter_entry={"meter_id": 0x14000001}))
    yield "all", c.read(pb.Entity(meter_entry={}))
    yield "all cells at once", c.write(modify(meter(c, "packet_meters", None, **rates)))


@group
def direct_meters(c: Controller) -> Iterator[Step]:
    config = pb.MeterConfig(cir=1, cburst=2, pir=2, pburst=3)
    entry = c.entry("metered", exact(1, b"\5"), does=c.action("paint"))
    plain = c.entry("metered", exact(1, b"\5"))
    yield "insert", c.write(insert(entry))
    yield "green", c.packets(*[packet(8, 5)] * 4)
    yield "miss", c.packets(packet(8, 6))
    direct = pb.Entity(direct_meter_entry={"table_entry": plain.table_entry, "config": config})
    query = pb.Entity(direct_meter_entry={"table_entry": plain.table_entry})
    yield "read before", c.read(query)
    yield "write", c.write(modify(direct))
    yield "read", c.read(query)
    yield "colours", c.packets(*[packet(8, 5)] * 5)
    yield (
        "read of the table",
        c.read(pb.Entity(direct_meter_entry={"table_entry": c.entry("metered").table_entry})),
    )
    asked = c.entry("metered")
    asked.table_entry.meter_config.SetInParent()
    yield "read with the entry", c.read(asked)
    yield "reset", c.write(modify(query))
    yield "read reset", c.read(query)
    yield "insert one", c.write(insert(direct))
    unknown = c.entry("metered", exact(1, b"\7")).table_entry
    yield (
        "unknown entry",
        c.write(modify(pb.Entity(direct_meter_entry={"table_entry": unknown, "config": config}))),
    )
    given = c.entry("metered", exact(1, b"\6"), does=c.action("paint"))
    given.table_entry.meter_config.CopyFrom(config)
    yield "insert with the entry", c.write(insert(given))
    yield "colours with the entry", c.packets(*[packet(8, 6)] * 5)
    yield "read both", c.read(asked)
    other = pb.Entity(direct_meter_entry={"table_entry": c.entry("exact_table").table_entry})
    yield "a table without", c.read(other)


@group
def registers_and_value_sets(c: Controller) -> Iterator[Step]:
    yield "registers", c.read(pb.Entity(register_entry={}))
    yield "value sets", c.read(pb.Entity(value_set_entry={}))
    yield "externs", c.read(pb.Entity(extern_entry={}))
    yield "write extern", c.write(insert(pb.Entity(extern_entry={})))


def multicast(number: int, *replicas: tuple[int, int]) -> Any:
    entity = pb.Entity()
    message = entity.packet_replication_engine_entry.multicast_group_entry
    message.multicast_group_id = number
    for port, instance in replicas:
        message.replicas.add(egress_port=port, instance=instance)
    return entity


def session(number: int, *replicas: tuple[int, int], **fields: int) -> Any:
    entity = pb.Entity()
    message = entity.packet_replication_engine_entry.clone_session_entry
    message.CopyFrom(pb.CloneSessionEntry(session_id=number, **fields))
    for port, instance in replicas:
        message.replicas.add(egress_port=port, instance=instance)
    return entity


@group
def multicast_groups(c: Controller) -> Iterator[Step]:
    yield "read before", c.read(multicast(0))
    yield "read one before", c.read(multicast(3))
    yield "insert", c.write(insert(multicast(3, (255, 1), (255, 2), (255, 7))))
    yield "insert again", c.write(insert(multicast(3, (255, 1))))
    yield "packets", sorted(c.packets(packet(11, b=3)))
    yield "read", c.read(multicast(3))
    yield "modify", c.write(modify(multicast(3, (255, 9))))
    yield "packet", c.packets(packet(11, b=3))
    yield "modify unknown", c.write(modify(multicast(4, (255, 9))))
    yield "delete unknown", c.write(delete(multicast(4)))
    yield "number 0", c.write(insert(multicast(0, (255, 9))))
    yield "twice the same", c.write(insert(multicast(5, (255, 9), (255, 9))))
    yield "no replicas", c.write(insert(multicast(6)))
    yield "large number", c.write(insert(multicast(30000, (255, 1))))
    yield "read all", c.read(multicast(0))
    yield "delete", c.write(delete(multicast(3)))
    yield "no packet", c.packets(packet(11, b=3))
    yield "read all of it", c.read(pb.Entity(packet_replication_engine_entry={}))
    yield "write none", c.write(insert(pb.Entity(packet_replication_engine_entry={})))
    by_bytes = multicast(8)
    replica = by_bytes.packet_replication_engine_entry.multicast_group_entry.replicas.add(
        instance=4
    )
    replica.port = b"\xff"
    yield "port in bytes", c.write(insert(by_bytes))
    yield "read port in bytes", c.read(multicast(8))
    yield "packet by bytes", c.packets(packet(11, b=8))


@group
def clone_sessions(c: Controller) -> Iterator[Step]:
    yield "read before", c.read(session(0))
    yield "read one before", c.read(session(5))
    yield "insert", c.write(insert(session(5, (255, 3))))
    yield "insert again", c.write(insert(session(5, (255, 3))))
    yield "packets", sorted(c.packets(packet(12, b=5)))
    yield "read", c.read(session(5))
    yield "modify", c.write(modify(session(5, (255, 4), (255, 6))))
    yield "packets of two", sorted(c.packets(packet(12, b=5)))
    yield "modify unknown", c.write(modify(session(6, (255, 4))))
    yield "delete unknown", c.write(delete(session(6)))
    yield "number 0", c.write(insert(session(0, (255, 4))))
    yield "largest", c.write(insert(session(511, (255, 4))))
    yield "larger", c.write(insert(session(32767, (255, 4))))
    yield "too large", c.write(insert(session(40000, (255, 4))))
    yield "class of service", c.write(insert(session(7, (255, 4), class_of_service=3)))
    yield "cut", c.write(insert(session(8, (255, 4), packet_length_bytes=6)))
    yield "read all", c.read(session(0))
    yield "delete", c.write(delete(session(5)))
    yield "no clone", c.packets(packet(12, b=5))

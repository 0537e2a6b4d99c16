"""TableEntry over gRPC: every match kind, defaults, const entries, and each refusal by its code."""

from __future__ import annotations

from typing import Any

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, FieldMatch, TableEntry

assert p4native.switch.p4runtime


def exact(id_: int, value: bytes) -> FieldMatch:
    return FieldMatch(field_id=id_, exact=FieldMatch.Exact(value=value))


def lpm(id_: int, value: bytes, length: int) -> FieldMatch:
    return FieldMatch(field_id=id_, lpm=FieldMatch.LPM(value=value, prefix_len=length))


def ternary(id_: int, value: bytes, mask: bytes) -> FieldMatch:
    return FieldMatch(field_id=id_, ternary=FieldMatch.Ternary(value=value, mask=mask))


def range_(id_: int, low: bytes, high: bytes) -> FieldMatch:
    return FieldMatch(field_id=id_, range=FieldMatch.Range(low=low, high=high))


def optional(id_: int, value: bytes) -> FieldMatch:
    return FieldMatch(field_id=id_, optional=FieldMatch.Optional(value=value))


class Maker:
    """Table entries by names."""

    def __init__(self, ids: Any) -> None:
        self.ids = ids

    def __call__(
        self, table: str, match: list[FieldMatch], action: str = "", *args: bytes, **fields: Any
    ) -> Entity:
        entry = TableEntry(table_id=self.ids.tables(table), match=match, **fields)
        if action:
            entry.action.action.action_id = self.ids.actions(action)
            for number, value in enumerate(args, 1):
                entry.action.action.params.add(param_id=number, value=value)
        return Entity(table_entry=entry)


@pytest.fixture
def entry(ids: Any) -> Maker:
    return Maker(ids)


DST = bytes.fromhex("0a0000000001")
ETHERNET = DST + bytes.fromhex("0b0000000002") + bytes.fromhex("0800")


def all_of(table: str, ids: Any) -> Entity:
    return Entity(table_entry=TableEntry(table_id=ids.tables(table)))


EXACT = [exact(1, DST), exact(2, b"\x01")]


def test_an_exact_entry_forwards_and_reads_back(
    primary: Any, switch_server: Any, entry: Maker, ids: Any
) -> None:
    written = entry("I.exact_table", EXACT, "I.forward", b"\x06", metadata=b"cookie")
    primary.write(("INSERT", written))
    assert switch_server.pipeline.process(1, ETHERNET) == [(6, ETHERNET)]
    assert primary.read(all_of("I.exact_table", ids)) == [written]
    primary.write(("MODIFY", entry("I.exact_table", EXACT, "I.forward", b"\x01\x05")))
    assert switch_server.pipeline.process(1, ETHERNET) == [(0x105, ETHERNET)]
    # What is no part of the key is ignored, right or wrong.
    primary.write(("DELETE", entry("I.exact_table", EXACT, idle_timeout_ns=-7, is_const=True)))
    assert switch_server.pipeline.process(1, ETHERNET) != [(0x105, ETHERNET)]
    assert primary.read(all_of("I.exact_table", ids)) == []


def test_values_are_read_back_in_shortest_form(primary: Any, entry: Maker, ids: Any) -> None:
    padded = [exact(1, b"\0\0" + DST), exact(2, b"\0\x01")]
    primary.write(("INSERT", entry("I.exact_table", padded, "I.forward", b"\0\0\x06")))
    expected = entry("I.exact_table", [exact(1, DST), exact(2, b"\x01")], "I.forward", b"\x06")
    assert primary.read(all_of("I.exact_table", ids)) == [expected]
    primary.write(("DELETE", entry("I.exact_table", EXACT)))


@pytest.mark.parametrize(
    ("table", "match", "priority"),
    [
        ("I.lpm_table", [lpm(1, bytes.fromhex("0b0000000000"), 8)], 0),
        ("I.lpm_table", [], 0),
        ("I.ternary_table", [ternary(1, b"\x08\x00", b"\xff\x00"), exact(2, b"\x01")], 5),
        ("I.ternary_table", [exact(2, b"\x01")], 5),
        ("I.range_table", [range_(1, b"\x07\xff", b"\x08\x00")], 2),
        ("I.range_table", [range_(1, b"\x07\xff", b"\x08\x00"), optional(2, b"\x01")], 2),
        ("I.range_table", [optional(2, b"\x01")], 2),
    ],
)
def test_every_match_kind_drops_what_it_matches(
    primary: Any,
    switch_server: Any,
    entry: Maker,
    ids: Any,
    table: str,
    match: list[FieldMatch],
    priority: int,
) -> None:
    primary.write(("INSERT", entry("I.exact_table", EXACT, "I.forward", b"\x06")))
    written = entry(table, match, "I.drop", priority=priority)
    primary.write(("INSERT", written))
    assert switch_server.pipeline.process(1, ETHERNET) == []
    read = primary.read(all_of(table, ids))[0].table_entry
    assert sorted(read.match, key=lambda field: field.field_id) == match
    assert read.priority == priority
    primary.write(("DELETE", entry(table, match, priority=priority)))
    assert switch_server.pipeline.process(1, ETHERNET) == [(6, ETHERNET)]


def test_larger_priority_wins(primary: Any, switch_server: Any, entry: Maker) -> None:
    primary.write(("INSERT", entry("I.exact_table", EXACT, "I.forward", b"\x06")))
    port = exact(2, b"\x01")
    wide, narrow = ternary(1, b"\x08\x00", b"\xff\x00"), ternary(1, b"\x08\x00", b"\xff\xff")
    primary.write(
        ("INSERT", entry("I.ternary_table", [wide, port], "I.drop", priority=10)),
        ("INSERT", entry("I.ternary_table", [narrow, port], "NoAction", priority=11)),
    )
    assert switch_server.pipeline.process(1, ETHERNET) == [(6, ETHERNET)]
    primary.write(("DELETE", entry("I.ternary_table", [narrow, port], priority=11)))
    assert switch_server.pipeline.process(1, ETHERNET) == []


def test_the_default_entry(primary: Any, switch_server: Any, entry: Maker, ids: Any) -> None:
    default = entry("I.keyless", [], is_default_action=True)
    [original] = primary.read(default)
    assert original.table_entry.action.action.action_id == ids.actions("NoAction")
    primary.write(("INSERT", entry("I.exact_table", EXACT, "I.forward", b"\x06")))
    dropping = entry("I.keyless", [], "I.drop", is_default_action=True, metadata=b"why")
    primary.write(("MODIFY", dropping))
    assert primary.read(default) == [dropping]
    assert switch_server.pipeline.process(1, ETHERNET) == []
    primary.write(("MODIFY", default))
    assert primary.read(default) == [original]
    assert switch_server.pipeline.process(1, ETHERNET) == [(6, ETHERNET)]


def test_const_entries_are_read_and_protected(primary: Any, entry: Maker, ids: Any) -> None:
    read = primary.read(all_of("I.const_table", ids))
    assert [e.table_entry.match[0].exact.value for e in read] == [b"\x12\x34", b"\x56\x78"]
    assert all(e.table_entry.is_const for e in read)
    match = [exact(1, b"\x12\x34")]
    updates = [
        ("INSERT", entry("I.const_table", [exact(1, b"\x01")], "I.drop")),
        ("MODIFY", entry("I.const_table", match, "NoAction")),
        ("DELETE", entry("I.const_table", match)),
    ]
    refused = primary.refused(*updates)
    assert [code for code, _ in refused] == ["PERMISSION_DENIED"] * 3
    assert all("I.const_table" in message for _, message in refused)


def test_initial_entries_are_read_with_priorities_and_cannot_change(
    primary: Any, entry: Maker, ids: Any
) -> None:
    read = primary.read(all_of("I.initial_table", ids))
    assert [e.table_entry.priority for e in read] == [3, 2, 1]
    values = [e.table_entry.match[0].ternary.value for e in read]
    assert values == [b"\x12\x00", b"\x10\x00", b"\x02"]
    match = [ternary(1, b"\x12\x00", b"\xff\x00")]
    refused = primary.refused(
        ("DELETE", entry("I.initial_table", match, priority=3)),
        ("MODIFY", entry("I.initial_table", match, "I.drop", priority=3)),
        ("INSERT", entry("I.initial_table", match, "I.drop", priority=3)),
        ("INSERT", entry("I.initial_table", match, "I.drop", priority=4)),
    )
    codes = [code for code, _ in refused]
    assert codes == [
        "PERMISSION_DENIED",
        "PERMISSION_DENIED",
        "ALREADY_EXISTS",
        "RESOURCE_EXHAUSTED",
    ]


def test_read_filters(primary: Any, entry: Maker, ids: Any) -> None:
    port = exact(2, b"\x01")
    one = entry("I.ternary_table", [port], "I.drop", priority=1, controller_metadata=4)
    two = entry("I.ternary_table", [exact(2, b"\x02")], "NoAction", priority=2, metadata=b"x")
    primary.write(("INSERT", one), ("INSERT", two))

    def query(**fields: Any) -> list[Any]:
        fields.setdefault("table_id", ids.tables("I.ternary_table"))
        return primary.read(Entity(table_entry=TableEntry(**fields)))

    assert query() == [one, two]
    assert query(priority=2) == [two]
    assert query(controller_metadata=4) == [one]
    assert query(metadata=b"x") == [two]
    assert query(match=[port], priority=1) == [one]
    assert query(action=two.table_entry.action) == [two]
    everything = query(table_id=0)
    assert [e for e in everything if not e.table_entry.is_const] == [one, two]
    assert len(everything) == 2 + 2 + 3, "the program's own entries as well"


def test_a_failed_batch_names_each_update(primary: Any, entry: Maker, ids: Any) -> None:
    good = entry("I.exact_table", EXACT, "I.forward", b"\x06")
    refused = primary.refused(
        ("INSERT", good),
        ("INSERT", good),
        ("DELETE", entry("I.exact_table", [exact(1, DST), exact(2, b"\x09")])),
    )
    assert [code for code, _ in refused] == ["OK", "ALREADY_EXISTS", "NOT_FOUND"]
    assert primary.read(all_of("I.exact_table", ids)) == [good]


def test_a_full_table(primary: Any, entry: Maker) -> None:
    def numbered(number: int) -> tuple[str, Entity]:
        match = [exact(1, DST), exact(2, bytes([number]))]
        return "INSERT", entry("I.exact_table", match, "I.drop")

    primary.write(*(numbered(number) for number in range(1, 5)))
    [(code, message)] = primary.refused(numbered(5))
    assert code == "RESOURCE_EXHAUSTED" and "4 entries" in message


BAD_KEYS = [
    ("I.exact_table", [exact(1, DST)], 0, "port", "omitted"),
    ("I.exact_table", [*EXACT, exact(2, b"\x01")], 0, "field 2", "twice"),
    ("I.exact_table", [*EXACT, exact(9, b"\x01")], 0, "id 9", "no match field"),
    ("I.exact_table", [exact(1, DST), exact(2, b"\x02\x00")], 0, "port", "9 bits"),
    ("I.exact_table", [exact(1, DST), exact(2, b"")], 0, "port", "empty"),
    ("I.exact_table", [exact(1, DST), lpm(2, b"\x01", 9)], 0, "port", "exact"),
    ("I.exact_table", EXACT, 3, "priority", "0"),
    ("I.lpm_table", [lpm(1, b"\x01", 0)], 0, "src", "prefix_len is 0"),
    ("I.lpm_table", [lpm(1, b"\x01", 49)], 0, "src", "prefix_len is 49"),
    ("I.lpm_table", [lpm(1, b"\x01", 47)], 0, "src", "beyond prefix_len 47"),
    ("I.ternary_table", [ternary(1, b"\x01", b"\x02"), exact(2, b"\x01")], 1, "type", "mask"),
    ("I.ternary_table", [ternary(1, b"\x00", b"\x00"), exact(2, b"\x01")], 1, "type", "mask is 0"),
    ("I.ternary_table", [exact(2, b"\x01")], 0, "priority", "above 0"),
    ("I.range_table", [range_(1, b"\x02", b"\x01")], 1, "type", "above high"),
    ("I.range_table", [range_(1, b"\x00", b"\xff\xff")], 1, "type", "every value"),
    ("I.keyless", [], 0, "I.keyless", "no key"),
]


@pytest.mark.parametrize(("table", "match", "priority", "where", "what"), BAD_KEYS)
def test_a_wrong_key_is_named(
    primary: Any,
    entry: Maker,
    table: str,
    match: list[FieldMatch],
    priority: int,
    where: str,
    what: str,
) -> None:
    [(code, message)] = primary.refused(
        ("INSERT", entry(table, match, "I.drop", priority=priority))
    )
    assert code == "INVALID_ARGUMENT"
    assert table in message and where in message and what in message


BAD_ACTIONS: list[tuple[str, list[bytes], dict[str, Any], str, str]] = [
    ("", [], {}, "INVALID_ARGUMENT", "no action"),
    ("NoAction", [], {}, "INVALID_ARGUMENT", "it has no action with action_id"),
    ("I.forward", [], {}, "INVALID_ARGUMENT", "parameter port: it is missing"),
    ("I.forward", [b"\x01", b"\x01"], {}, "INVALID_ARGUMENT", "no parameter with id 2"),
    ("I.forward", [b"\x02\x00"], {}, "INVALID_ARGUMENT", "parameter port"),
    ("I.punt", [b"\x01"], {}, "PERMISSION_DENIED", "I.punt"),
    ("I.forward", [b"\x01"], {"is_const": True}, "INVALID_ARGUMENT", "is_const"),
    ("I.forward", [b"\x01"], {"idle_timeout_ns": 5}, "INVALID_ARGUMENT", "idle_timeout_ns"),
]


@pytest.mark.parametrize(("action", "args", "fields", "code", "what"), BAD_ACTIONS)
def test_a_wrong_action_is_named(
    primary: Any,
    entry: Maker,
    action: str,
    args: list[bytes],
    fields: dict[str, Any],
    code: str,
    what: str,
) -> None:
    update = ("INSERT", entry("I.exact_table", EXACT, action, *args, **fields))
    [(given, message)] = primary.refused(update)
    assert given == code and what in message


def test_wrong_defaults(primary: Any, entry: Maker) -> None:
    def default(table: str, action: str, *args: bytes, **fields: Any) -> Entity:
        return entry(
            table, fields.pop("match", []), action, *args, is_default_action=True, **fields
        )

    refused = primary.refused(
        ("INSERT", default("I.keyless", "I.drop")),
        ("DELETE", default("I.keyless", "")),
        ("MODIFY", default("I.exact_table", "I.drop", match=EXACT)),
        ("MODIFY", default("I.ternary_table", "I.drop")),
        ("MODIFY", default("I.exact_table", "I.remember", b"\x01", b"\x01")),
        ("MODIFY", default("I.lpm_table", "I.forward", b"\xff\xff")),
    )
    assert [code for code, _ in refused] == [
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "PERMISSION_DENIED",
        "PERMISSION_DENIED",
        "INVALID_ARGUMENT",
    ]


def test_unknown_table_and_kinds(primary: Any, ids: Any) -> None:
    unset = p4runtime_pb2.Entity()
    external = p4runtime_pb2.Entity()
    external.extern_entry.extern_id = 1
    refused = primary.refused(
        ("INSERT", Entity(table_entry=TableEntry(table_id=0x2000001))),
        ("INSERT", unset),
        ("MODIFY", external),
        ("UNSPECIFIED", Entity(table_entry=TableEntry(table_id=ids.tables("I.keyless")))),
    )
    assert [code for code, _ in refused] == [
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "UNIMPLEMENTED",
        "INVALID_ARGUMENT",
    ]
    assert "extern_entry" in refused[2][1]
    assert primary.read(external) == [], "the program has none, so there is none to read"


def test_a_program_with_an_extern_says_that_it_cannot_be_read(
    switch_server: Any, entities_config: Any
) -> None:
    config = p4runtime_pb2.ForwardingPipelineConfig()
    config.CopyFrom(entities_config)
    config.p4info.externs.add().extern_type_id = 0x81
    client = switch_server.client()
    client.arbitrate(1)
    client.configure("VERIFY_AND_COMMIT", config)
    with pytest.raises(grpc.RpcError) as caught:
        client.read(p4runtime_pb2.Entity(extern_entry={}))
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "extern_entry" in str(caught.value.details())

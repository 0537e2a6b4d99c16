"""P4Info: identifiers, aliases, and what P4Runtime clients need of tables, actions and objects."""

from __future__ import annotations

from typing import Any

import pytest
from back_program import compile_text, json_of, p4info_of, program_text
from google.protobuf import json_format, text_format

from p4native.common.p4info_messages import new_message
from p4native.compiler.backend.p4info_ids import member_numbers, one_at_a_time

TABLE = """
    action set(@id(7) bit<9> port, bool up) { std.egress_spec = port; }
    action drop() { mark_to_drop(std); }
    table t {
        key = { hdr.h.a: exact; hdr.h.b: ternary @id(9) @name("bee"); hdr.h.c: lpm;
                hdr.h.a: range @name("r"); hdr.h.b: optional @name("o"); }
        actions = { set; @tableonly drop; @defaultonly NoAction; } %s
    }
"""


def only(items: Any, name: str) -> Any:
    (found,) = [i for i in items if i.preamble.name == name]
    return found


@pytest.mark.parametrize(
    ("name", "number"),
    [("NoAction", 21257015), ("SwitchmlIngress.malformed", 316020033), ("ingress.t1", None)],
)
def test_numbers_are_those_of_the_field(name: str, number: int | None) -> None:
    """Two of them as p4c prints them: 0x01 and 0x12 in front of the name's hash."""
    low = one_at_a_time(name) & 0xFFFFFF
    if number is not None:
        assert low == number & 0xFFFFFF


def test_match_fields() -> None:
    info = p4info_of(locals=TABLE % "", apply="t.apply();")
    fields = only(info.tables, "I.t").match_fields
    kinds = [f.DESCRIPTOR.enum_types_by_name["MatchType"].values_by_number for f in fields]
    found = [
        (f.id, f.name, f.bitwidth, kind[f.match_type].name)
        for f, kind in zip(fields, kinds, strict=True)
    ]
    assert found == [
        (1, "hdr.h.a", 8, "EXACT"),
        (9, "bee", 8, "TERNARY"),
        (2, "hdr.h.c", 16, "LPM"),
        (3, "r", 8, "RANGE"),
        (4, "o", 8, "OPTIONAL"),
    ]


def test_actions_and_their_scopes() -> None:
    info = p4info_of(locals=TABLE % "const default_action = NoAction();", apply="t.apply();")
    by_id = {a.preamble.id: a.preamble.name for a in info.actions}
    table = only(info.tables, "I.t")
    scopes = {by_id[r.id]: r.Scope.Name(r.scope) for r in table.action_refs}
    assert scopes == {
        "I.set": "TABLE_AND_DEFAULT",
        "I.drop": "TABLE_ONLY",
        "NoAction": "DEFAULT_ONLY",
    }
    assert by_id[table.const_default_action_id] == "NoAction"
    assert by_id[table.initial_default_action.action_id] == "NoAction"
    parameters = only(info.actions, "I.set").params
    assert [(p.id, p.name, p.bitwidth) for p in parameters] == [(7, "port", 9), (2, "up", 1)]


def test_a_table_without_default_action_gets_no_action() -> None:
    body = "action a() {} table t { key = { hdr.h.a: exact; } actions = { a; } }"
    info = p4info_of(locals=body, apply="t.apply();")
    table = only(info.tables, "I.t")
    added = table.action_refs[-1]
    assert added.id == only(info.actions, "NoAction").preamble.id
    assert (added.Scope.Name(added.scope), list(added.annotations)) == (
        "DEFAULT_ONLY",
        ["@defaultonly"],
    )
    assert table.initial_default_action.action_id == added.id
    assert not table.const_default_action_id
    assert table.size == 1024


def test_default_action_arguments_are_whole_bytes() -> None:
    info = p4info_of(locals=TABLE % "default_action = set(3, true);", apply="t.apply();")
    arguments = only(info.tables, "I.t").initial_default_action.arguments
    assert [(a.param_id, a.value) for a in arguments] == [(7, b"\x00\x03"), (2, b"\x01")]


def test_constant_entries_are_announced() -> None:
    text = "table t {{ key = {{ hdr.h.a: exact; }} actions = {{ NoAction; }} {} }}"
    constant = p4info_of(
        locals=text.format("const entries = { 1: NoAction(); }"), apply="t.apply();"
    )
    assert only(constant.tables, "I.t").is_const_table
    initial = p4info_of(locals=text.format("entries = { 1: NoAction(); }"), apply="t.apply();")
    table = only(initial.tables, "I.t")
    assert (table.is_const_table, table.has_initial_entries) == (False, True)


def test_aliases_are_the_shortest_unambiguous_names() -> None:
    inner = "control Inner(inout h_t h) { action a() { h.a = 1; } action b() { h.b = 1; }"
    inner += " table t { actions = { a; b; } } apply { t.apply(); } }"
    info = p4info_of(
        top=inner,
        locals="Inner() one; Inner() two; action b() { } table u { actions = { b; } }",
        apply="one.apply(hdr.h); two.apply(hdr.h); u.apply();",
    )
    aliases = {a.preamble.name: a.preamble.alias for a in info.actions}
    assert aliases == {
        "I.one.a": "one.a",
        "I.two.a": "two.a",
        "I.one.b": "one.b",
        "I.two.b": "two.b",
        "I.b": "I.b",
        "NoAction": "NoAction",
    }
    assert only(info.tables, "I.u").preamble.alias == "u"


def test_identifiers_by_annotation_keep_their_prefix() -> None:
    info = p4info_of(
        locals="""@id(5) action a() {} @id(0x02000006) @name("foo.bar") table t { actions = { a; } }
            @id(77) register<bit<32>>(4) r;""",
        apply="t.apply();",
    )
    assert only(info.actions, "I.a").preamble.id == 0x01000005
    assert only(info.tables, "I.foo.bar").preamble.id == 0x02000006
    assert only(info.registers, "I.r").preamble.id == 0x1600004D


def test_a_wrong_prefix_is_an_error() -> None:
    text = program_text(
        locals="@id(0x01000006) table t { actions = { NoAction; } }", apply="t.apply();"
    )
    document, _, errors = compile_text(text)
    assert document is None
    assert errors[0].endswith("not supported yet: @id(16777222) with another kind's prefix")


def test_counters_meters_registers() -> None:
    info = p4info_of(
        locals="""counter(5, CounterType.bytes) c; meter(6, MeterType.packets) m;
            register<bit<17>>(7) r; direct_counter(CounterType.packets_and_bytes) dc;
            table t { key = { hdr.h.a: exact; } actions = { NoAction; } counters = dc; }""",
        apply="t.apply();",
    )
    (counter,), (meter,), (register,) = info.counters, info.meters, info.registers
    assert (counter.size, counter.spec.Unit.Name(counter.spec.unit)) == (5, "BYTES")
    assert (meter.size, meter.spec.Unit.Name(meter.spec.unit)) == (6, "PACKETS")
    assert (register.size, register.type_spec.bitstring.bit.bitwidth) == (7, 17)
    (direct,) = info.direct_counters
    table = only(info.tables, "I.t")
    assert direct.direct_table_id == table.preamble.id
    assert list(table.direct_resource_ids) == [direct.preamble.id]
    assert direct.spec.Unit.Name(direct.spec.unit) == "BOTH"


def test_prefixes_are_p4runtimes() -> None:
    info = p4info_of(
        locals="""counter(5, CounterType.bytes) c; meter(6, MeterType.packets) m;
            register<bit<17>>(7) r; action_profile(4) ap;
            table t { key = { hdr.h.a: exact; } actions = { NoAction; } implementation = ap; }""",
        apply="t.apply(); digest<h_t>(1, hdr.h);",
    )
    ids = info.DESCRIPTOR.file.message_types_by_name["P4Ids"].enum_types_by_name["Prefix"]
    expected = {
        "tables": "TABLE",
        "actions": "ACTION",
        "counters": "COUNTER",
        "meters": "METER",
        "registers": "REGISTER",
        "action_profiles": "ACTION_PROFILE",
        "digests": "DIGEST",
    }
    for field, prefix in expected.items():
        for item in getattr(info, field):
            assert item.preamble.id >> 24 == ids.values_by_name[prefix].number, field
    assert only(info.tables, "I.t").implementation_id == info.action_profiles[0].preamble.id


def test_controller_headers() -> None:
    info = p4info_of(
        types='@controller_header("packet_in") header in_t { bit<9> port; bit<7> pad; }',
        headers="in_t i;",
    )
    (header,) = info.controller_packet_metadata
    assert header.preamble.name == "packet_in"
    assert [(m.id, m.name, m.bitwidth) for m in header.metadata] == [(1, "port", 9), (2, "pad", 7)]


def test_digest_and_its_type_in_every_format() -> None:
    parts = {
        "types": "struct learned_t { bit<48> mac; bit<9> port; }",
        "apply": "digest<learned_t>(1, { 5, std.ingress_port });",
    }
    info = p4info_of(**parts)
    (digest,) = info.digests
    assert digest.preamble.name == digest.type_spec.struct.name == "learned_t"
    members = info.type_info.structs["learned_t"].members
    widths = [(m.name, m.type_spec.bitstring.bit.bitwidth) for m in members]
    assert widths == [("mac", 48), ("port", 9)]
    # the map in it survives the printers and the wire
    text = text_format.Parse(text_format.MessageToString(info), new_message("P4Info"))
    wire = new_message("P4Info")
    wire.ParseFromString(info.SerializeToString())
    assert text == info == wire
    assert "learned_t" in json_format.MessageToJson(info)
    (learn,) = json_of(**parts)["learn_lists"]
    assert learn["name"] == "learned_t"


@pytest.mark.parametrize(
    ("written", "expected"),
    [("32", (32, 32)), ("bit<24>", (24, 24)), ("string", (0, None))],
)
def test_translated_types(written: str, expected: tuple[int, int | None]) -> None:
    info = p4info_of(
        types=f'@p4runtime_translation("example.org/port", {written}) type bit<9> port_t;',
        locals="""action set(port_t p) { std.egress_spec = (bit<9>)p; }
            table t { key = { hdr.h.a: exact; } actions = { set; }
                      default_action = set((port_t)1); }""",
        apply="t.apply();",
    )
    (parameter,) = only(info.actions, "I.set").params
    width, translated = expected
    assert (parameter.bitwidth, parameter.type_name.name) == (width, "port_t")
    entry = info.type_info.new_types["port_t"].translated_type
    assert entry.uri == "example.org/port"
    if translated is None:
        assert entry.HasField("sdn_string")
    else:
        assert entry.sdn_bitwidth == translated


def test_synthesized_tables_are_not_the_control_planes() -> None:
    parts = {"locals": "action named() { hdr.h.a = 1; }", "apply": "named(); hdr.h.b = 2;"}
    info = p4info_of(**parts)
    assert not info.tables
    assert [a.preamble.name for a in info.actions] == ["I.named"]
    (pipeline,) = [p for p in json_of(**parts)["pipelines"] if p["name"] == "ingress"]
    assert len(pipeline["tables"]) == 1


def test_numbers_left_over_are_given_in_order() -> None:
    assert member_numbers([None, None, None]) == [1, 2, 3]
    assert member_numbers([None, 1, None]) == [2, 1, 3]
    assert member_numbers([3, None, None]) == [3, 2, 4]


def test_errors_in_a_digest_are_named() -> None:
    info = p4info_of(
        types="struct report_t { error why; bool late; }",
        top="error { Mine }",
        apply="digest<report_t>(1, { std.parser_error, false });",
    )
    members = list(info.type_info.error.members)
    assert (members[0], members[-1]) == ("NoError", "Mine")
    kinds = [
        m.type_spec.WhichOneof("type_spec") for m in info.type_info.structs["report_t"].members
    ]
    assert kinds == ["error", "bool"]


def test_structured_annotations_and_documentation() -> None:
    info = p4info_of(
        locals="""
        @brief("short") @description("long") @tuned[depth = 1 + 2, name = "x", on = true]
        action set(@order[3, "four", false] bit<8> v) { hdr.h.a = v; }
        table t { key = { hdr.h.a : exact @brief("the key") @unit[4]; } actions = { set; } }
        """,
        apply="t.apply();",
    )
    (action,) = [a for a in info.actions if a.preamble.name == "I.set"]
    assert (action.preamble.doc.brief, action.preamble.doc.description) == ("short", "long")
    (tuned,) = action.preamble.structured_annotations
    pairs = {p.key: p.value for p in tuned.kv_pair_list.kv_pairs}
    assert tuned.name == "tuned" and pairs["depth"].int64_value == 3
    assert pairs["name"].string_value == "x" and pairs["on"].bool_value is True
    (order,) = action.params[0].structured_annotations
    values = [e.WhichOneof("value") for e in order.expression_list.expressions]
    assert values == ["int64_value", "string_value", "bool_value"]
    (field,) = info.tables[0].match_fields
    assert field.doc.brief == "the key" and field.structured_annotations[0].name == "unit"
    assert not field.annotations and not action.preamble.annotations


def test_a_key_of_type_error_has_no_width() -> None:
    info = p4info_of(
        locals="table t { key = { std.parser_error : exact; } actions = { NoAction; } }",
        apply="t.apply();",
    )
    (field,) = info.tables[0].match_fields
    assert field.bitwidth == 0 and "NoError" in info.type_info.error.members


def test_an_action_that_no_table_offers_has_no_parameters() -> None:
    info = p4info_of(locals="action own(bit<8> v) { hdr.h.a = v; }", apply="own(3);")
    assert list(only(info.actions, "I.own").params) == []


def test_translation_of_the_outermost_type_counts() -> None:
    info = p4info_of(
        types='@p4runtime_translation("u", 12) type bit<8> in_t; type in_t out_t;',
        locals="""action set(in_t x, out_t y) { hdr.h.a = (bit<8>)x; }
            table t { actions = { set; } }""",
        apply="t.apply();",
    )
    assert [p.bitwidth for p in only(info.actions, "I.set").params] == [12, 8]


def test_a_field_whose_name_begins_with_a_dot_is_named_by_it_alone() -> None:
    info = p4info_of(
        meta='@name(".other.m") bit<8> m;',
        locals="table t { key = { meta.m : exact; } actions = { NoAction; } }",
        apply="t.apply();",
    )
    assert info.tables[0].match_fields[0].name == "other.m"


def test_groups_belong_to_selectors() -> None:
    info = p4info_of(
        locals="""table t { key = { hdr.h.a : exact; } actions = { NoAction; }
            @name("p") @max_group_size(9) implementation = action_profile(4); }""",
        apply="t.apply();",
    )
    assert info.action_profiles[0].max_group_size == 0


ORDERED = {
    "top": """action outer() { }
        control Sub(inout headers_t hdr) {
            action deep() { hdr.h.a = 2; }
            table inner { key = { hdr.h.a: exact; } actions = { deep; outer; } }
            apply { inner.apply(); }
        }
        control Direct(inout headers_t hdr) {
            table last { actions = { NoAction; } }
            apply { last.apply(); }
        }""",
    "locals": """action late() { hdr.h.b = 1; } action early() { hdr.h.b = 2; }
        table second { key = { hdr.h.b: exact; } actions = { early; late; NoAction; } }
        Sub() sub;
        @hidden action unseen() { hdr.h.c = 1; }
        @hidden table secret { actions = { unseen; } default_action = unseen(); }
        table first { key = { hdr.h.b: exact; } actions = { late; } }""",
    "apply": "Direct.apply(hdr); first.apply(); sub.apply(hdr); second.apply(); secret.apply();",
}


def test_tables_and_actions_are_in_order_of_declaration_and_hidden_ones_left_out() -> None:
    info = p4info_of(**ORDERED)
    tables = [t.preamble.name for t in info.tables]
    assert tables == ["I.second", "I.sub.inner", "I.first", "I.Direct.last"]
    names = [a.preamble.name for a in info.actions]
    assert sorted(names[:2]) == ["NoAction", "outer"]
    assert names[2:] == ["I.late", "I.early", "I.sub.deep"]


def test_direct_counters_come_before_direct_meters() -> None:
    info = p4info_of(
        locals="""direct_meter<bit<8>>(MeterType.bytes) m; direct_counter(CounterType.bytes) c;
            action a() { m.read(hdr.h.a); c.count(); }
            table t { key = { hdr.h.b: exact; } actions = { a; } meters = m; counters = c; }""",
        apply="t.apply();",
    )
    assert [number >> 24 for number in info.tables[0].direct_resource_ids] == [0x13, 0x15]


def test_named_types_of_controller_headers_and_annotations_of_types() -> None:
    info = p4info_of(
        types="""enum bit<8> why_t { asked = 5 }
            @p4runtime_translation("u", string) @mapped({{"zero", 0}}) type bit<9> port_t;
            @controller_header("packet_in") header in_t {
                why_t why; @hidden bit<8> pad; port_t port; bit<7> rest; }""",
        headers="in_t i;",
    )
    assert info.type_info.serializable_enums["why_t"].members[0].value == b"\x05"
    (annotation,) = info.type_info.new_types["port_t"].annotations
    assert annotation.replace(" ", "") == '@mapped({{"zero",0}})'
    fields = info.controller_packet_metadata[0].metadata
    assert [(f.id, f.name, f.bitwidth) for f in fields] == [
        (1, "why", 8),
        (3, "port", 0),
        (4, "rest", 7),
    ]


def test_members_of_a_signed_enum_are_numbers_of_its_width() -> None:
    """Two's complement in whole bytes, whose spare bits are 0."""
    info = p4info_of(
        types="enum int<12> side_t { left = -2048, middle = 0, near = -1, right = 2047 }",
        locals="register<side_t>(4) r;",
        apply="r.write(0, side_t.left);",
    )
    members = info.type_info.serializable_enums["side_t"].members
    values = {member.name: member.value.hex() for member in members}
    assert values == {"left": "0800", "middle": "0000", "near": "0fff", "right": "07ff"}


def test_types_are_told_of_where_something_has_one() -> None:
    assert not p4info_of(apply="hdr.h.a = 1;").HasField("type_info")
    assert p4info_of(locals="register<bit<8>>(4) r;", apply="r.write(0, hdr.h.a);").HasField(
        "type_info"
    )

"""The shape of the JSON: tables and nodes, what is merged, what is named how."""

from __future__ import annotations

from typing import Any

import pytest
from back_program import (
    errors_of,
    ingress,
    json_of,
    named,
    only_call,
    primitives,
    without_sources,
)

TABLE = """
    action set(bit<9> port) { std.egress_spec = port; }
    action drop() { mark_to_drop(std); }
    table t { key = { hdr.h.a: exact; } actions = { set; drop; NoAction; } %s }
"""


def table_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    return named(ingress(document)["tables"], name)


def test_statements_without_tables_become_one_action() -> None:
    document = json_of(
        apply="""hdr.h.a = 1;
            if (hdr.h.b == 2) { hdr.h.c = 3; } else { mark_to_drop(std); }
            meta.m = 4;"""
    )
    ops = only_call(document)
    assert ops == ["assign", "_jump_if_zero", "assign", "_jump", "mark_to_drop", "assign"]
    assert ingress(document)["conditionals"] == []


def test_the_called_table_has_no_key_and_a_constant_default() -> None:
    document = json_of(apply="hdr.h.a = 1;")
    (table,) = ingress(document)["tables"]
    assert ingress(document)["init_table"] == table["name"]
    assert table["key"] == []
    (action,) = table["actions"]
    assert table["default_entry"] == {
        "action_id": named(document["actions"], action)["id"],
        "action_const": True,
        "action_data": [],
        "action_entry_const": True,
    }
    assert table["next_tables"] == {action: None}


def test_code_around_a_table_is_cut_there() -> None:
    document = json_of(
        locals=TABLE % "", apply="meta.m = 1; t.apply(); meta.m = 2; hdr.h.b = meta.m;"
    )
    tables = {t["name"]: t for t in ingress(document)["tables"]}
    assert len(tables) == 3
    before = tables[ingress(document)["init_table"]]
    assert list(before["next_tables"].values()) == ["I.t"]
    after = set(tables["I.t"]["next_tables"].values())
    assert len(after) == 1
    assert list(tables[after.pop()]["next_tables"].values()) == [None]


def test_a_table_under_a_condition_is_a_node() -> None:
    document = json_of(locals=TABLE % "", apply="if (hdr.h.isValid()) { t.apply(); }")
    (node,) = ingress(document)["conditionals"]
    assert ingress(document)["init_table"] == node["name"]
    assert (node["true_next"], node["false_next"]) == ("I.t", None)
    assert node["expression"] == {
        "type": "expression",
        "value": {"op": "d2b", "left": None, "right": {"type": "field", "value": ["h", "$valid$"]}},
    }


def test_hit_and_miss_lead_from_the_table_itself() -> None:
    document = json_of(
        locals=TABLE % "", apply="if (!t.apply().hit) { hdr.h.a = 1; } else { hdr.h.a = 2; }"
    )
    nexts = table_of(document, "I.t")["next_tables"]
    assert nexts.keys() == {"__HIT__", "__MISS__"}
    values = {}
    for key, following in nexts.items():
        (action,) = table_of(document, following)["actions"]
        ((_, parameters),) = primitives(document, action)
        values[key] = parameters[1]
    assert values == {"__HIT__": "0x02", "__MISS__": "0x01"}


def test_switch_leads_by_action() -> None:
    document = json_of(
        locals=TABLE % "",
        apply="""switch (t.apply().action_run) {
            set: { hdr.h.b = 1; }
            drop: NoAction: { hdr.h.b = 2; }
        }""",
    )
    nexts = table_of(document, "I.t")["next_tables"]
    assert nexts.keys() == {"I.set", "I.drop", "NoAction"}
    assert nexts["I.drop"] == nexts["NoAction"] != nexts["I.set"]


def test_an_early_return_skips_the_tables_behind_it() -> None:
    document = json_of(
        locals=TABLE % "", apply="if (hdr.h.a == 0) { mark_to_drop(std); return; } t.apply();"
    )
    (node,) = ingress(document)["conditionals"]
    assert node["false_next"] == "I.t"
    assert list(table_of(document, node["true_next"])["next_tables"].values()) == [None]


def test_a_table_that_is_never_reached_stays_with_all_its_actions() -> None:
    document = json_of(locals=TABLE % "", apply="if (8w1 == 1) { return; } t.apply();")
    assert table_of(document, "I.t")["next_tables"] == {
        "I.set": None,
        "I.drop": None,
        "NoAction": None,
    }
    assert ingress(document)["init_table"] is None


def test_one_table_at_two_places_remembers_its_caller() -> None:
    document = json_of(
        locals=TABLE % "",
        apply="""if (hdr.h.b == 0) { t.apply(); hdr.h.b = 1; } else { t.apply(); hdr.h.b = 2; }""",
    )
    assert [t["name"] for t in ingress(document)["tables"]].count("I.t") == 1
    following = set(table_of(document, "I.t")["next_tables"].values())
    assert len(following) == 1
    node = named(ingress(document)["conditionals"], following.pop())
    ends = [table_of(document, node[side])["actions"][0] for side in ("true_next", "false_next")]
    stored = [primitives(document, action)[0][1][1] for action in ends]
    assert stored == ["0x01", "0x02"]


def test_one_action_object_for_all_tables_that_use_it() -> None:
    second = "table u { key = { hdr.h.b: exact; } actions = { drop; NoAction; } }"
    document = json_of(locals=TABLE % "" + second, apply="t.apply(); u.apply();")
    names = [a["name"] for a in document["actions"]]
    assert names.count("I.drop") == names.count("NoAction") == 1


def test_key_kinds_names_and_match_type() -> None:
    keys = """key = { hdr.h.a: lpm; hdr.h.b: range @name("bee"); hdr.h.c: optional;
        hdr.h.isValid(): exact; hdr.h.c[7:0]: ternary; hdr.h.a + 1: exact @name("sum");
        hdr.h.b & 0x0F: exact; hdr.h.b & 15: exact; }"""
    document = json_of(locals=f"table t {{ {keys} actions = {{ NoAction; }} }}", apply="t.apply();")
    table = table_of(document, "I.t")
    assert table["match_type"] == "range"
    assert [(k["match_type"], k["name"]) for k in table["key"]] == [
        ("lpm", "hdr.h.a"),
        ("range", "bee"),
        ("ternary", "hdr.h.c"),
        ("exact", "hdr.h.$valid$"),
        ("ternary", "hdr.h.c[7:0]"),
        ("exact", "sum"),
        ("exact", "hdr.h.b & 0xf"),
        ("exact", "hdr.h.b & 15"),
    ]
    assert [k["target"] for k in table["key"]][:4] == [
        ["h", "a"],
        ["h", "b"],
        ["h", "c"],
        ["h", "$valid$"],
    ]
    (action,) = table_of(document, ingress(document)["init_table"])["actions"]
    assert [op for op, _ in primitives(document, action)] == ["assign"] * 4


def test_constant_entries() -> None:
    entries = """const entries = {
        (1, 2 &&& 3, 0x0a00 &&& 0xff00): set(7);
        (2, _, 5): drop() @priority(9);
    }"""
    keys = "key = { hdr.h.a: exact; hdr.h.b: ternary; hdr.h.c: ternary; }"
    body = TABLE.split("table")[0]
    document = json_of(
        locals=f"{body} table t {{ {keys} actions = {{ set; drop; NoAction; }} {entries} }}",
        apply="t.apply();",
    )
    table = without_sources(table_of(document, "I.t"))
    assert table["max_size"] == 2
    first, second = table["entries"]
    assert first == {
        "match_key": [
            {"match_type": "exact", "key": "0x01"},
            {"match_type": "ternary", "key": "0x02", "mask": "0x03"},
            {"match_type": "ternary", "key": "0x0a00", "mask": "0xff00"},
        ],
        "action_entry": {
            "action_id": named(document["actions"], "I.set")["id"],
            "action_data": ["0x0007"],
        },
        "priority": 1,
    }
    assert second["match_key"][1] == {"match_type": "ternary", "key": "0x00", "mask": "0x00"}
    assert second["match_key"][2] == {"match_type": "ternary", "key": "0x0005", "mask": "0xffff"}
    assert second["priority"] == 9


PRIORITIES = [
    ("priority_delta = 10;", (30, None, 100), [71, 81, 1]),
    ("largest_priority_wins = true;", (5, None, 5), [1, 2, 1]),
    ("priority_delta = 10;", (20, None, None), [1, 11, 21]),  # down to 0, which is allowed
    ("largest_priority_wins = false;", (7, None, 0), [7, 8, 0]),
    ("largest_priority_wins = false; priority_delta = 10;", (0, None, None), [0, 10, 20]),
]


@pytest.mark.parametrize(("properties", "written", "expected"), PRIORITIES)
def test_of_the_priorities_that_entries_get_the_smallest_wins(
    properties: str, written: tuple[int | None, ...], expected: list[int]
) -> None:
    given = ["" if number is None else f"priority = {number}: " for number in written]
    entries = " ".join(f"{prefix}{key}: drop();" for key, prefix in enumerate(given))
    text = TABLE.replace("hdr.h.a: exact", "hdr.h.a: ternary") % (
        f"{properties} entries = {{ {entries} }}"
    )
    table = table_of(json_of(locals=text, apply="t.apply();"), "I.t")
    assert [entry["priority"] for entry in table["entries"]] == expected


def test_lpm_and_range_entries() -> None:
    text = TABLE.replace("hdr.h.a: exact", "hdr.h.c: lpm; hdr.h.a: range")
    entries = (
        "const entries = { (0x1200 &&& 0xff00, 3..9): drop(); (_, _): drop(); (5, 4): drop(); }"
    )
    table = table_of(json_of(locals=text % entries, apply="t.apply();"), "I.t")
    found = [e["match_key"] for e in table["entries"]]
    assert found[0] == [
        {"match_type": "lpm", "key": "0x1200", "prefix_length": 8},
        {"match_type": "range", "start": "0x03", "end": "0x09"},
    ]
    assert found[1][0]["prefix_length"] == 0
    assert found[1][1] == {"match_type": "range", "start": "0x00", "end": "0xff"}
    assert found[2][0]["prefix_length"] == 16
    assert found[2][1] == {"match_type": "range", "start": "0x04", "end": "0x04"}


def test_default_action_with_arguments() -> None:
    document = json_of(locals=TABLE % "const default_action = set(3);", apply="t.apply();")
    entry = table_of(document, "I.t")["default_entry"]
    assert entry["action_data"] == ["0x0003"]
    assert entry["action_const"] and entry["action_entry_const"]
    assert table_of(document, "I.t")["max_size"] == 1024


def test_names_of_nested_controls_are_paths() -> None:
    inner = """control Inner(inout h_t h) { register<bit<8>>(4) cells;
        action a() { h.a = 1; cells.write(0, h.b); } table t { actions = { a; } }
        apply { t.apply(); } }"""
    document = json_of(
        top=inner,
        locals="Inner() one; Inner() two;",
        apply="one.apply(hdr.h); two.apply(hdr.h);",
    )
    assert {t["name"] for t in ingress(document)["tables"]} == {"I.one.t", "I.two.t"}
    assert {a["name"] for a in document["actions"]} >= {"I.one.a", "I.two.a"}
    assert [r["name"] for r in document["register_arrays"]] == ["I.one.cells", "I.two.cells"]


def test_arrays_exist_though_unused() -> None:
    document = json_of(
        locals="""register<bit<2048>>(16) wide; counter(5, CounterType.bytes) packets;
            meter(3, MeterType.bytes) rate;"""
    )
    (register,) = without_sources(document["register_arrays"])
    assert register == {"name": "I.wide", "id": 0, "size": 16, "bitwidth": 2048}
    (counter,) = without_sources(document["counter_arrays"])
    assert counter == {"name": "I.packets", "id": 0, "size": 5, "is_direct": False}
    (meter,) = without_sources(document["meter_arrays"])
    assert (meter["size"], meter["type"], meter["is_direct"]) == (3, "bytes", False)


def test_direct_counter_and_meter() -> None:
    body = """direct_counter(CounterType.packets) hits;
        direct_meter<bit<8>>(MeterType.packets) rate;
        action a() { hits.count(); rate.read(meta.m); }
        table t { key = { hdr.h.a: exact; } actions = { a; NoAction; }
                  counters = hits; meters = rate; size = 8; }"""
    document = json_of(locals=body, apply="t.apply();")
    table = table_of(document, "I.t")
    assert table["with_counters"] is True
    assert table["direct_meters"] == "I.rate"
    (counter,) = without_sources(document["counter_arrays"])
    assert counter == {"name": "I.hits", "id": 0, "is_direct": True, "binding": "I.t"}
    (meter,) = document["meter_arrays"]
    assert (meter["binding"], meter["size"]) == ("I.t", 8)
    assert meter["result_target"] == ["scalars", "userMetadata.m"]
    assert primitives(document, "I.a") == []


def test_action_profile_and_selector() -> None:
    body = """action a(bit<9> p) { std.egress_spec = p; }
        action_selector(HashAlgorithm.crc16, 32, 8) group;
        table t { key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { a; NoAction; }
                  implementation = group; }"""
    document = json_of(locals=body, apply="t.apply();")
    table = table_of(document, "I.t")
    assert (table["type"], table["action_profile"]) == ("indirect_ws", "I.group")
    assert [k["target"] for k in table["key"]] == [["h", "a"]]
    assert "default_entry" not in table
    (profile,) = without_sources(ingress(document)["action_profiles"])
    assert profile == {
        "name": "I.group",
        "id": 0,
        "max_size": 32,
        "selector": {"algo": "crc16", "input": [{"type": "field", "value": ["h", "b"]}]},
    }


def test_parser_states_and_padded_keys() -> None:
    parser = """state start { packet.extract(hdr.h); transition select(hdr.h.b, hdr.h.c[3:0]) {
            (5, 0xa): one; (0x10 &&& 0xf0, _): accept; (_, 1..2): one; default: reject; } }
        state one { hdr.h.a = 1; transition accept; }"""
    (parsed,) = json_of(parser=parser)["parsers"]
    start = named(parsed["parse_states"], "start")
    assert [o["op"] for o in start["parser_ops"]] == ["extract", "set"]
    cases = [(t["type"], t["value"], t["mask"], t["next_state"]) for t in start["transitions"]]
    assert cases == [
        ("hexstr", "0x050a", None, "one"),
        ("hexstr", "0x1000", "0xf000", None),
        ("hexstr", "0x0001", "0x000f", "one"),
        ("hexstr", "0x0002", "0x000f", "one"),
        ("default", None, None, None),
    ]


def test_a_branch_in_a_parser_state_becomes_states() -> None:
    parser = """state start { packet.extract(hdr.h); if (hdr.h.a > 3) { meta.m = 1; }
        hdr.h.b = meta.m; transition accept; }"""
    (parsed,) = json_of(parser=parser)["parsers"]
    start = named(parsed["parse_states"], "start")
    yes, otherwise = start["transitions"]
    assert (yes["value"], otherwise["type"]) == ("0x01", "default")
    taken = named(parsed["parse_states"], yes["next_state"])
    assert taken["transitions"][0]["next_state"] == otherwise["next_state"]


def test_checksums_with_condition_and_payload() -> None:
    update = """update_checksum_with_payload(hdr.h.isValid(), { hdr.h.a, 8w7, hdr.h.b },
        hdr.h.c, HashAlgorithm.csum16);"""
    document = json_of(update=update)
    (checksum,) = without_sources(document["checksums"])
    assert checksum["target"] == ["h", "c"]
    assert (checksum["verify"], checksum["update"]) == (False, True)
    assert checksum["if_cond"]["value"]["op"] == "d2b"
    calculation = named(document["calculations"], checksum["calculation"])
    assert calculation["algo"] == "csum16"
    assert calculation["input"] == [
        {"type": "field", "value": ["h", "a"]},
        {"type": "hexstr", "value": "0x07", "bitwidth": 8},
        {"type": "field", "value": ["h", "b"]},
        {"type": "payload", "value": None},
    ]


def test_field_lists_hold_annotated_metadata() -> None:
    document = json_of(
        meta="@field_list(1, 2) bit<8> m; bit<8> no; @field_list(2) bit<16> n;",
        apply="""clone_preserving_field_list(CloneType.I2E, 5, 2);
            resubmit_preserving_field_list(1);""",
    )
    by_name = {f["name"]: f for f in document["field_lists"]}
    fields = {n: [e["value"][1] for e in f["elements"]] for n, f in by_name.items()}
    assert fields == {
        "field_list2": ["userMetadata.m", "userMetadata.n"],
        "field_list1": ["userMetadata.m"],
    }
    # the identifier is the flag as well: 0 cannot be used
    assert all(f["id"] > 0 for f in by_name.values())


def test_field_lists_given_in_the_call() -> None:
    """The older forms, which name the metadata themselves."""
    document = json_of(
        meta="bit<8> m; bit<16> n; bool f;",
        apply="clone3(CloneType.I2E, 5, { meta.n, meta.f }); resubmit(meta);",
        egress="recirculate({});",
    )
    elements = [[e["value"][1] for e in f["elements"]] for f in document["field_lists"]]
    assert elements == [
        ["userMetadata.n", "userMetadata.f"],
        ["userMetadata.m", "userMetadata.n", "userMetadata.f"],
        [],
    ]
    (table,) = ingress(document)["tables"]
    calls = primitives(document, table["actions"][0])
    assert calls == [
        ("clone_ingress_pkt_to_egress", ["0x00000005", "0x00000001"]),
        ("resubmit", ["0x00000002"]),
    ]


def test_errors_start_with_no_error() -> None:
    document = json_of(top="error { Mine }")
    codes = dict(map(tuple, document["errors"]))
    assert codes["NoError"] == 0
    assert codes["Mine"] == max(codes.values())


def test_aliases_of_standard_metadata() -> None:
    aliases = {a[0]: a[1] for a in json_of()["field_aliases"]}
    assert aliases["intrinsic_metadata.mcast_grp"] == ["standard_metadata", "mcast_grp"]
    assert aliases["queueing_metadata.deq_qdepth"] == ["standard_metadata", "deq_qdepth"]


def test_meta_version_and_unique_ids() -> None:
    document = json_of(locals=TABLE % "", apply="t.apply(); hdr.h.a = 1;", egress="hdr.h.b = 2;")
    assert document["__meta__"]["version"] == [2, 23]
    tables = [t["id"] for p in document["pipelines"] for t in p["tables"]]
    assert sorted(tables) == list(range(len(tables)))


def test_every_header_type_is_whole_bytes() -> None:
    document = json_of(meta="bit<3> x; bool y; bit<13> z;", apply="meta.x = 1;")
    for kind in document["header_types"]:
        assert sum(width for _, width, _ in kind["fields"]) % 8 == 0, kind["name"]


def test_short_lived_variables_share_a_field() -> None:
    body = """register<bit<61>>(4) one; register<bit<61>>(4) two;
        action a() { bit<61> x; one.read(x, 0); one.write(1, x + 1);
                     bit<61> y; two.read(y, 0); two.write(1, y + 1); }"""
    document = json_of(locals=body, apply="a();")
    scalars = named(document["header_types"], "scalars_0")
    assert [width for _, width, _ in scalars["fields"]].count(61) == 1


def test_a_variable_read_before_it_is_written_keeps_its_field() -> None:
    body = """action a() { bit<512> x; hdr.h.a = (bit<8>)x; x = 5; hdr.h.b = (bit<8>)x;
        bit<512> y = 7; hdr.h.a = (bit<8>)y; }"""
    document = json_of(locals=body, apply="a();")
    scalars = named(document["header_types"], "scalars_0")
    assert [width for _, width, _ in scalars["fields"]].count(512) == 2


def test_wide_programs_keep_their_lanes_apart() -> None:
    """The lane-wise addition is not masked again: its range shows that it cannot overflow."""
    low, high = "7fffffff" * 2, "80000000" * 2
    document = json_of(
        fields="bit<64> x; bit<64> y;",
        apply=f"hdr.h.x = ((hdr.h.x & 0x{low}) + (hdr.h.y & 0x{low})) ^ "
        f"((hdr.h.x ^ hdr.h.y) & 0x{high});",
    )
    (table,) = ingress(document)["tables"]
    ((_, (_, value)),) = primitives(document, table["actions"][0])
    assert value["value"]["op"] == "^"
    assert value["value"]["left"]["value"]["op"] == "+"


def test_errors_are_gathered_not_the_first_only() -> None:
    found = errors_of(
        apply="clone(CloneType.E2E, 1); hdr.h.a = 1; recirculate_preserving_field_list(1);"
    )
    assert found == [
        "not supported yet: clone of kind E2E outside egress",
        "not supported yet: recirculate outside egress",
    ]


def test_value_sets_of_structs() -> None:
    parser = """value_set<ports_t>(4) known;
        state start { packet.extract(hdr.h);
            transition select(hdr.h.a, hdr.h.c) { known: one; default: accept; } }
        state one { hdr.h.b = 1; transition accept; }"""
    document = json_of(types="struct ports_t { bit<8> x; bit<16> y; }", parser=parser)
    (values,) = without_sources(document["parse_vsets"])
    assert values == {"name": "P.known", "id": 0, "compressed_bitwidth": 24, "max_size": 4}
    start = named(document["parsers"][0]["parse_states"], "start")
    first = start["transitions"][0]
    assert (first["type"], first["value"], first["next_state"]) == ("parse_vset", "P.known", "one")


def test_a_lookahead_is_no_key_of_a_transition() -> None:
    """BMv2 finds a packet too short for a lookahead in a statement, not in a key."""
    document = json_of(
        parser="""state start { packet.extract(hdr.h);
            transition select(packet.lookahead<bit<8>>()) { 1: more; default: accept; } }
            state more { meta.m = 1; transition accept; }"""
    )
    start = named(document["parsers"][0]["parse_states"], "start")
    look = start["parser_ops"][-1]
    assert look["op"] == "set"
    assert look["parameters"][1] == {"type": "lookahead", "value": [0, 8]}
    assert start["transition_key"] == [look["parameters"][0]]


def test_profiles_that_tables_make_without_a_name_are_numbered() -> None:
    table = "table %s { key = { hdr.h.a: exact; } actions = { NoAction; } implementation = %s; }"
    document = json_of(
        locals=table % ("t", "action_profile(8)")
        + table % ("u", "action_profile(9)")
        + (table % ("v", "action_profile(10)")).replace("impl", '@name("mine") impl'),
        apply="t.apply(); u.apply(); v.apply();",
    )
    profiles = document["pipelines"][0]["action_profiles"]
    names = [(p["name"], p["max_size"]) for p in profiles]
    assert names == [("action_profile_0", 8), ("action_profile_1", 9), ("mine", 10)]

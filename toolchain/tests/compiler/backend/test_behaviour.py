"""What compiled programs do to packets, by our switch."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from back_program import json_of, primitives

from p4native.switch import Pipeline


def load(document: dict[str, Any], folder: Path) -> Pipeline:
    path = folder / "prog.json"
    path.write_text(json.dumps(document))
    return Pipeline.load(path, quick=True)


def test_elements_of_a_tuple_are_assigned_one_by_one(tmp_path: Path) -> None:
    document = json_of(
        apply="""tuple<bit<8>, bit<16>> t = { hdr.h.a, hdr.h.c };
        t[1] = t[1] + 1; t[0][3:0] = 0x5; hdr.h.b = t[0]; hdr.h.c = t[1]; std.egress_spec = 2;"""
    )
    assert load(document, tmp_path).process(1, bytes.fromhex("a7001234"), 0) == [
        (2, bytes.fromhex("a7a51235"))
    ]


def test_a_key_that_is_cast_has_the_width_of_the_cast(tmp_path: Path) -> None:
    document = json_of(
        locals="""action to(bit<8> v) { hdr.h.b = v; }
            table t { key = { (bit<16>)hdr.h.a: lpm @name("a"); } actions = { to; }
                      const entries = { 0x0010 &&& 0xfff0: to(1); 0x1000 &&& 0xf000: to(2); }
                      const default_action = to(3); }""",
        apply="t.apply(); std.egress_spec = 2;",
    )
    pipeline = load(document, tmp_path)
    for frame, expected in {"17000000": "1701", "10000000": "1001", "20000000": "2003"}.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame), 0)
        assert out.hex() == expected + "0000"


def test_a_select_key_that_is_cast_has_the_width_of_the_cast(tmp_path: Path) -> None:
    document = json_of(
        parser="""state start { packet.extract(hdr.h);
            transition select((bit<16>)hdr.h.a, hdr.h.b) {
                (0x0017, 1): one; (0x0010 &&& 0xfff0, _): two; default: accept; } }
            state one { meta.m = 1; transition accept; }
            state two { meta.m = 2; transition accept; }""",
        apply="hdr.h.c = (bit<16>)meta.m; std.egress_spec = 2;",
    )
    pipeline = load(document, tmp_path)
    for frame, expected in {"1701": "0001", "1702": "0002", "2702": "0000"}.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame + "0000"), 0)
        assert out.hex() == frame + expected


def test_a_hashed_value_that_is_cast_has_the_width_of_the_cast(tmp_path: Path) -> None:
    document = json_of(
        apply="""std.egress_spec = 2; hash(hdr.h.c, HashAlgorithm.identity, 16w0,
            { (bit<16>)hdr.h.a, hdr.h.b }, 32w65536);"""
    )
    pipeline = load(document, tmp_path)
    ((_, out),) = pipeline.process(1, bytes.fromhex("12340000"), 0)
    assert out.hex() == "12341234"  # of 00 12 34 the last two bytes


def test_a_struct_looks_ahead_once_for_all_of_it() -> None:
    document = json_of(
        types="struct p_t { bit<4> x; bit<12> y; bit<8> z; }",
        parser="""state start { p_t p = packet.lookahead<p_t>(); meta.m = (bit<8>)p.x;
            packet.extract(hdr.h); transition accept; }""",
    )
    (state,) = document["parsers"][0]["parse_states"]
    sets = [op["parameters"][1] for op in state["parser_ops"] if op["op"] == "set"]
    places = [value["value"] for value in sets if value["type"] == "lookahead"]
    assert places == [[0, 24], [0, 4], [4, 12], [16, 8]]


def test_a_loop_stays_whole_where_others_leave(tmp_path: Path) -> None:
    """`return` cuts the code before a table into pieces; a loop among them is not cut."""
    document = json_of(
        locals="""action count() { for (bit<8> i = 0; i < 3; i = i + 1) { hdr.h.a = hdr.h.a + 2; } }
            table t { key = { hdr.h.b: exact; } actions = { NoAction; } }""",
        apply="""std.egress_spec = 2; count(); if (hdr.h.b == 1) { hdr.h.c = 7; return; }
            count(); t.apply(); hdr.h.c = 9;""",
    )
    pipeline = load(document, tmp_path)
    for frame, expected in {"01010000": "07010007", "01020000": "0d020009"}.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame), 0)
        assert out.hex() == expected


def test_a_loop_that_a_return_leaves_between_tables(tmp_path: Path) -> None:
    """Each way out (return, break, the end) goes on at its own place behind the loop."""
    document = json_of(
        locals="""action add(bit<8> v) { hdr.h.b = hdr.h.b + v; }
            table t { key = { hdr.h.a : exact; } actions = { add; @defaultonly NoAction; }
                      const entries = { 1 : add(3); } }
            table u { key = { hdr.h.a : exact; } actions = { add; @defaultonly NoAction; }
                      const entries = { 1 : add(32); 2 : add(64); } }""",
        apply="""std.egress_spec = 1;
            t.apply();
            for (bit<8> i = 0; i < 4; i = i + 1) {
                if (hdr.h.c == 7) { return; }
                for (bit<8> j in 8w1 .. 2) {
                    if (hdr.h.c == 8 && i == 1) { return; }
                    if (j == 2) { continue; }
                    hdr.h.b = hdr.h.b + j;
                }
                if (i == (bit<8>)hdr.h.c) { break; }
            }
            u.apply();""",
    )
    pipeline = load(document, tmp_path)
    loops = {0: 1, 1: 2, 2: 3, 9: 4, 7: 0, 8: 1}
    for a, (before, after) in {1: (3, 32), 2: (0, 64), 3: (0, 0)}.items():
        for c, passes in loops.items():
            expected = before + passes + (0 if c in (7, 8) else after)
            ((_, out),) = pipeline.process(1, bytes([a, 0, 0, c]), 0)
            assert out.hex() == f"{a:02x}{expected:02x}00{c:02x}"


def test_a_control_with_a_table_applied_to_different_arguments(tmp_path: Path) -> None:
    """Its parameters have places of their own, copied in and out at each application."""
    inner = """control Swap(inout bit<8> x, in bit<8> y, out bit<16> both) {
        bit<8> last = 7;
        action to(bit<8> v) { last = v; x = v; }
        table t { key = { y: exact; } actions = { to; NoAction; }
                  const entries = { 1: to(0x11); 2: to(0x22); } }
        apply { both = 0; t.apply(); both = x ++ last; } }"""
    document = json_of(
        top=inner,
        locals="Swap() swap;",
        apply="""std.egress_spec = 3; bit<16> got;
            if (hdr.h.c == 0) { swap.apply(hdr.h.a, hdr.h.b, got); }
            else { swap.apply(hdr.h.b, hdr.h.a, got); }
            hdr.h.c = got;""",
    )
    pipeline = load(document, tmp_path)
    outputs = {
        "01020000": "2202" + "2222",
        "02010001": "0222" + "2222",
        "05050001": "0505" + "0507",
        "05010000": "1101" + "1111",
    }
    for frame, expected in outputs.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame), 0)
        assert out.hex() == expected, frame


def test_an_object_given_as_a_parameter(tmp_path: Path) -> None:
    inner = """control Count(register<bit<32>> cells, in bit<32> at) {
        apply { bit<32> v; cells.read(v, at); cells.write(at, v + 3); } }"""
    document = json_of(
        top=inner,
        locals="register<bit<32>>(4) one; register<bit<32>>(4) two; Count() a; Count() b;",
        apply="a.apply(one, 1); b.apply(two, 2); std.egress_spec = 1;",
    )
    pipeline = load(document, tmp_path)
    for _ in range(2):
        pipeline.process(1, bytes(4), 0)
    assert [pipeline.registers.read("I.one", i) for i in range(4)] == [0, 6, 0, 0]
    assert [pipeline.registers.read("I.two", i) for i in range(4)] == [0, 0, 6, 0]


def test_a_wide_register_keeps_every_bit(tmp_path: Path) -> None:
    document = json_of(
        fields="bit<2048> wide;",
        locals="register<bit<2048>>(2) sums;",
        apply="""bit<2048> v; sums.read(v, 1); hdr.h.wide = hdr.h.wide + v;
            sums.write(1, hdr.h.wide); std.egress_spec = 1;""",
    )
    pipeline = load(document, tmp_path)
    source = random.Random(1)
    numbers = [source.getrandbits(2048) for _ in range(3)]
    outs = [pipeline.process(1, n.to_bytes(256, "big"), 0)[0][1] for n in numbers]
    assert int.from_bytes(outs[-1], "big") == sum(numbers) % (1 << 2048)


def test_exit_copies_out_what_is_being_executed(tmp_path: Path) -> None:
    document = json_of(
        top="""control Inner(inout bit<8> x, inout bit<8> y) {
            apply { x = 0x33; if (y == 1) { exit; } y = 0x44; } }""",
        locals="Inner() inner;",
        apply="std.egress_spec = 1; inner.apply(hdr.h.a, hdr.h.b); hdr.h.c = 0xffff;",
        egress="meta.m = 1;",
    )
    pipeline = load(document, tmp_path)
    ((_, out),) = pipeline.process(1, bytes.fromhex("00010000"), 0)
    assert out.hex() == "33010000"
    ((_, out),) = pipeline.process(1, bytes.fromhex("00020000"), 0)
    assert out.hex() == "3344ffff"


def test_last_of_stacks_of_unions_and_of_nested_headers(tmp_path: Path) -> None:
    document = json_of(
        types="""struct in_t { bit<4> x; bit<4> y; } header a_t { bit<8> next; in_t s; }
            header b_t { bit<8> next; bit<16> w; } header_union u_t { a_t a; b_t b; }""",
        headers="u_t[3] u; a_t[2] st;",
        parser="""state start { transition select(packet.lookahead<bit<8>>()) {
                1: a; 2: b; default: st; } }
            state a { packet.extract(hdr.u.next.a);
                transition select(hdr.u.last.a.s.y) { 1: a; 2: b; default: st; } }
            state b { packet.extract(hdr.u.next.b); transition st; }
            state st { packet.extract(hdr.st.next); meta.m = (bit<8>)hdr.st.last.s.y;
                transition accept; }""",
        apply="""std.egress_spec = 1; if (hdr.u[1].isValid()) { hdr.st[0].next = 0x77; }
            hdr.st[0].s = { 5, (bit<4>)meta.m };""",
    )
    pipeline = load(document, tmp_path)
    outputs = {"01020222220306aa": "01020222227756aa", "01000229": "01000259"}
    for frame, expected in outputs.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame), 0)
        assert out.hex() == expected, frame


def test_a_header_variable_is_invalid_at_each_declaration(tmp_path: Path) -> None:
    document = json_of(
        types="header t_h { bit<8> v; }",
        top="""bit<8> probe(in bit<8> v) { t_h x; bit<8> r = 0; if (x.isValid()) { r = 8; }
            x.setValid(); x.v = v; return r + x.v; }""",
        locals="""action a() { hdr.h.b = 0;
            for (bit<8> i = 0; i < 3; i = i + 1) { hdr.h.b = hdr.h.b + probe(1); } }""",
        apply="a(); std.egress_spec = 1;",
    )
    ((_, out),) = load(document, tmp_path).process(1, bytes(4), 0)
    assert out.hex() == "00030000"


ORDER = {
    # what is evaluated first keeps its value although something later changes it
    "arguments": ("hdr.h.b = second(hdr.h.a, set(hdr.h.a, 9));", "05000000", "0905"),
    "operands": ("hdr.h.b = hdr.h.a + set(hdr.h.a, 9);", "05000000", "090e"),
    "members": ("p_t p = { hdr.h.a, set(hdr.h.a, 9) }; hdr.h.b = p.x;", "05000000", "0905"),
    # an action's input is the value at the call
    "input": ("taker(hdr.h.a);", "05000000", "0105"),
    "expression": ("taker(hdr.h.a + 1);", "05000000", "0106"),
}


@pytest.mark.parametrize("case", ORDER)
def test_order_of_evaluation(case: str, tmp_path: Path) -> None:
    statement, frame, expected = ORDER[case]
    document = json_of(
        types="struct p_t { bit<8> x; bit<8> y; }",
        top="""bit<8> set(inout bit<8> x, in bit<8> v) { x = v; return v; }
            bit<8> second(in bit<8> x, in bit<8> y) { return x; }""",
        locals="action taker(in bit<8> x) { hdr.h.a = 1; hdr.h.b = x; }",
        apply=f"{statement} std.egress_spec = 1;",
    )
    ((_, out),) = load(document, tmp_path).process(1, bytes.fromhex(frame), 0)
    assert out.hex()[:4] == expected


def test_signed_registers(tmp_path: Path) -> None:
    document = json_of(
        fields="int<8> a; int<8> b;",
        locals="register<int<8>>(2) r;",
        apply="""r.write(1, hdr.h.a); int<8> v; r.read(v, 1); std.egress_spec = 1;
            hdr.h.b = v < 0 ? -v : v;""",
    )
    pipeline = load(document, tmp_path)
    ((_, out),) = pipeline.process(1, bytes.fromhex("fd00"), 0)
    assert out.hex() == "fd03"
    assert pipeline.registers.read("I.r", 1) == 0xFD
    ((_, written),) = [
        p
        for a in document["actions"]
        for p in primitives(document, a["name"])
        if p[0] == "register_write"
    ]
    # BMv2's cells are unsigned: a negative number would not compare equal to what is read back
    assert written[2]["value"]["op"] == "&"


def test_a_checksum_under_a_condition(tmp_path: Path) -> None:
    document = json_of(
        update="""if (hdr.h.a == 1) {
            update_checksum(hdr.h.b == 2, { hdr.h.a, hdr.h.b }, hdr.h.c,
                            HashAlgorithm.csum16); }""",
        apply="std.egress_spec = 1;",
    )
    pipeline = load(document, tmp_path)
    expected = {"01020000": "0102fefd", "01030000": "01030000", "02020000": "02020000"}
    for frame, wanted in expected.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame), 0)
        assert out.hex() == wanted


def nesting(value: Any) -> int:
    deepest, pending = 0, [(value, 1)]
    while pending:
        item, depth = pending.pop()
        deepest = max(deepest, depth)
        below = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        pending.extend((b, depth + 1) for b in below)
    return deepest


def test_long_expressions_stay_readable(tmp_path: Path) -> None:
    """BMv2's JSON reader refuses more than 1000 levels, our switch's 150 operators."""
    total = " + ".join(["hdr.h.a"] * 900)
    test = " && ".join(f"hdr.h.c != {n}" for n in range(1, 900))
    document = json_of(
        apply=f"hdr.h.b = {total}; if ({test}) {{ hdr.h.a = 1; }} std.egress_spec = 1;"
    )
    assert nesting(document) < 300
    pipeline = load(document, tmp_path)
    for frame, expected in {"03000000": "01", "03000005": "03", "03000383": "03"}.items():
        ((_, out),) = pipeline.process(1, bytes.fromhex(frame), 0)
        assert out.hex() == expected + f"{3 * 900 % 256:02x}" + frame[4:]


def test_a_digest_holds_what_was_true_at_the_call(tmp_path: Path) -> None:
    document = json_of(
        types="struct d_t { bit<8> a; bool b; bit<16> c; }",
        apply="""std.egress_spec = 1; digest<d_t>(1, { hdr.h.a, hdr.h.b == 2, 7 });
            hdr.h.a = 99; hdr.h.b = 99;""",
    )
    (learn,) = document["learn_lists"]
    fields = [e["value"] for e in learn["elements"]]
    assert [f[0] for f in fields] == ["scalars"] * 3, "BMv2 does not load constants here"
    (table,) = [t for p in document["pipelines"] for t in p["tables"]]
    ops = [op for op, _ in primitives(document, table["actions"][0])]
    assert ops == [*["assign"] * 4, "generate_digest", "assign", "assign"]


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        ("hdr.x.isValid() ? 8w1 : 8w2", "02"),
        ("hdr.x == hdr.y ? 8w1 : 8w2", "01"),
        ("hdr.y.isValid() ? 8w1 : 8w2", "02"),
    ],
)
def test_a_headers_new_value_may_depend_on_its_validity(
    value: str, leaves: str, tmp_path: Path
) -> None:
    """The whole right side is evaluated before the header becomes valid."""
    document = json_of(
        types="header x_t { bit<8> v; }",
        headers="x_t x; x_t y;",
        apply=f"std.egress_spec = 1; hdr.x = (x_t){{ {value} }};",
    )
    ((_, out),) = load(document, tmp_path).process(1, bytes(4), 0)
    assert out.hex() == "00000000" + leaves


def test_a_union_members_new_value_may_depend_on_another_members_validity(tmp_path: Path) -> None:
    document = json_of(
        types="""header a_t { bit<8> v; } header b_t { bit<16> w; }
            header_union u_t { a_t a; b_t b; }""",
        headers="u_t u;",
        apply="""std.egress_spec = 1; hdr.u.b.setValid(); hdr.u.b.w = 7;
            hdr.u.a = (a_t){ hdr.u.b.isValid() ? 8w1 : 8w2 };""",
    )
    ((_, out),) = load(document, tmp_path).process(1, bytes(4), 0)
    assert out.hex() == "0000000001"

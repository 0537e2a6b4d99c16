"""Elements picked at run time: of stacks of headers and unions, in parsers too; moving slices.

The expected bytes follow from the programs by hand; BMv2 gives the same for our JSON.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from back_program import compile_text, program_text

from p4native.switch import Pipeline

LIST = """header i_t { bit<8> n; bit<8> i; bit<8> j; bit<8> op; }
header a_t { bit<8> t; bit<8> a; }
header b_t { bit<8> t; bit<16> b; }
header_union u_t { a_t a; b_t b; }
header out_t { bit<8> valid; bit<16> value; }"""

# t says by how much the index grows: elements may be left out
UNION_PARSER = """state start {
        packet.extract(hdr.i); meta.m = 0;
        transition select(hdr.i.n) { 0: accept; default: next; }
    }
    state next {
        transition select(packet.lookahead<bit<8>>()) { 1: read_a; default: read_b; }
    }
    state read_a {
        packet.extract(hdr.u[meta.m].a);
        meta.m = meta.m + hdr.u[meta.m].a.t;
        transition more;
    }
    state read_b { packet.extract(hdr.u[meta.m].b); meta.m = meta.m + 1; transition more; }
    state more { transition select(meta.m == hdr.i.n) { true: accept; default: next; } }"""
UNION_APPLY = """std.egress_spec = 2;
    hdr.o.setValid(); hdr.o.value = 0xffff; hdr.o.valid = 0;
    bit<8> i = hdr.i.i; bit<8> j = hdr.i.j;
    if (std.parser_error != error.NoError) { hdr.o.value = 0xeeee; }
    else if (hdr.i.op == 0) {
        if (hdr.u[i].a.isValid()) { hdr.o.value = 8w0 ++ hdr.u[i].a.a; }
        else { hdr.o.value = hdr.u[i].b.b; }
        hdr.o.valid = (bit<8>)(bit<1>)hdr.u[i].isValid();
    }
    else if (hdr.i.op == 1) { hdr.u[i] = hdr.u[j]; }
    else if (hdr.i.op == 2) { hdr.u[i].a.a = hdr.u[i].a.a + 1; hdr.u[j].b.b[11:4] = 0xab; }
    else if (hdr.i.op == 3) {
        hdr.u[i].b.setValid(); hdr.u[i].b.t = 2; hdr.u[i].b.b = 0x1234;
        hdr.u[j].a.setInvalid();
    }
    else if (hdr.i.op == 4) {
        b_t t; t.setValid(); t.t = 2; t.b = 0x77;
        hdr.u[i].b = t;
        hdr.o.valid = (bit<8>)(bit<1>)(hdr.u[i].b == t);
    }
    else if (hdr.i.op == 5) { a_t t = hdr.u[i].a; if (t.isValid()) { hdr.o.valid = t.a; } }"""
UNIONS = {
    "read b": ("02 01 00 00 01 11 02 2233 ff", "02 01 00 00 01 2233 01 11 02 2233 ff"),
    "read a": ("02 00 00 00 01 11 02 2233 ff", "02 00 00 00 01 0011 01 11 02 2233 ff"),
    "read nothing": ("02 02 00 00 01 11 02 2233 ff", "02 02 00 00 00 0000 01 11 02 2233 ff"),
    "copy": ("02 00 01 01 01 11 02 2233 ff", "02 00 01 01 00 ffff 02 2233 02 2233 ff"),
    "copy to empty": (
        "02 02 00 01 01 11 02 2233 ff",
        "02 02 00 01 00 ffff 01 11 02 2233 01 11 ff",
    ),
    "write": ("02 00 01 02 01 11 02 2233 ff", "02 00 01 02 00 ffff 01 12 02 2ab3 ff"),
    "validity": ("02 02 00 03 01 11 02 2233 ff", "02 02 00 03 00 ffff 02 2233 02 1234 ff"),
    "member": ("02 00 00 04 01 11 02 2233 ff", "02 00 00 04 01 ffff 02 0077 02 2233 ff"),
    "copy out": ("02 00 00 05 01 11 02 2233 ff", "02 00 00 05 11 ffff 01 11 02 2233 ff"),
    "beyond the last": ("02 07 07 00 01 11 02 2233 ff", "02 07 07 00 00 0000 01 11 02 2233 ff"),
    "write beyond the last": (
        "02 07 07 03 01 11 02 2233 ff",
        "02 07 07 03 00 ffff 01 11 02 2233 ff",
    ),
    "too many": (
        "04 01 00 00 01 11 02 2233 01 44 01 55 ff",
        "04 01 00 00 00 eeee 01 11 02 2233 01 44 01 55 ff",
    ),
}

STACK_PARSER = """state start {
        packet.extract(hdr.i); meta.m = 2;
        transition select(hdr.i.n) { 0: accept; default: next; }
    }
    state next { packet.extract(hdr.s[meta.m]); meta.m = meta.m - 1; transition more; }
    state more { transition select(hdr.s[meta.m + 1].t) { 1: next; default: accept; } }"""
STACK_LOCALS = """action bump(inout bit<8> x, in bit<8> y) { x = x + y; hdr.i.i = 0; }
    action none() { }
    action set(bit<8> v) { hdr.s[hdr.i.j].a = v; }
    table t {
        key = { hdr.s[hdr.i.i].a : exact @name("x"); }
        actions = { set; none; }
        default_action = none();
        const entries = { 0x22 : set(0x99); }
    }"""
STACK_APPLY = """std.egress_spec = 2; bit<16> sum;
    meta.s[0].setValid(); meta.s[1].setValid(); meta.s[0].a = 1; meta.s[1].a = 2;
    if (std.parser_error != error.NoError) { hdr.i.op = 0xee; }
    else if (hdr.i.op == 0) { bump(hdr.s[hdr.i.i].a, hdr.s[hdr.i.j].a); }
    else if (hdr.i.op == 1) { hdr.s[hdr.i.i] = hdr.s[hdr.i.j]; }
    else if (hdr.i.op == 2) { t.apply(); }
    else if (hdr.i.op == 3) {
        hdr.s[hdr.i.i] = meta.s[hdr.i.j];
        if (hdr.s[hdr.i.i] == meta.s[hdr.i.j]) { hdr.i.op = 0x33; }
    }
    else if (hdr.i.op == 4) { hdr.s[hdr.i.i].a[3:0] = 0xf; hdr.s[hdr.i.j].setInvalid(); }
    else if (hdr.i.op == 5) {
        hash(sum, HashAlgorithm.xor16, 16w0, { hdr.s[hdr.i.i] }, 17w65536);
        hdr.i.i = sum[15:8]; hdr.i.j = sum[7:0];
    }
    else if (hdr.i.op == 6) {
        hdr.i.j = hdr.s[hdr.i.i].a[hdr.i.j +: 4] ++ 4w0;
        hdr.i.n[hdr.i.i +: 4] = 0xf;
    }"""
STACKS = {
    "inout argument": ("02 02 01 00 01 11 02 22 ff", "02 00 01 00 02 22 01 33 ff"),
    "copy": ("02 00 01 01 01 11 02 22 ff", "02 00 01 01 02 22 02 22 01 11 ff"),
    "key": ("02 01 02 02 01 11 02 22 ff", "02 01 02 02 02 22 01 99 ff"),
    "from metadata": ("02 00 01 03 01 11 02 22 ff", "02 00 01 33 00 02 02 22 01 11 ff"),
    "slice": ("02 01 02 04 01 11 02 22 ff", "02 01 02 04 02 2f ff"),
    "hash": ("02 01 02 05 01 11 02 22 ff", "02 02 22 05 02 22 01 11 ff"),
    "moving slice": ("01 02 01 06 01 a5 02 22 ff", "3d 02 20 06 02 22 01 a5 ff"),
    "too many": ("01 00 02 00 01 a5 01 22 01 33 01 44", "01 00 02 ee 01 33 01 22 01 a5 01 44"),
}


def run(text: str, sent: str, tmp_path: Path) -> str:
    document, _, errors = compile_text(text)
    assert document is not None, errors
    path = tmp_path / "prog.json"
    path.write_text(json.dumps(document))
    ((port, frame),) = Pipeline.load(path, quick=True).process(1, bytes.fromhex(sent), 0)
    assert port == 2
    return frame.hex()


@pytest.mark.parametrize("name", UNIONS)
def test_stack_of_unions(name: str, tmp_path: Path) -> None:
    sent, expected = UNIONS[name]
    text = program_text(
        types=LIST, headers="i_t i; out_t o; u_t[3] u;", parser=UNION_PARSER, apply=UNION_APPLY
    )
    assert run(text, sent, tmp_path) == bytes.fromhex(expected).hex()


@pytest.mark.parametrize("name", STACKS)
def test_stack_of_headers(name: str, tmp_path: Path) -> None:
    sent, expected = STACKS[name]
    text = program_text(
        types=LIST,
        headers="i_t i; a_t[3] s;",
        meta="bit<8> m; a_t[2] s;",
        parser=STACK_PARSER,
        locals=STACK_LOCALS,
        apply=STACK_APPLY,
    )
    assert run(text, sent, tmp_path) == bytes.fromhex(expected).hex()


ARRAY_LOCALS = "const bit<8>[4] SQUARES = { 0, 1, 4, 9 };"
ARRAY_APPLY = """std.egress_spec = 2;
    meta.pairs[0] = { 0xa, false }; meta.pairs[1] = { 0xb, true }; meta.pairs[2] = { 0xc, true };
    bit<8> i = hdr.i.i; bit<8> j = hdr.i.j;
    if (hdr.i.op == 0) { meta.bytes[i] = 7; hdr.i.n = meta.bytes[0] ++ meta.bytes[1]; }
    else if (hdr.i.op == 1) { hdr.i.n = SQUARES[i] ++ SQUARES[j]; }
    else if (hdr.i.op == 2) {
        pair_t p = meta.pairs[i];
        meta.pairs[j] = p;
        if (meta.pairs[j] == p && meta.pairs[i].set) { hdr.i.n = 8w1 ++ meta.pairs[1].x; }
    }
    else if (hdr.i.op == 3) {
        meta.grid[i][j] = 3; meta.grid[j][i] = 4; meta.grid[1][j][7:4] = 5;
        hdr.i.n = meta.grid[0][1] ++ meta.grid[1][0];
    }
    else if (hdr.i.op == 4) { for (bit<8> b in SQUARES) { hdr.i.n = hdr.i.n + (8w0 ++ b); } }"""
ARRAYS = {
    "written": ("0000 01 00 00", "0007 01 00 00"),
    "constant": ("0000 02 03 01", "0409 02 03 01"),
    "of structs": ("0000 02 01 02", "010c 02 01 02"),
    "of structs, member false": ("0000 00 01 02", "0000 00 01 02"),
    "of arrays": ("0000 00 01 03", "0304 00 01 03"),
    "of arrays, a slice": ("0000 01 00 03", "0453 01 00 03"),
    "walked through": ("0100 00 00 04", "010e 00 00 04"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_anything(name: str, tmp_path: Path) -> None:
    sent, expected = ARRAYS[name]
    text = program_text(
        types="""header i_t { bit<16> n; bit<8> i; bit<8> j; bit<8> op; }
            struct pair_t { bit<8> x; bool set; }""",
        headers="i_t i;",
        meta="bit<8>[2] bytes; pair_t[3] pairs; bit<8>[2][2] grid;",
        parser="state start { packet.extract(hdr.i); transition accept; }",
        locals=ARRAY_LOCALS,
        apply=ARRAY_APPLY,
    )
    assert run(text, sent, tmp_path) == bytes.fromhex(expected).hex()


def test_last_of_a_stack_of_unions_anywhere(tmp_path: Path) -> None:
    text = program_text(
        types=LIST,
        headers="i_t i; u_t[3] u;",
        parser="""state start { packet.extract(hdr.i); meta.m = 0; transition next; }
    state next {
        transition select(packet.lookahead<bit<8>>()) { 1: read_a; default: read_b; }
    }
    state read_a {
        packet.extract(hdr.u.next.a);
        meta.m = meta.m + hdr.u.last.a.a;
        transition more;
    }
    state read_b {
        packet.extract(hdr.u.next.b);
        meta.m = meta.m + hdr.u.last.b.b[7:0];
        transition select(hdr.u.last.b.b) { 0x2233: more; default: accept; }
    }
    state more {
        hdr.i.n = hdr.i.n - 1;
        transition select(hdr.i.n) { 0: accept; default: next; }
    }""",
        apply="std.egress_spec = 2; hdr.i.i = meta.m;",
    )
    sent, expected = "03 00 00 00 01 11 02 2233 01 02 ff", "00 46 00 00 01 11 02 2233 01 02 ff"
    assert run(text, sent, tmp_path) == bytes.fromhex(expected).hex()

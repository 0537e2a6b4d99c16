"""What BMv2 or this back end cannot do: one clear error at the right place, never wrong code."""

from __future__ import annotations

from pathlib import Path

import pytest
from back_program import compile_text, errors_of, program_text

from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options

CASES = {
    "clone of kind I2E outside ingress": {"egress": "clone(CloneType.I2E, 1);"},
    "resubmit outside ingress": {"egress": "resubmit_preserving_field_list(1);"},
    "more than one lpm key": {
        "locals": "table t { key = { hdr.h.a: lpm; hdr.h.c: lpm; } actions = { NoAction; } }",
        "apply": "t.apply();",
    },
    "header odd_t of 3 bits": {"types": "header odd_t { bit<3> x; }", "headers": "odd_t o;"},
    "more than one varbit field": {
        "types": "header two_t { varbit<8> x; varbit<8> y; }",
        "headers": "two_t o;",
    },
    "an action parameter of type pair_t": {
        "types": "struct pair_t { bit<8> x; bit<8> y; }",
        "locals": "action a(pair_t p) { hdr.h.a = p.x; } table t { actions = { a; NoAction; } }",
        "apply": "t.apply();",
    },
    "an index known at run time among more than 4096 elements": {
        "meta": "bit<8> m; bit<8>[100][100] grid;",
        "apply": "meta.grid[hdr.h.a][hdr.h.b] = 1;",
    },
    "loops that unroll to more than 20000 copies": {
        "meta": "bit<8> m; bit<8>[200] row;",
        "apply": """for (bit<8> x in meta.row) { for (bit<8> y in meta.row) { meta.m = y; } }""",
    },
    "more than 20000 inlined calls": {
        "top": "".join(
            f"bit<8> f{i}(in bit<8> x) {{ return {f'f{i - 1}(x) + f{i - 1}(x)' if i else 'x'}; }}"
            for i in range(40)
        ),
        "apply": "hdr.h.a = f39(hdr.h.b);",
    },
    "a register of": {"locals": "register<h_t>(3) r;"},
    "I.r with more than 2147483647 cells": {"locals": "register<bit<8>>(2147483648) r;"},
    "emit under a condition": {"deparser": "if (hdr.h.a == 1) { packet.emit(hdr.h); }"},
    "a computed value in a checksum's data": {
        "update": "update_checksum(true, { hdr.h.a + 1 }, hdr.h.c, HashAlgorithm.csum16);"
    },
    "a computation in C": {"update": "hdr.h.a = 1;"},
    "applying table I.inner.t again after it was applied": {
        "top": """control N(inout h_t h) {
            table t { actions = { NoAction; } } apply { t.apply(); } }""",
        "locals": "N() inner;",
        "apply": "inner.apply(hdr.h); inner.apply(hdr.h);",
    },
    "applying table I.t again after it was applied": {
        "locals": "table t { key = { hdr.h.a: exact; } actions = { NoAction; } }",
        "apply": "t.apply(); hdr.h.a = 2; t.apply();",
    },
    "applying table I.u again after it was applied": {
        "locals": "table u { key = { hdr.h.a: exact; } actions = { NoAction; } }",
        "apply": "for (bit<8> i = 0; i < 3; i = i + 1) { u.apply(); }",
    },
    "exit in an action of a control applied at several places": {
        "top": """control N(inout bit<8> x) { action a() { exit; }
            table t { actions = { a; } } apply { t.apply(); } }""",
        "locals": "N() inner;",
        "apply": "if (meta.m == 1) { inner.apply(hdr.h.a); } else { inner.apply(hdr.h.b); }",
    },
    "I.rate, which no action reads": {
        "locals": """direct_meter<bit<8>>(MeterType.packets) rate;
            table t { key = { hdr.h.a: exact; } actions = { NoAction; } meters = rate; }""",
        "apply": "t.apply();",
    },
    "reading the next element of a header stack": {
        "types": "header s_t { bit<8> v; }",
        "headers": "s_t[2] s;",
        "parser": "state start { transition select(hdr.s.next.v) { 1: accept; } }",
    },
    "the extern function mine": {"top": "extern void mine(in bit<8> x);", "apply": "mine(3);"},
    "the extern object Mine": {
        "top": "extern Mine { Mine(); void go(); }",
        "locals": "Mine() m;",
        "apply": "m.go();",
    },
}


@pytest.mark.long(
    but=[
        "clone of kind I2E outside ingress",
        "the extern object Mine",
        "emit under a condition",
        "an action parameter of type pair_t",
    ]
)
@pytest.mark.parametrize("construct", CASES)
def test_named_with_its_place(construct: str) -> None:
    document, info, errors = compile_text(program_text(**CASES[construct]))
    assert document is None and info is None
    assert any("not supported yet" in e and construct in e for e in errors), errors
    assert all(int(e.split(":")[0]) > 0 for e in errors)


def test_other_architectures() -> None:
    text = """#include <core.p4>
        parser P(packet_in p) { state start { transition accept; } }
        parser PT(packet_in p); package Other(PT p);
        Other(P()) main;"""
    _, _, errors = compile_text(text)
    assert [e.split(": ", 1)[1] for e in errors] == ["not supported yet: the architecture Other"]


def test_each_problem_is_told_once_and_the_rest_is_looked_at() -> None:
    found = errors_of(
        top="extern void mine(in bit<8> x);",
        locals="action a() { mine(1); } table t { actions = { a; } }",
        apply="t.apply(); mine(2); hdr.h.a = 1;",
        update="hdr.h.a = 1;",
    )
    assert found.count("not supported yet: the extern function mine") == 2


def test_a_direct_meter_without_table() -> None:
    found = errors_of(
        locals="direct_meter<bit<8>>(MeterType.packets) m; action a() { m.read(hdr.h.a); }",
        apply="a();",
    )
    assert found == ["I.m is attached to no table"]


def test_a_program_without_main() -> None:
    _, _, errors = compile_text("#include <core.p4>\nconst bit<8> X = 1;\n")
    assert errors == ("2:14: no package is instantiated as main",)


@pytest.mark.parametrize("written", ['("u", bool)', '("u", bit<5+3>)', "()", '("u")'])
def test_translations_of_unknown_form(written: str) -> None:
    found = errors_of(
        types=f"@p4runtime_translation{written} type bit<9> port_t;",
        locals="action a(port_t p) { std.egress_spec = (bit<9>)p; } table t { actions = { a; } }",
        apply="t.apply();",
    )
    assert found == ["not supported yet: this translation"]


def test_entries_whose_priority_would_be_negative() -> None:
    found = errors_of(
        locals="""table t {
            key = { hdr.h.a : ternary; }
            actions = { NoAction; }
            priority_delta = 10;
            entries = { priority = 12 : 1 : NoAction(); 2 : NoAction(); 3 : NoAction(); }
        }""",
        apply="t.apply();",
    )
    assert found == ["not supported yet: an entry of priority -8"]


def test_what_bmv2_ignores_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "prog.p4"
    path.write_text(
        program_text(
            parser="""state start { packet.extract(hdr.h);
                transition select(hdr.h.a) { 1: reject; default: accept; } }""",
            locals="""action_profile(16) ap;
                table t { key = { hdr.h.a: exact; } actions = { NoAction; }
                    default_action = NoAction(); implementation = ap; }
                table u { key = { hdr.h.a: exact; } actions = { NoAction; }
                    implementation = ap; }""",
            apply="t.apply(); u.apply();",
        )
    )
    diagnostics = Diagnostics()
    typed = compile_file(str(path), Options(), diagnostics)
    assert typed is not None and emit(typed, diagnostics) is not None
    lines = path.read_text().splitlines()
    told = [(d.kind, lines[d.position.line - 1].strip()[:10]) for d in diagnostics.entries]
    assert told == [("unsupported", "transition"), ("unsupported", "table t { ")]

"""What the interpreter makes of constructs whose meaning the specification states, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options
from p4native.verification.interpreter import Machine, UnknownConstruct, hashes

PROGRAM = """#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<16> c; }}
header e_t {{ bit<8> v; }}
header g_t {{ bit<16> v; }}
header_union u_t {{ e_t e; g_t g; }}
struct headers_t {{ h_t h; e_t[3] s; u_t u; }}
struct pair_t {{ bit<8> x; bit<8> y; }}
struct meta_t {{ @field_list(1) bit<8> kept; bit<8> lost; pair_t p; pair_t q; }}
{top}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {parser}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {declarations}
    apply {{ std.egress_spec = 1; {apply} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    apply {{ {egress} }}
}}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ {update} }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
ONE_HEADER = "state start { packet.extract(hdr.h); transition accept; }"
STACK = "state start { packet.extract(hdr.h); transition s; } " + (
    "state s { packet.extract(hdr.s.next); transition select(hdr.s.last.v) { 0: accept; _: s; } }"
)


class Build:
    """Makes a machine of parts of a program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, **parts: str) -> Machine:
        names = ("top", "declarations", "apply", "egress", "update")
        text = PROGRAM.format(**{**dict.fromkeys(names, ""), "parser": ONE_HEADER, **parts})
        path = self._folder / "program.p4"
        path.write_text(text)
        diagnostics = Diagnostics()
        program = compile_file(str(path), Options(), diagnostics)
        assert program is not None, render(diagnostics.entries)
        return Machine(program)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path)


def sent(machine: Machine, frame: str) -> str:
    """The one frame that leaves, in hexadecimal digits, after its port."""
    ((port, out),) = machine.process(0, bytes.fromhex(frame))
    return f"{port} {out.hex()}"


@pytest.mark.parametrize(
    ("statement", "c"),
    [
        ("hdr.h.c = hdr.h.a ++ hdr.h.b;", "f002"),
        ("hdr.h.c = (bit<16>)(hdr.h.a + 8w0x20);", "0010"),
        ("hdr.h.c = (bit<16>)(hdr.h.a |+| 8w0x20);", "00ff"),
        ("hdr.h.c = (bit<16>)(hdr.h.b |-| 8w3);", "0000"),
        ("hdr.h.c = (bit<16>)(int<16>)(int<8>)hdr.h.a;", "fff0"),
        ("hdr.h.c = (bit<16>)((int<16>)(int<8>)hdr.h.a >> 2);", "fffc"),
        ("hdr.h.c = 16w1 << hdr.h.a;", "0000"),
        ("hdr.h.c[11:4] = hdr.h.a;", "1f04"),
        ("hdr.h.c = (bit<16>)hdr.h.c[7:4];", "0003"),
        ("hdr.h.c = hdr.h.a > hdr.h.b ? 16w1 : 16w2;", "0001"),
        ("hdr.h.c = (int<8>)hdr.h.a > (int<8>)hdr.h.b ? 16w1 : 16w2;", "0002"),
        ("tuple<bit<8>, bit<16>> t = { hdr.h.a, 16w7 }; t[1] = t[1] + 1; hdr.h.c = t[1];", "0008"),
        ("bit<16> n = 0; for (bit<16> i in 16w1 .. 16w4) { n = n + i; } hdr.h.c = n;", "000a"),
        ("switch (hdr.h.b) { 1: 2: { hdr.h.c = 5; } default: { hdr.h.c = 6; } }", "0005"),
    ],
)
def test_arithmetic_and_statements(build: Build, statement: str, c: str) -> None:
    assert sent(build(apply=statement), "f0021234") == f"1 f002{c}"


FUNCTIONS = """bit<8> swap(inout bit<8> x, inout bit<8> y) { bit<8> t = x; x = y; y = t; return t; }
bit<8> two(out bit<8> x, out bit<8> y) { y = 2; x = 1; return 5; }
bit<8> early(in bit<8> x, out bit<8> y) { y = 1; if (x == 0) { return 7; } y = 2; return 8; }
"""


@pytest.mark.parametrize(
    ("statement", "leaves"),
    [
        # Outputs go to their places from left to right, so the last one stays.
        ("hdr.h.c = (bit<16>)two(hdr.h.a, hdr.h.a);", "02040005"),
        ("hdr.h.c = (bit<16>)swap(hdr.h.a, hdr.h.b);", "04030003"),
        ("hdr.h.c = (bit<16>)early(hdr.h.a, hdr.h.b);", "03020008"),
        ("hdr.h.c = (bit<16>)early(0, hdr.h.b);", "03010007"),
        # An operand that was evaluated keeps its value although a call changes the variable.
        ("hdr.h.c = (bit<16>)(hdr.h.a + swap(hdr.h.a, hdr.h.b));", "04030006"),
    ],
)
def test_calls_copy_in_and_out(build: Build, statement: str, leaves: str) -> None:
    assert sent(build(top=FUNCTIONS, apply=statement), "03040000") == f"1 {leaves}"


def test_exit_copies_out_and_ends_the_pipeline(build: Build) -> None:
    inner = """control Inner(inout bit<8> x) { apply { x = 9; if (x == 9) { exit; } x = 1; } }"""
    machine = build(
        top=inner,
        declarations="Inner() inner;",
        apply="inner.apply(hdr.h.a); hdr.h.b = 1;",
        egress="hdr.h.c = 5;",
    )
    assert sent(machine, "03040000") == "1 09040005"


def test_a_place_is_chosen_before_the_value_is_assigned(build: Build) -> None:
    """A struct that is assigned as a whole keeps the places of its fields."""
    machine = build(
        declarations="action a(out bit<8> x) { x = 5; meta.p = { 1, 2 }; }",
        apply="a(meta.p.x); hdr.h.a = meta.p.x; hdr.h.b = meta.p.y;",
    )
    assert sent(machine, "00000000") == "1 05020000"


@pytest.mark.parametrize(
    ("statement", "leaves"),
    [
        ("hdr.s.push_front(1);", "0102"),
        ("hdr.s.push_front(1); hdr.s[0].setValid(); hdr.s[0].v = 9;", "090102"),
        ("hdr.s.pop_front(1);", "0200"),
        ("hdr.s.pop_front(5);", ""),
        ("hdr.s[1].setInvalid();", "0100"),
        ("hdr.s[1] = hdr.s[0];", "010100"),
        ("hdr.s[hdr.h.a].v = 7;", "010207"),
        ("if (hdr.s[0] == hdr.s[1]) { hdr.s[0].v = 7; }", "010200"),
        ("hdr.s.pop_front(2); if (hdr.s[1] == hdr.s[2]) { hdr.s[0].v = 7; }", "07"),
    ],
)
def test_stacks(build: Build, statement: str, leaves: str) -> None:
    machine = build(parser=STACK, apply=statement)
    assert sent(machine, "02000000010200ff") == f"1 02000000{leaves}ff"


def test_a_full_stack_and_a_short_packet_end_parsing_with_an_error(build: Build) -> None:
    tell = """if (std.parser_error == error.StackOutOfBounds) { hdr.h.b = 1; }
        if (std.parser_error == error.PacketTooShort) { hdr.h.b = 2; }"""
    machine = build(parser=STACK, apply=tell)
    assert sent(machine, "00000000010203040506") == "1 00010000010203040506"
    assert sent(machine, "000000000102") == "1 000200000102"
    assert sent(machine, "000000000100") == "1 000000000100"


def test_one_member_of_a_union_is_valid(build: Build) -> None:
    machine = build(apply="hdr.u.e.setValid(); hdr.u.e.v = 1; hdr.u.g.setValid(); hdr.u.g.v = 2;")
    assert sent(machine, "00000000") == "1 000000000002"


TABLE = """action to(bit<8> v) {{ hdr.h.b = v; }}
    table t {{ key = {{ hdr.h.a : {kind}; }} actions = {{ to; NoAction; }}
        {before} const entries = {{ {entries} }} const default_action = to(9); }}"""


@pytest.mark.parametrize(
    ("kind", "before", "entries", "values"),
    [
        ("exact", "", "1: to(1); 2: to(2);", {1: 1, 2: 2, 3: 9}),
        ("lpm", "", "0x10 &&& 0xf0: to(1); 0x12 &&& 0xfe: to(2);", {0x10: 1, 0x13: 2, 0x20: 9}),
        ("ternary", "", "0x10 &&& 0xf0: to(1); 0x12: to(2); _: to(3);", {0x12: 1, 0x20: 3}),
        ("range", "", "3 .. 5: to(1); 5 .. 7: to(2);", {2: 9, 3: 1, 5: 1, 7: 2}),
        ("ternary", "", "priority=1: 1: to(1); priority=2: _: to(2);", {1: 2, 5: 2}),
        (
            "ternary",
            "largest_priority_wins = false;",
            "priority=1: 1: to(1); priority=2: _: to(2);",
            {1: 1, 5: 2},
        ),
    ],
)
def test_entries(
    build: Build, kind: str, before: str, entries: str, values: dict[int, int]
) -> None:
    declared = TABLE.format(kind=kind, before=before, entries=entries)
    if "priority" in entries:
        declared = declared.replace("const entries", "entries")
    machine = build(declarations=declared, apply="t.apply();")
    for a, b in values.items():
        assert sent(machine, f"{a:02x}000000") == f"1 {a:02x}{b:02x}0000"


def test_copies_keep_listed_metadata_alone(build: Build) -> None:
    machine = build(
        apply="""if (meta.kept == 0) { meta.kept = 3; meta.lost = 4;
            resubmit_preserving_field_list(1); }
            else { hdr.h.a = meta.kept; hdr.h.b = meta.lost; hdr.h.c = (bit<16>)std.instance_type; }
            std.mcast_grp = 2;"""
    )
    machine.groups[2] = [(1, 0), (3, 0)]
    out = [(port, frame.hex()) for port, frame in machine.process(0, bytes(4))]
    assert out == [(1, "03000006"), (3, "03000006")]


def test_registers_keep_and_counters_count(build: Build) -> None:
    machine = build(
        declarations="register<bit<8>>(2) r; counter(2, CounterType.packets_and_bytes) n;",
        apply="r.read(hdr.h.b, 1); r.write(1, hdr.h.b + hdr.h.a); n.count(1);",
    )
    assert [sent(machine, "05000000") for _ in range(2)] == ["1 05000000", "1 05050000"]
    assert machine.externs.registers == {"I.r": [0, 10]}
    assert machine.externs.counters == {"I.n": [[0, 0], [2, 8]]}


def test_hashes_have_their_published_check_values() -> None:
    check = b"123456789"
    assert hashes.crc16(check) == 0xBB3D  # CRC-16/ARC
    assert hashes.ALGORITHMS["crc32"](check) == 0xCBF43926
    # RFC 1071, section 3: the sum is ddf2.
    assert hashes.csum16(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2
    assert hashes.xor16(b"\1\2\3") == 0x0202


def test_what_is_not_known_is_named_with_its_place(build: Build) -> None:
    machine = build(apply="random(hdr.h.a, 8w0, 8w1);")
    with pytest.raises(UnknownConstruct, match=r"program\.p4:\d+:\d+: calls of random"):
        machine.process(0, bytes(4))

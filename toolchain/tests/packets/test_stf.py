"""The STF runner itself: what a script may say, what a failure looks like, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p4native.compiler.command import main as compile_p4
from p4native.stf import Binder, Expect, Match, Packet, Run, StfError, main, parse
from p4native.stf.show import dissect

PROGRAM: dict[str, Any] = {
    "header_types": [
        {"name": "eth_t", "fields": [["dst", 16, False], ["kind", 8, False]]},
        {"name": "scalars_t", "fields": []},
    ],
    "headers": [
        {"name": "eth", "header_type": "eth_t"},
        {"name": "extra[0]", "header_type": "eth_t"},
        {"name": "scalars", "header_type": "scalars_t"},
    ],
    "parsers": [
        {
            "init_state": "start",
            "parse_states": [
                {
                    "name": "start",
                    "parser_ops": [
                        {"op": "extract", "parameters": [{"type": "regular", "value": "eth"}]}
                    ],
                    "transition_key": [],
                    "transitions": [{"value": "default", "mask": None, "next_state": None}],
                }
            ],
        }
    ],
    "actions": [{"id": 0, "name": "I.set", "runtime_data": [{"name": "v", "bitwidth": 8}]}],
    "pipelines": [
        {
            "tables": [
                {
                    "name": "I.t",
                    "actions": ["I.set"],
                    "action_ids": [0],
                    "key": [
                        {"match_type": "ternary", "name": "h.eth.dst", "target": ["eth", "dst"]},
                        {"match_type": "lpm", "target": ["extra[0]", "dst"]},
                        {"match_type": "exact", "target": ["eth", "$valid$"]},
                        {"match_type": "range", "target": ["eth", "kind"]},
                    ],
                },
                {
                    "name": "I.p",
                    "actions": ["I.set"],
                    "action_ids": [0],
                    "action_profile": "I.ap",
                    "key": [{"match_type": "exact", "target": ["eth", "kind"]}],
                },
            ],
            "action_profiles": [{"name": "I.ap"}],
        }
    ],
    "counter_arrays": [{"name": "I.c"}],
    "meter_arrays": [
        {"name": "I.m", "size": 2},
        {"name": "I.own", "is_direct": True, "binding": "I.t"},
    ],
    "register_arrays": [{"name": "I.r"}],
}


class Echo:
    """An engine that sends every packet back with its last bit set, and remembers its entries."""

    def __init__(self) -> None:
        self.out: list[tuple[int, bytes]] = []
        self.calls: list[tuple[Any, ...]] = []

    def add(
        self, table: str, keys: list[Match], action: str, args: list[int], priority: int
    ) -> int:
        self.calls.append((table, keys, action, args, priority))
        return len(self.calls)

    def add_indirect(
        self, table: str, keys: list[Match], group: bool, target: int, priority: int
    ) -> int:
        self.calls.append((table, keys, group, target, priority))
        return len(self.calls)

    def add_member(self, profile: str, action: str, args: list[int]) -> int:
        self.calls.append((profile, action, args))
        return len(self.calls)

    def add_group(self, profile: str, members: list[int]) -> int:
        self.calls.append((profile, members))
        return len(self.calls)

    def set_default(self, table: str, action: str, args: list[int]) -> None:
        self.calls.append((table, action, args))

    def remove(self, table: str, handle: int) -> None:
        self.calls.append((table, handle))

    def direct(self, verb: str, name: str, numbers: tuple[int, ...]) -> str:
        self.calls.append((verb, name, numbers))
        return ""

    def set_meter(self, name: str, index: int, rates: tuple[tuple[float, int], ...]) -> None:
        self.calls.append((name, index, rates))

    def set_direct_meter(
        self, table: str, name: str, handle: int, rates: tuple[tuple[float, int], ...]
    ) -> None:
        self.calls.append((table, name, handle, rates))

    def counter(self, name: str, index: int) -> tuple[int, int]:
        return 3, 300

    def register(self, name: str, index: int) -> int:
        return 7

    def send(self, port: int, frame: bytes) -> None:
        self.out.append((port, frame[:-1] + bytes([frame[-1] | 1])))

    def wait(self) -> None:
        pass

    def received(self) -> list[tuple[int, bytes]]:
        out, self.out = self.out, []
        return out


def run(text: str) -> tuple[list[str], Echo]:
    engine = Echo()
    return Run(Binder(PROGRAM), engine).execute(parse(text)), engine


def test_packets_and_expectations() -> None:
    assert parse("PACKET 3 0a 0B # c\n\nexpect 1 0* ff$\nexpect 2") == [
        Packet(1, 3, b"\x0a\x0b"),
        Expect(3, 1, "0*ff", True),
        Expect(4, 2, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "packet 0 10\nexpect 0 11 $",
        "packet 0 10 20\nexpect 0 10",
        "packet 0 10 20\nexpect 0 1* *1 $",
        "packet 0 10\npacket 0 20\nexpect 0",
        "packet 0 10\nexpect 0 11\nno_packet",
        "expect 0 11\npacket 0 10",
        "check_counter c(1) packets == 3\ncheck_counter I.c(1) bytes > 299",
        "check_register r(0) == 7",
        "check_counter c(0)",
    ],
)
def test_holds(text: str) -> None:
    assert run(text)[0] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("packet 0 10\nexpect 0 10 $", "2: port 0, packet 1 of 1 differs"),
        ("packet 0 10 20\nexpect 0 10 $", "expected 1 bytes, got 2"),
        ("packet 0 10\nexpect 0 11 22", "expected 2 bytes, got 1"),
        ("packet 0 10\nexpect 0 11\nexpect 0 22", "3: port 0: this packet never came out"),
        ("packet 0 10", "port 0: a packet nobody expected"),
        ("expect 4", "1: port 4: no packet came out"),
        ("packet 0 10\nno_packet\nexpect 0 11", "2: no_packet: 1 more packet came out of port 0"),
        ("check_counter c(1) packets != 3", "1: I.c[1] packets: expected != 3, got 3 (0x3)"),
        ("check_register r(2) == 0", "1: I.r[2] value: expected == 0, got 7 (0x7)"),
    ],
)
def test_fails(text: str, says: str) -> None:
    failures, _ = run(text)
    assert len(failures) == 1
    assert says in failures[0]


def test_a_difference_is_marked_and_named() -> None:
    (failure,), _ = run("packet 0 1122 30 aa\nexpect 0 1199 30 ab $")
    assert failure.splitlines()[1:] == [
        "        expected                  actual",
        "  0000  11 99 30 ab               11 22 30 ab",
        "                                     ^^",
        "  fields, as the program's parser reads what came:",
        "    eth.dst: expected 0x1199, got 0x1122",
    ]


def test_entries_are_bound_by_suffix_and_width() -> None:
    _, engine = run(
        "add t 9 dst:0x12** extra$0.dst:0x1200/8 eth.valid:1 eth.kind:3..5 set(v:0x10) = one\n"
        "add I.t 8 eth.dst:5 extra[0].dst:0x1*** eth:1 I.set(v:1)\n"
        "remove one\n"
        "setdefault t set(v:2)"
    )
    assert engine.calls[0] == (
        "I.t",
        [
            Match("ternary", 0x1200, 0xFF00),
            Match("lpm", 0x1200, 8),
            Match("exact", 1, 1),
            Match("range", 3, 5),
        ],
        "I.set",
        [0x10],
        9,
    )
    assert engine.calls[1][1] == [
        Match("ternary", 5, 0xFFFF),
        Match("lpm", 0x1000, 4),
        Match("exact", 1, 1),
        Match("range", 0, 0xFF),
    ]
    assert engine.calls[2:] == [("I.t", 1), ("I.t", "I.set", [2])]


def test_meters_one_and_all() -> None:
    _, engine = run("meter_set_rates m 1 0.5:3 1:4\nmeter_array_set_rates I.m 0.000001:1 0.1:2")
    assert engine.calls == [
        ("I.m", 1, ((0.5, 3), (1.0, 4))),
        ("I.m", 0, ((0.000001, 1), (0.1, 2))),
        ("I.m", 1, ((0.000001, 1), (0.1, 2))),
    ]


def test_a_direct_meter_is_an_entry_s() -> None:
    _, engine = run("add t 1 dst:1 set(v:2) = e\nmeter_set_rates own e 1:2 3:4")
    assert engine.calls[1] == ("I.t", "I.own", 1, ((1.0, 2), (3.0, 4)))


def test_members_groups_and_the_entries_that_refer_to_them() -> None:
    _, engine = run(
        "member ap set(v:7) = m\nmember ap set(v:8) = n\ngroup ap n m n = g\n"
        "add_indirect p kind:5 g = e\nadd_indirect p kind:6 m\nremove e"
    )
    assert engine.calls == [
        ("I.ap", "I.set", [7]),
        ("I.ap", "I.set", [8]),
        ("I.ap", [2, 1, 2]),
        ("I.p", [Match("exact", 5, 0xFF)], True, 3, 0),
        ("I.p", [Match("exact", 6, 0xFF)], False, 1, 0),
        ("I.p", 4),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pocket 0 10", "unknown command `pocket`"),
        ("packet 0 1", "1 hexadecimal digits are not whole bytes"),
        ("packet 0 1g", "`g` is not a hexadecimal digit"),
        ("packet x 10", "`packet` needs a port number"),
        ("packet 0 1*", "`*` is not a hexadecimal digit"),
        ("add t dst:1 set(v:1)", "an entry of I.t needs a priority"),
        ("add u 1 dst:1 set(v:1)", "no table is called `u`; known: I.t, I.p"),
        ("add t 1 source:1 set(v:1)", "table I.t has no key `source`"),
        ("add t 1 dst:1 drop()", "no action in table I.t is called `drop`; known: I.set"),
        ("add t 1 dst:1 set(w:1)", "action I.set takes v"),
        ("add t 1 dst:1 set(v:256)", "v: 0x100 does not fit in 8 bits"),
        ("add t 1 dst:0x12345 set(v:1)", "dst: the value does not fit in 16 bits"),
        (
            "add t 1 dst:1/8 set(v:1)",
            "dst: this value does not fit a key that is matched by `ternary`",
        ),
        ("add t 1 extra$0.dst:0x12/17 set(v:1)", "a prefix of 17 bits is longer than the key"),
        ("add t 1 extra$0.dst:0x*234 set(v:1)", "the `*` of a prefix must stand at its end"),
        ("add t 1 dst:1 set(v:1", "expected `,` or `)`, found `end of line`"),
        ("remove two", "no entry was named `two`"),
        ("check_counter c(1) packets = 3", "expected a comparison, found `=`"),
        ("mc_node_associate 1", "`mc_node_associate` takes 2 numbers, not 1"),
        ("meter_set_rates m 0.5:3", "`meter_set_rates` takes a name, an index and RATE:BURST"),
        ("meter_array_set_rates m 1.2.3:1", "`1.2.3:1` is not a list of rates"),
        ("member ap set(v:1)", "expected `=`, found `end of line`"),
        ("member nap set(v:1) = m", "no action profile is called `nap`; known: I.ap"),
        ("group ap m = g", "no member or group was named `m`"),
        ("add_indirect p kind:1 set(v:1)", "unexpected `(`"),
        ("meter_set_rates m e 1:1 1:1", "I.m is not the direct meter of a table with an entry `e`"),
        (
            "meter_set_rates own 0 1:1 1:1",
            "I.own is not the direct meter of a table with an entry `0`",
        ),
        ("wait 3", "unexpected `3`"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(StfError) as caught:
        run("wait\n" + text)
    assert message in str(caught.value)
    assert caught.value.line == 2


def test_a_bad_line_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, script = tmp_path / "p.json", tmp_path / "t.stf"
    program.write_text(json.dumps(PROGRAM))
    script.write_text("wait\npacket 0 0\n")
    assert main([str(program), str(script)]) == 2
    message = f"{script}:2: error: 1 hexadecimal digits are not whole bytes\n"
    assert capsys.readouterr().err == message


def test_a_missing_file_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "p.p4"), str(tmp_path / "t.stf")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/p.p4: no such file\n"


def test_the_command_compiles_runs_and_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = str(Path(__file__).parent / "arithmetic_wrap.p4")
    script = tmp_path / "t.stf"
    script.write_text("packet 0 c8 64 00 00 00 00\nexpect 1 c8 64 2c $\n")
    assert main([program, str(script)]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"{script}:2: port 1, packet 1 of 1 differs"
    assert shown[-1] == f"{script}: FAILED, 1 of its checks (1 packets in, 1 expected)"
    script.write_text("packet 0 c8 64 00 00 00 00\nexpect 1 c8 64 2c 64 20 38 $\n")
    assert main([program, str(script)]) == 0
    assert capsys.readouterr().out == f"{script}: ok (1 packets in, 1 expected)\n"


def test_a_program_that_does_not_compile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, script = tmp_path / "p.p4", tmp_path / "t.stf"
    program.write_text("header h_t { bit<8> a }\n")
    script.write_text("packet 0 00\n")
    assert main([str(program), str(script)]) == 2
    assert f"error: {program} does not compile" in capsys.readouterr().err


BY_VARIABLE = """
#include <core.p4>
#include <v1model.p4>
header kind_t { bit<8> kind; }
header body_t { bit<16> x; }
struct headers { kind_t first; body_t body; }
struct metadata { }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    bit<16> kind;
    state start { kind = 300; transition take; }
    state take { p.extract(h.first); kind = (bit<16>)h.first.kind; transition choose; }
    state choose { transition select(kind) { 7: body; default: accept; } }
    state body { p.extract(h.body); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), I(), C(), D()) main;
"""


@pytest.mark.parametrize(("kind", "count"), [(7, 2), (8, 1)])
def test_fields_are_named_behind_a_variable_of_the_parser(
    tmp_path: Path, kind: int, count: int
) -> None:
    source, product = tmp_path / "by_variable.p4", tmp_path / "by_variable.json"
    source.write_text(BY_VARIABLE)
    assert compile_p4([str(source), "-o", str(product)]) == 0
    fields = dissect(Binder(json.loads(product.read_text())), bytes([kind, 1, 2]))
    assert fields == [("first.kind", 8), ("body.x", 16)][:count]

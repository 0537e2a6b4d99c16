"""Table entries of one's own: read against the program, joined with the planned ones."""

from __future__ import annotations

import copy
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.real.p4runtime import Names
from agglab.testbed.real.targets import thrift
from agglab.testbed.run.programs import user_entries
from agglab.testbed.run.programs.program import Program as Built
from agglab.testbed.run.programs.program import compile_program
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.systems.plan import CloneSession, Entries, Replica, TableEntry
from agglab.testbed.virtual.switches import CompiledProgram
from p4native.switch.program import Program

ROOT = Path(__file__).parents[5]
KINDS = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<16> b; bit<8> c; bit<48> d; }
struct H { h_t h; }
struct M {}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout H hdr, inout M m) { apply {} }
control I(inout H hdr, inout M m, inout standard_metadata_t s) {
    action go(bit<9> port, bit<48> mark) { s.egress_spec = port; hdr.h.d = mark; }
    action stop() { mark_to_drop(s); }
    table some {
        key = { hdr.h.a: lpm; hdr.h.b: ternary; hdr.h.c: range; hdr.h.d: exact; }
        actions = { go; stop; }
        default_action = stop();
    }
    table plain { key = { hdr.h.a: lpm; } actions = { go; stop; } }
    apply { some.apply(); plain.apply(); }
}
control E(inout H hdr, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
GOOD: dict[str, Any] = {
    "target": "bmv2",
    "p4info": "build/x.p4info.txtpb",
    "bmv2_json": "build/x.json",
    "table_entries": [
        {
            "table": "I.some",
            "match": {
                "hdr.h.a": ["10.1.2.3", 24],
                "hdr.h.b": [0xABCD, "0xff00"],
                "hdr.h.c": [3, "200"],
                "hdr.h.d": "02:00:00:00:00:07",
            },
            "action_name": "I.go",
            "action_params": {"port": 5, "mark": "0x010203040506"},
            "priority": 10,
        },
        {"table": "plain", "default_action": True, "action_name": "stop", "action_params": {}},
    ],
    "multicast_group_entries": [
        {"multicast_group_id": 9, "replicas": [{"egress_port": 1, "instance": 1}]},
        {"multicast_group_id": 4, "replicas": [{"egress_port": 3}, {"egress_port": 2}]},
    ],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    source = tmp_path_factory.mktemp("kinds") / "kinds.p4"
    source.write_text(KINDS)
    return compile_program(source, "agglab", {"LANES": 1, "SLOTS": 1})


@pytest.fixture(scope="module")
def program(built: Built) -> Program:
    return Program.read(built.json)


def read(program: Program, tmp_path: Path, content: Any) -> Entries:
    path = tmp_path / "run.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return user_entries.read(path, program)


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with another value at a path such as table_entries.0.priority; None deletes."""
    content: Any = copy.deepcopy(GOOD)
    *parents, last = path.split("/")
    node = content
    for name in parents:
        node = node[int(name) if isinstance(node, list) else name]
    if value is None:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value
    return content


def test_each_kind_of_value(program: Program, tmp_path: Path) -> None:
    entries = read(program, tmp_path, GOOD)
    match = {
        "hdr.h.a": (0x0A010200, 24),
        "hdr.h.b": (0xAB00, 0xFF00),
        "hdr.h.c": (3, 200),
        "hdr.h.d": 0x020000000007,
    }
    parameters = {"port": 5, "mark": 0x010203040506}
    assert entries.tables == (
        TableEntry("I.some", match, "I.go", parameters, 10),
        TableEntry("I.plain", {}, "I.stop", {}, 0, True),
    )
    assert entries.groups == {9: ((1, 1),), 4: ((3, 1), (2, 1))}


def test_what_matches_anything_is_left_out(program: Program, tmp_path: Path) -> None:
    """As P4Runtime wants it."""
    content = changed("table_entries/0/match/hdr.h.a", ["10.0.0.0", 0])
    content["table_entries"][0]["match"]["hdr.h.b"] = [7, 0]
    del content["table_entries"][0]["match"]["hdr.h.c"]
    assert read(program, tmp_path, content).tables[0].match == {"hdr.h.d": 0x020000000007}


def test_a_ternary_value_alone_means_all_its_bits(program: Program, tmp_path: Path) -> None:
    content = changed("table_entries/0/match/hdr.h.b", 9)
    assert read(program, tmp_path, content).tables[0].match["hdr.h.b"] == (9, 0xFFFF)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("table_entries", {}, "table_entries: dict is not a JSON list"),
        ("table_entrys", [], "unknown key 'table_entrys', did you mean 'table_entries'?"),
        ("table_entries/0/table", "I.sum", "table_entries[0].table: 'I.sum' does not exist"),
        ("table_entries/0/action_name", "gone", "action_name: 'gone' does not exist"),
        ("table_entries/0/prio", 1, "table_entries[0]: unknown key 'prio'"),
        ("table_entries/0/priority", 0, "table_entries[0].priority: 0 is not a valid priority"),
        ("table_entries/0/priority", True, "True is not a valid priority"),
        (
            "table_entries/1/priority",
            3,
            "allowed: no priority, because no key of I.plain needs one",
        ),
        ("table_entries/0/match/hdr.h.d", None, "match: lacks 'hdr.h.d'"),
        ("table_entries/0/match/hdr.h.e", 1, "match: unknown key 'hdr.h.e'"),
        ("table_entries/0/match/hdr.h.a", 5, "match.hdr.h.a: 5 is not a value of an lpm key"),
        ("table_entries/0/match/hdr.h.a/1", 33, "hdr.h.a[1]: 33 is not a prefix length"),
        (
            "table_entries/0/match/hdr.h.a/0",
            "10.0.0.256",
            "hdr.h.a[0]: '10.0.0.256' does not fit into the key",
        ),
        (
            "table_entries/0/match/hdr.h.b/1",
            65536,
            "hdr.h.b[1]: 65536 does not fit into the key",
        ),
        ("table_entries/0/match/hdr.h.c", [9, 8], "hdr.h.c: 8 is less than 9"),
        ("table_entries/0/match/hdr.h.d", True, "hdr.h.d: True does not fit into the key"),
        (
            "table_entries/0/action_params/port",
            512,
            "action_params.port: 512 does not fit into the key",
        ),
        ("table_entries/0/action_params/mark", None, "action_params: lacks 'mark'"),
        ("table_entries/1/default_action", "yes", "default_action: 'yes' is not a truth value"),
        ("table_entries/1/match", {"hdr.h.a": [0, 1]}, "a default action has no match keys"),
        (
            "multicast_group_entries/0/multicast_group_id",
            0,
            "multicast_group_id: 0 is out of range",
        ),
        ("multicast_group_entries/1/replicas/0/egress_port", -1, "replicas[0].egress_port: -1"),
        (
            "multicast_group_entries/0/replicas/0/instance",
            65536,
            "instance: 65536 is out of range",
        ),
        ("multicast_group_entries/1/replicas/1/egress_port", 3, "replicas[1]: port 3 with"),
        (
            "clone_session_entries",
            [{"clone_session_id": 32768}],
            "clone_session_id: 32768 is out of range",
        ),
        (
            "clone_session_entries",
            [{"clone_session_id": 1}],
            "[0].replicas: NoneType is not a JSON list",
        ),
        (
            "clone_session_entries",
            [{"clone_session_id": 1, "replicas": [], "packet_length_bytes": -1}],
            "packet_length_bytes: -1 is out of range",
        ),
    ],
)
def test_mistakes_name_file_and_path(
    program: Program, tmp_path: Path, path: str, value: Any, said: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(program, tmp_path, changed(path, value))
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"{tmp_path}/run.json: ")
    assert said in line


def test_all_mistakes_are_told_at_once(program: Program, tmp_path: Path) -> None:
    content = changed("table_entries/0/priority", 0)
    content["multicast_group_entries"][1]["multicast_group_id"] = "4"
    content["table_entries"].append({"table": "plain"})
    with pytest.raises(ScenarioError) as refused:
        read(program, tmp_path, content)
    paths = [re.sub(r"^\S+ (\S+): .*", r"\1", line) for line in str(refused.value).splitlines()]
    assert paths == [
        "table_entries[0].priority",
        "table_entries[2].action_name",
        "multicast_group_entries[1].multicast_group_id",
    ]


@pytest.mark.parametrize("content", ["{", "[]", '{"table_entries": [1]}', "[" * 100_000])
def test_files_that_are_something_else(program: Program, tmp_path: Path, content: str) -> None:
    with pytest.raises(ScenarioError):
        read(program, tmp_path, content)


def test_own_entries_take_the_place_of_planned_ones_with_the_same_key() -> None:
    planned = Entries(
        (
            TableEntry("macs", {"dst": 7}, "forward", {"port": 1}),
            TableEntry("macs", {"dst": 8}, "forward", {"port": 2}),
            TableEntry("routes", {"dst": (7, 32)}, "drop"),
        ),
        {1: (Replica(1), Replica(2)), 2: (Replica(3),)},
        {5: CloneSession((Replica(1),)), 6: CloneSession((Replica(2),))},
    )
    own = Entries((TableEntry("I.f.macs", {"hdr.e.dst": 7}, "I.f.forward", {"port": 9}),), {2: ()})
    own = replace(own, sessions={6: CloneSession((), 64)})
    both = user_entries.merged(planned, own)
    assert both.tables == (*planned.tables[1:], own.tables[0])
    assert both.groups == {1: (Replica(1), Replica(2)), 2: ()}
    assert both.sessions == {5: CloneSession((Replica(1),)), 6: CloneSession((), 64)}


def test_a_folder_has_a_file_for_each_switch_that_has_own_entries(tmp_path: Path) -> None:
    program = compile_program(ROOT / "p4/switchml.p4", "agglab", {"LANES": 4, "SLOTS": 4})
    own = {"table_entries": [{"table": "macs", "match": {"hdr.ethernet.dst": 5}}]}
    own["table_entries"][0] |= {"action_name": "forward", "action_params": {"port": 6}}
    (tmp_path / "s2-runtime.json").write_text(json.dumps(own))
    fill = user_entries.filling(str(tmp_path), dict.fromkeys(["s1", "s2"], program.json))
    planned = Entries((TableEntry("no_such_table", {}, "x"),), {})
    assert fill("s1", planned).tables == ()
    assert [entry.parameters for entry in fill("s2", planned).tables] == [{"port": 6}]
    (tmp_path / "s2-runtime.json").unlink()
    with pytest.raises(
        ScenarioError, match="has no entries for any of the switches: it has none of these files"
    ):
        user_entries.filling(str(tmp_path), dict.fromkeys(["s1", "s2"], program.json))


def test_copies_and_clones(program: Program, tmp_path: Path) -> None:
    copies = [{"egress_port": 3}, {"egress_port": 3, "instance": 9}, {"egress_port": 1}]
    session = {"clone_session_id": 7, "replicas": copies[:2], "packet_length_bytes": 60}
    content = {
        "multicast_group_entries": [{"multicast_group_id": 2, "replicas": copies}],
        "clone_session_entries": [session, {"clone_session_id": 8, "replicas": []}],
    }
    entries = read(program, tmp_path, content)
    assert entries.groups == {2: (Replica(3), Replica(3, 9), Replica(1))}
    assert entries.sessions == {
        7: CloneSession((Replica(3), Replica(3, 9)), 60),
        8: CloneSession(()),
    }


def test_bmv2_cuts_no_copies(tmp_path: Path) -> None:
    program = compile_program(ROOT / "p4/switchml.p4", "agglab", {"LANES": 4, "SLOTS": 4})
    cut = {"clone_session_id": 7, "replicas": [{"egress_port": 1}], "packet_length_bytes": 60}
    (tmp_path / "own.json").write_text(json.dumps({"clone_session_entries": [cut]}))
    user_entries.filling(str(tmp_path / "own.json"), {"s1": program.json})
    with pytest.raises(ScenarioError, match=r"7\.packet_length_bytes: BMv2 cannot cut"):
        user_entries.filling(str(tmp_path / "own.json"), {"s1": program.json}, "bmv2")


def test_the_example_of_the_docs_is_valid(tmp_path: Path) -> None:
    (example,) = re.findall(
        r"```json\n(.*?)```", (ROOT / "docs/own-systems.md").read_text(), re.DOTALL
    )
    built = compile_program(ROOT / "p4/switchml.p4", "agglab", {"LANES": 4, "SLOTS": 4})
    entries = read(Program.read(built.json), tmp_path, example)
    assert (len(entries.tables), entries.groups) == (2, {9: (Replica(1), Replica(2, 7))})
    assert entries.sessions == {5: CloneSession((Replica(3),), 128)}


def packet(a: int, b: int, c: int, d: int) -> bytes:
    return b"".join(n.to_bytes(size, "big") for n, size in ((a, 4), (b, 2), (c, 1), (d, 6)))


def test_entries_of_each_kind_match_in_virtual_time(
    built: Built, program: Program, tmp_path: Path
) -> None:
    weaker = changed("table_entries/0/priority", 9)["table_entries"][0]
    weaker["action_params"]["port"] = 7
    weaker["match"] = {"hdr.h.d": weaker["match"]["hdr.h.d"]}
    content = copy.deepcopy(GOOD)
    content["table_entries"] = [GOOD["table_entries"][0], weaker]
    compiled = CompiledProgram(built.json)
    with compiled.pipeline(0) as pipeline:
        for entry in read(program, tmp_path, content).tables:
            compiled.add(pipeline, entry)
        hit = packet(0x0A0102FF, 0xAB99, 200, 0x020000000007)
        misses = [(0x0A010300, 0xAB99, 200), (0x0A0102FF, 0xAC99, 3), (0x0A0102FF, 0xAB00, 201)]
        others = [packet(*fields, 0x020000000007) for fields in misses]
        assert [port for port, _ in pipeline.process(0, hit, 0)] == [5]
        for other in others:
            assert [port for port, _ in pipeline.process(0, other, 0)] == [7]
        assert pipeline.process(0, packet(0x0A0102FF, 0xAB99, 200, 8), 0) == []


def test_entries_of_each_kind_in_p4runtime(built: Built, program: Program, tmp_path: Path) -> None:
    entries = read(program, tmp_path, GOOD)
    names = Names.read(built.p4info)
    some, plain = (names.table_entry(entry) for entry in entries.tables)
    assert (some.priority, some.is_default_action) == (10, False)
    lpm, ternary, between, exact = sorted(some.match, key=lambda match: match.field_id)
    assert (lpm.lpm.value, lpm.lpm.prefix_len) == (b"\x0a\x01\x02\x00", 24)
    assert (ternary.ternary.value, ternary.ternary.mask) == (b"\xab\x00", b"\xff\x00")
    assert (between.range.low, between.range.high) == (b"\x03", b"\xc8")
    assert exact.exact.value == b"\x02\x00\x00\x00\x00\x07"
    assert (plain.is_default_action, len(plain.match), plain.priority) == (True, 0, 0)


def test_entries_of_each_kind_as_words_for_thrift(
    built: Built, program: Program, tmp_path: Path
) -> None:
    content = changed("table_entries/0/match/hdr.h.c", None)
    some, plain = read(program, tmp_path, content).tables
    names = thrift.ProgramNames(json.loads(built.json.read_text()))
    words = names.entry(some)
    assert words == (
        *("I.some", "0xa010200/24 0xab00&&&0xff00 0x0->0xff 0x20000000007"),
        *("I.go", "0x5 0x10203040506"),
    )
    assert names.entry(plain) == ("I.plain", "", "I.stop", "")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_entries_come_from_regular_files_only(kind: str, tmp_path: Path, program: Program) -> None:
    """A pipe that nobody writes to, or /dev/zero, would be read without end."""
    path = Path("/dev/zero")
    if kind == "pipe":
        path = tmp_path / "run.json"
        os.mkfifo(path)
    with pytest.raises(ScenarioError, match=f"{path}: cannot be read: is not a regular file"):
        user_entries.read(path, program)


def test_a_run_reads_its_own_entries_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was checked is what switches get, whatever becomes of the file meanwhile."""
    reads: list[Path] = []

    def counted(path: Path, program: Program) -> Entries:
        reads.append(path)
        return read_entries(path, program)

    read_entries = user_entries.read
    monkeypatch.setattr(user_entries, "read", counted)
    own = {"table_entries": []}
    (tmp_path / "own.json").write_text(json.dumps(own))
    scenario = tmp_path / "own.yaml"
    scenario.write_text(
        "backend: virtual\ntopology: {workers: 2}\nswitch: {entries: own.json}\n"
        "workload: {elements: 100, rounds: 1}\n"
    )
    assert run(load(scenario), tmp_path / "results", (), io.StringIO()) == 0
    assert reads == [tmp_path / "own.json"]

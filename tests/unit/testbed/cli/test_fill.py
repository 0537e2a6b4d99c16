"""`agglab fill`: what it writes, and what it says of files that are wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.cli import main
from agglab.testbed.real import p4runtime
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.systems.plan import Entries, TableEntry

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<128> wide; bit<16> port; bit<8> kind; }
struct H { h_t h; }
struct M { bit<32> id; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout H hdr, inout M m) { apply {} }
control I(inout H hdr, inout M m, inout standard_metadata_t s) {
    action go(bit<9> port) { s.egress_spec = port; }
    action tag(bit<32> id) { m.id = id; }
    table routes { key = { hdr.h.wide: exact; hdr.h.kind: optional; } actions = { go; } }
    table tags { actions = { tag; NoAction; } default_action = NoAction(); }
    table fixed { actions = { tag; } const default_action = tag(7); }
    apply { routes.apply(); tags.apply(); fixed.apply(); hdr.h.kind = 3; }
}
control E(inout H hdr, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
RUNTIME: dict[str, Any] = {
    "__comment": "for people",
    "target": "bmv2",
    "p4info": "build/p.txtpb",
    "bmv2_json": "build/p.json",
    "table_entries": [
        {"table": "I.tags", "default_action": True, "action_name": "I.tag"}
        | {"action_params": {"id": -1, "#": "of all bits"}},
        {"table": "I.routes", "match": {"hdr.h.wide": ["fe80::1"], "hdr.h.kind": [3]}}
        | {"action_name": "I.go", "action_params": {"port": [5]}, "priority": 1},
    ],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Program:
    source = tmp_path_factory.mktemp("fill") / "p.p4"
    source.write_text(SOURCE)
    return compile_program(source, "agglab", {"LANES": 1, "SLOTS": 1})


@pytest.fixture
def folder(built: Program, tmp_path: Path) -> Path:
    """A folder with the compiled program in build/, as the tutorials have it."""
    (tmp_path / "build").mkdir()
    shutil.copy(built.json, tmp_path / "build/p.json")
    shutil.copy(built.p4info, tmp_path / "build/p.txtpb")
    return tmp_path


class Recorder(p4runtime.P4RuntimeClient):
    """A client that keeps what it is told to write, as protobufs too."""

    written: list[Entries]

    def answers(self, within_s: float) -> bool:
        return True

    def become_primary(self) -> None:
        pass

    def set_pipeline(self, program_json: bytes) -> None:
        assert json.loads(program_json)["pipelines"]

    def insert(self, entries: Entries) -> None:
        for entry in entries.tables:
            self._names.table_entry(entry)
        Recorder.written.append(entries)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Entries]:
    Recorder.written = []
    monkeypatch.setattr(p4runtime, "P4RuntimeClient", Recorder)
    return Recorder.written


def fill(runtime: Path, content: Any) -> int:
    runtime.write_text(content if isinstance(content, str) else json.dumps(content))
    return main.main(["fill", "127.0.0.1:1", "0", str(runtime)])


@pytest.mark.parametrize("place", ["r.json", "topology/r.json"])
def test_a_tutorial_file_is_read_whole(
    folder: Path, written: list[Entries], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """In a subfolder, the paths in it start from the current folder."""
    monkeypatch.chdir(folder)
    (folder / "topology").mkdir()
    assert fill(folder / place, RUNTIME) == 0
    route = {"hdr.h.wide": 0xFE80 << 112 | 1, "hdr.h.kind": (3, 0xFF)}
    assert written[0].tables == (
        TableEntry("I.tags", {}, "I.tag", {"id": 0xFFFFFFFF}, 0, True),
        TableEntry("I.routes", route, "I.go", {"port": 5}, 1),
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bmv2_json": None}, "bmv2_json: None is not a path; allowed: the path of a file"),
        ({"p4info": 7}, "p4info: 7 is not a path; allowed: the path of a file"),
        ({"p4info": ""}, "p4info: '' is not a path; allowed: the path of a file"),
        (
            {"bmv2_json": "x.json"},
            "bmv2_json: there is no file {folder}/x.json or x.json; compile the program first",
        ),
        ({"table_entries": 3}, "table_entries: int is not a JSON list; allowed: [...]"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it_once(
    folder: Path, written: list[Entries], capsys: Any, changes: dict[str, Any], said: str
) -> None:
    assert fill(folder / "r.json", RUNTIME | changes) == 2
    assert capsys.readouterr().err == f"{folder}/r.json: {said.format(folder=folder)}\n"
    assert not written


@pytest.mark.parametrize(
    ("key", "file", "content", "said"),
    [
        ("bmv2_json", "bad.json", "{", "bad.json: "),
        ("bmv2_json", "bad.json", "[]", "bad.json: "),
        ("p4info", "bad.txtpb", "nonsense {", "bad.txtpb: neither text nor binary P4Info"),
        ("p4info", "bad.txtpb", "", "bad.txtpb: table I.tags does not exist"),
    ],
)
def test_a_wrong_program_is_named_once(
    folder: Path, written: list[Entries], capsys: Any, key: str, file: str, content: str, said: str
) -> None:
    (folder / file).write_text(content)
    assert fill(folder / "r.json", RUNTIME | {key: file}) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{folder}/{said}") and line.count(str(folder)) == 1
    assert not written


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"table": "tags", "action_name": "tag"}, ": I.tags has no key, so it takes a default"),
        (
            {"table": "fixed", "default_action": True, "action_name": "tag"},
            ".default_action: the program makes the default action of I.fixed constant",
        ),
        ({"table": "xyz"}, ".table: 'xyz' does not exist; allowed: I.routes, I.tags, I.fixed"),
        (
            {"table": "routes", "match": {"hdr.h.wide": 1, "hdr.h.kind": [1, 2, 3]}}
            | {"action_name": "go"},
            ".match.hdr.h.kind: [1, 2, 3] is not a value of a ternary or optional key",
        ),
    ],
)
def test_a_wrong_entry_is_named(
    folder: Path, written: list[Entries], capsys: Any, entry: dict[str, Any], said: str
) -> None:
    assert fill(folder / "r.json", RUNTIME | {"table_entries": [entry]}) == 2
    assert f"r.json: table_entries[0]{said}" in capsys.readouterr().err
    assert not written


@pytest.mark.parametrize("number", ["-1", "", "one", str(2**64)])
def test_what_is_no_device_id_is_a_wrong_command_line(folder: Path, number: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["fill", "127.0.0.1:1", "--", number, str(folder / "r.json")])
    assert ended.value.code == 2
    assert f"{number!r} is not a whole number from 0 to 2^64 - 1" in capsys.readouterr().err

"""Compiling through the cache: what makes it compile again, and what it leaves when it fails."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.real import MachineLacks
from agglab.testbed.run.programs import program
from agglab.testbed.run.programs.program import (
    Program,
    check_fits,
    check_registers,
    compile_program,
)
from agglab.testbed.systems.plan import Entries, TableEntry

FAKE_COMPILER = """
import sys, pathlib
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
text = pathlib.Path(next(w for w in words if w.endswith(".p4"))).read_text()
if "bad" in text:
    print("x.p4:1:1: error: bad", file=sys.stderr)
    sys.exit(1)
pathlib.Path(words[words.index("-o") + 1]).write_text("json of " + text)
pathlib.Path(words[words.index("--p4runtime-files") + 1]).write_text("p4info")
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A compiler that notes how it was called; returns those notes."""
    log = tmp_path / "calls"
    log.write_text("")
    script = tmp_path / "fake_compiler.py"
    script.write_text(FAKE_COMPILER.format(log=str(log)))
    monkeypatch.setattr(program, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(program, "compiler_command", lambda name: [sys.executable, str(script)])
    return lambda: log.read_text().splitlines()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/part.p4").write_text("part")
    (tmp_path / "src/deep.p4").write_text('# include "part.p4"')
    path = tmp_path / "src/x.p4"
    path.write_text('#include <core.p4>\n#include "deep.p4"\nmain')
    return path


def test_the_same_text_is_compiled_once(source: Path, calls) -> None:
    first = compile_program(source, "agglab", {"LANES": 256, "SLOTS": 128})
    assert compile_program(source, "agglab", {"LANES": 256, "SLOTS": 128}) == first
    assert len(calls()) == 1
    assert "-DLANES=256 -DSLOTS=128" in calls()[0]
    assert first.json.read_text().startswith("json of")
    assert first.p4info.read_text() == "p4info"


def test_whatever_it_depends_on_compiles_it_again(source: Path, calls) -> None:
    products = {compile_program(source, "agglab", {"LANES": 256, "SLOTS": 128}).json}
    products.add(compile_program(source, "agglab", {"LANES": 255, "SLOTS": 128}).json)
    products.add(compile_program(source, "agglab", {"LANES": 256, "SLOTS": 127}).json)
    products.add(compile_program(source, "p4c", {"LANES": 256, "SLOTS": 128}).json)
    (source.parent / "part.p4").write_text("other part")
    products.add(compile_program(source, "agglab", {"LANES": 256, "SLOTS": 128}).json)
    source.write_text(source.read_text() + " more")
    products.add(compile_program(source, "agglab", {"LANES": 256, "SLOTS": 128}).json)
    assert len(products) == len(calls()) == 6


def test_a_failure_shows_the_compilers_words_and_leaves_nothing(source: Path, calls) -> None:
    source.write_text("bad")
    with pytest.raises(CompileError, match=r"^x\.p4:1:1: error: bad$"):
        compile_program(source, "agglab", {"LANES": 256, "SLOTS": 128})
    assert list((source.parent.parent / "cache").iterdir()) == []


def test_a_missing_p4c_is_named(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MachineLacks, match="p4c-bm2-ss, which switch"):
        compile_program(source, "p4c", {"LANES": 256, "SLOTS": 128})


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(program, "IS_CHECKOUT", False)
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(MachineLacks, match=r"compiled programs .*Not a directory.*P4NATIVE_CACHE"):
        program.compile_program(
            program.P4_FOLDER / "switchml.p4", "agglab", {"LANES": 8, "SLOTS": 8}
        )


PLANNED = TableEntry("macs", {"dst": 1}, "forward", {"port": 2})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, None),
        (
            {"name": "c.other"},
            "it has no table macs, only c.other; fill a program's own tables with",
        ),
        (
            {"keys": ["hdr.e.src"]},
            "Agglab fills a table of this name, c.macs, in every switch with dst",
        ),
        (
            {"keys": ["hdr.e.src"]},
            "in every switch with dst -> forward(port), but its keys are hdr.e.src: ",
        ),
        ({"keys": ["hdr.e.dst", "meta.vlan"]}, "but its keys are hdr.e.dst, meta.vlan: change"),
        ({"action": "c.send"}, "but it has no action forward, only c.send: change this"),
        ({"params": ["port", "mac"]}, "but its action forward takes (mac, port): change"),
        (
            {"params": [], "keys": ["hdr.e.src"]},
            "its keys are hdr.e.src and its action forward takes (): change this, or rename the "
            "table (docs/own-systems.md)",
        ),
    ],
)
def test_a_table_with_a_planned_name_is_told_what_differs(tmp_path: Path, table, said) -> None:
    keys = [{"name": k, "match_type": "exact"} for k in table.get("keys", ["hdr.e.dst"])]
    action = table.get("action", "c.forward")
    parameters = [{"name": name} for name in table.get("params", ["port"])]
    program = {
        "pipelines": [
            {"tables": [{"name": table.get("name", "c.macs"), "key": keys, "actions": [action]}]}
        ],
        "actions": [{"name": action, "runtime_data": parameters}],
    }
    file = tmp_path / "p.json"
    file.write_text(json.dumps(program))
    compiled = Program(tmp_path / "p.p4", file, file, "", "")
    if said is None:
        check_fits(compiled, Entries((PLANNED,), {}))
        return
    with pytest.raises(CompileError) as caught:
        check_fits(compiled, Entries((PLANNED,), {}))
    assert said in str(caught.value)
    assert ("switch.entries" in str(caught.value)) == ("has no table" in said)


def test_tables_that_a_foreign_program_lacks_are_named_once(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"pipelines": [{"tables": []}], "actions": []}))
    others = tuple(replace(PLANNED, table=name) for name in ("macs", "routes", "members"))
    with pytest.raises(CompileError) as caught:
        check_fits(Program(tmp_path / "p.p4", file, file, "", ""), Entries(others, {}))
    (line,) = str(caught.value).splitlines()
    assert "it has no table macs, routes, members, and no table with a key at all; fill" in line


def test_registers_that_are_too_small_are_refused_with_their_line(tmp_path: Path) -> None:
    def array(name: str, size: int, line: int) -> dict[str, object]:
        info = {"filename": "own.p4", "line": line}
        return {"name": name, "size": size, "source_info": info}

    arrays = [array("c.tags", 4, 9), array("c.bits", 4, 10), array("c.more", 1, 11)]
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"register_arrays": arrays}))
    program = Program(tmp_path / "own.p4", file, file, "", "")
    check_registers(program, {"tags": 4, "bits": 4})
    with pytest.raises(CompileError) as caught:
        check_registers(program, {"tags": 32, "bits": 32, "more": 8, "gone": 9})
    assert str(caught.value).splitlines() == [
        "own.p4:9: registers c.tags, c.bits: 4 cells each, but the slots of this scenario use "
        "indices up to 31: declare at least 32 cells, or reduce switch.slots",
        "own.p4:11: register c.more: 1 cell, but the slots of this scenario use indices up to 7: "
        "declare at least 8 cells, or reduce switch.slots",
    ]


def test_the_same_program_elsewhere_has_the_same_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its JSON names the files of which it was made, and these have other folders."""
    monkeypatch.setattr(program, "CACHE", tmp_path / "cache")
    programs = []
    for name in ("here", "there"):
        folder = tmp_path / name
        shutil.copytree(REPOSITORY / "p4", folder)
        monkeypatch.setattr(program, "INCLUDES", folder)
        source = folder / "forwarding.p4"
        programs.append(compile_program(source, "agglab", {}))
    one, other = programs
    assert one.json.read_bytes() != other.json.read_bytes()
    assert (one.source_sha256, one.json_sha256) == (other.source_sha256, other.json_sha256)
    source.write_text(source.read_text() + "\n// another\n")
    assert compile_program(source, "agglab", {}).source_sha256 != one.source_sha256

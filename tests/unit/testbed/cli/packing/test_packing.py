"""Packs: the same runs come out again and agree, a changed number does not, and a stranger's pack
writes and runs nothing that it may not."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.cli import main
from agglab.testbed.cli.packing import archive
from agglab.testbed.cli.packing.agreement import real_differences, virtual_differences
from agglab.testbed.cli.packing.archive import BadPack, extract
from agglab.testbed.cli.packing.named_files import KEYS, code_in, strays
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.scenario.files import _paths
from agglab.testbed.schema.document import parse

TEXT = """
name: packed
backend: virtual
topology: {kind: rack, workers: 2}
links: {rate: 10mbit, loss: 1%}
switch: {lanes: 16, slots: 8}
workload: {elements: 200, rounds: 2, dtype: int32}
"""
MORE = "sweep: {workload.elements: [100, 200]}\ncompare: {switchml: {}, ring: {system: ring}}\n"
WORKER = """
import beside
from agglab.hosts import AllReducer

class Mine(AllReducer):
    @staticmethod
    def combine(inputs):
        return beside.combine(inputs)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs")
    for name, more in (("run", ""), ("several", MORE)):
        (folder / "s.yaml").write_text(TEXT + more)
        run(load(folder / "s.yaml"), folder / name, [], io.StringIO())
    return folder


def first(made: Path, kind: str = "run") -> Path:
    return (made / kind / "packed/latest").resolve()


def packed(folder: Path, out: Path, *more: str) -> Path:
    assert main.main(["pack", str(folder), "--out", str(out), *more]) == 0
    return out


def repeated(pack: Path, tmp_path: Path, *more: str) -> int:
    return main.main(["repeat", str(pack), "--results", str(tmp_path / "again"), *more])


@pytest.mark.parametrize("verdict", ["starved", "network-bound"])
def test_a_run_of_a_machine_that_was_too_slow_is_packed_with_a_remark(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: str
) -> None:
    folder = Path(shutil.copytree(first(made), tmp_path / "run"))
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["fidelity"]["verdict"] = verdict
    (folder / "metrics.json").write_text(json.dumps(metrics))
    packed(folder, tmp_path / "p.zip")
    printed = "".join(capsys.readouterr())
    assert ("the machine was too slow (starved)" in printed) == (verdict == "starved")


@pytest.mark.parametrize("kind", ["run", "several"])
def test_a_virtual_run_agrees_byte_for_byte(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    pack = packed(first(made, kind), tmp_path / "p.zip")
    assert repeated(pack, tmp_path) == 0
    out = capsys.readouterr().out
    assert "AGREES  packed/" in out and "byte for byte" in out


def test_several_runs_in_one_pack(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.zip"
    both = [str(first(made)), str(first(made, "several"))]
    assert main.main(["pack", *both, "--out", str(out)]) == 0
    assert repeated(out, tmp_path) == 0
    assert capsys.readouterr().out.count("\nAGREES") == 2


def test_the_same_folders_give_the_same_bytes(made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    packs = [packed(first(made), tmp_path / name / "p.zip") for name in ("a", "b")]
    assert packs[0].read_bytes() == packs[1].read_bytes()


def test_a_file_that_only_one_result_has_is_a_difference(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/metrics.json").write_text("{}")
    for one, other in (("a", "b"), ("b", "a")):
        found = list(virtual_differences(tmp_path / one, tmp_path / other))
        assert found == ["metrics.json: is in only one of the two results"]


@pytest.mark.parametrize("file", ["metrics.json", "events.jsonl", "drops.json"])
def test_one_changed_number_does_not_agree(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    folder = Path(shutil.copytree(first(made), tmp_path / "run"))
    text = (folder / file).read_text()
    at = next(i for i, letter in enumerate(text) if letter.isdigit() and i > len(text) // 2)
    (folder / file).write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    assert repeated(packed(folder, tmp_path / "p.zip"), tmp_path) == 1
    out = capsys.readouterr().out
    assert f"  {file}: differs from line" in out and "DOES NOT AGREE" in out


def test_other_code_is_said(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = packed(first(made), tmp_path / "p.zip")
    monkeypatch.setattr("agglab.testbed.cli.packing.repeat.code_sha256", lambda: "another")
    repeated(pack, tmp_path)
    assert "not the one that produced the results: git checkout " in capsys.readouterr().out


def test_what_a_scenario_names_is_packed_and_run_only_if_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.py").write_text(WORKER)
    (own / "beside.py").write_text("def combine(inputs):\n    return sum(inputs)\n")
    (own / "s.yaml").write_text(TEXT.replace("{elements", "{worker: 'mine:Mine', elements"))
    run(load(own / "s.yaml"), tmp_path / "r", [], io.StringIO())
    pack = packed((tmp_path / "r/packed/latest").resolve(), tmp_path / "p.zip")
    with zipfile.ZipFile(pack) as content:
        assert {"runs/0/own/0/mine.py", "runs/0/own/0/beside.py"} <= set(content.namelist())
        assert str(own) not in content.read("runs/0/scenario.yaml").decode()
    shutil.rmtree(own)
    capsys.readouterr()
    assert repeated(pack, tmp_path) == 2
    err = capsys.readouterr().err
    assert "--trust-code" in err and "mine.py:Mine" in err and err.count("\n") == 1
    assert not (tmp_path / "again").exists()
    assert repeated(pack, tmp_path, "--trust-code") == 0


def test_keys_that_may_name_files_are_those_of_scenarios() -> None:
    assert {words[-1] for words, _ in _paths(())} == set(KEYS)


@pytest.mark.parametrize(
    "text",
    [
        "system: own/0/x.py:X",
        "compare: {a: {system: own/0/x.py:X}}",
        "sweep: {system: [ring, own/0/x.py:X]}",
        "jobs: [{workload: {worker: 'mine:X'}}]",
        "sweep: {workload.worker: ['os:system']}",
        "system: nothing-we-know",
        "system: ring\nsystem: /x.py:X",
    ],
)
def test_code_is_found_wherever_it_stands(text: str) -> None:
    assert len(code_in(parse(text, "t"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "switch: {program: /etc/passwd}",
        "switch: {entries: own/../../x}",
        "topology: {file: ../g.yaml}",
        "sweep: {switch.program: [switchml, ./x.p4]}",
    ],
)
def test_files_elsewhere_are_found(text: str) -> None:
    assert len(strays(parse(text, "t"))) == 1


def test_what_is_neither_is_left_alone() -> None:
    root = parse(
        "links: {rate: 1 mbit/s}\nfaults: [{worker: h1}]\nswitch: {program: own/0/x.p4}", "t"
    )
    assert code_in(root) == [] and strays(root) == []


def test_a_scenario_that_names_a_file_elsewhere_is_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = packed(first(made), tmp_path / "p.zip")
    bad = changed(pack, tmp_path, "runs/0/scenario.yaml", b"switch: {program: /etc/passwd}\n")
    assert repeated(bad, tmp_path) == 2
    assert "which is not in the pack" in capsys.readouterr().err


def changed(pack: Path, tmp_path: Path, name: str, content: bytes) -> Path:
    """The pack with other content of one file, and its right size and hash."""
    with zipfile.ZipFile(pack) as source:
        files = {n: source.read(n) for n in source.namelist() if n != archive.LISTING}
        listing = json.loads(source.read(archive.LISTING))
    out = io.BytesIO()
    kept = {key: listing[key] for key in ("runs", "commit")}
    archive.write(out, kept, files | {name: content})
    (tmp_path / "bad.zip").write_bytes(out.getvalue())
    return tmp_path / "bad.zip"


Build = Callable[[zipfile.ZipFile], None]


def listing(files: dict[str, Any], **more: Any) -> str:
    return json.dumps({"pack_version": 1, "runs": [], "files": files, **more})


def described(content: bytes, **more: Any) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **more}


def member(name: str, content: bytes = b"x", listed: str | None = None) -> Build:
    def build(out: zipfile.ZipFile) -> None:
        out.writestr(archive.LISTING, listing({listed or name: described(content)}))
        out.writestr(name, content)

    return build


def with_listing(text: str) -> Build:
    return lambda out: out.writestr(archive.LISTING, text)


def with_files(files: dict[str, Any], *names: str) -> Build:
    def build(out: zipfile.ZipFile) -> None:
        out.writestr(archive.LISTING, listing(files))
        for name in names:
            out.writestr(name, b"x" * 100_000)

    return build


ATTACKS: dict[str, tuple[Build, str]] = {
    "up": (member("../evil"), "cannot be the name of a file"),
    "deep up": (member("runs/../../evil"), "cannot be the name of a file"),
    "absolute": (member("/tmp/evil"), "cannot be the name of a file"),
    "hidden": (member(".bashrc"), "cannot be the name of a file"),
    "backslash": (member("..\\evil"), "cannot be the name of a file"),
    "long": (member("a" * 300), "cannot be the name of a file"),
    "unlisted": (with_files({}, "evil"), "does not list"),
    "absent": (with_files({"evil": described(b"x")}), "does not contain"),
    "another": (with_files({"evil": described(b"y" * 100_000)}, "evil"), "has other content than"),
    "bomb": (with_files({"evil": described(b"x")}, "evil"), "has other content than"),
    "negative": (with_files({"evil": described(b"", bytes=-1)}, "evil"), "has no size"),
    "large": (with_files({"evil": described(b"", bytes=2**40)}, "evil"), "has no size"),
    "true": (with_files({"evil": described(b"", bytes=True)}, "evil"), "has no size"),
    "too much": (
        with_files({n: described(b"", bytes=2**28) for n in "abcde"}, *"abcde"),
        "the limit is",
    ),
    "file and folder": (
        with_files({n: described(b"x" * 100_000) for n in ("a", "a/b")}, "a", "a/b"),
        "damaged",
    ),
    "no listing": (lambda out: out.writestr("x", b""), "it has no pack.json"),
    "no JSON": (with_listing("{"), "is not JSON"),
    "deep": (with_listing("[" * 100_000), "is not JSON"),
    "version": (with_listing('{"pack_version": 2}'), "not of version"),
    "list": (with_listing("[]"), "not of version"),
    "no files": (with_listing('{"pack_version": 1}'), "lists no files"),
}


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_a_dishonest_pack_is_refused(tmp_path: Path, attack: str) -> None:
    build, said = ATTACKS[attack]
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as out:
        build(out)
    folder = tmp_path / "into" / "here"
    folder.mkdir(parents=True)
    with pytest.raises(BadPack, match=said):
        extract(tmp_path / "p.zip", folder)
    assert [p for p in tmp_path.rglob("*evil*") if p.parent != folder] == []
    written = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    assert written <= (0 if attack == "bomb" else 200_000)


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as out:
        out.writestr(archive.LISTING, listing({"a": described(b"x")}))
        out.writestr("a", b"x")
        with pytest.warns(UserWarning, match="Duplicate"):
            out.writestr("a", b"y")
    with pytest.raises(BadPack, match="twice"):
        extract(tmp_path / "p.zip", tmp_path)


def test_a_link_in_a_pack_becomes_a_plain_file(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as out:
        out.writestr(archive.LISTING, listing({"link": described(b"/etc/passwd")}))
        out.writestr(link, b"/etc/passwd")
    (tmp_path / "in").mkdir()
    extract(tmp_path / "p.zip", tmp_path / "in")
    assert not (tmp_path / "in/link").is_symlink()


@pytest.mark.parametrize("at", [0, 40, 300, -10])
def test_a_damaged_pack_is_one_line(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], at: int
) -> None:
    pack = packed(first(made), tmp_path / "p.zip")
    content = bytearray(pack.read_bytes())
    content[at] ^= 0xFF
    pack.write_bytes(content)
    capsys.readouterr()
    code = repeated(pack, tmp_path)
    err = capsys.readouterr().err
    assert code == 2 and err.count("\n") == 1 and "p.zip: " in err


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], "no list of runs"),
        ([3], "description of a run is malformed"),
        ([{"folder": "../x", "within": 0.1}], "has no folder"),
        ([{"folder": "runs/0", "within": 99}], "how much times may differ"),
        ([{"folder": "runs/0", "within": True}], "how much times may differ"),
        ([{"folder": "runs/7", "within": 0.1}], "has no scenario.yaml"),
    ],
)
def test_what_a_pack_says_of_its_runs_is_checked(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: list[Any], said: str
) -> None:
    out = io.BytesIO()
    archive.write(out, {"runs": runs}, {"runs/0/scenario.yaml": b"", "runs/0/metrics.json": b""})
    (tmp_path / "p.zip").write_bytes(out.getvalue())
    assert repeated(tmp_path / "p.zip", tmp_path) == 2
    assert said in capsys.readouterr().err


def test_what_cannot_be_packed_is_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["pack", str(tmp_path)]) == 2
    assert "not the folder of a run" in capsys.readouterr().err
    folder = Path(shutil.copytree(first(made), tmp_path / "run"))
    (folder / "metrics.json").write_text('{"ok": false, "reason": "the run did not finish"}')
    assert main.main(["pack", str(folder), "--out", str(tmp_path / "p.zip")]) == 2
    assert "did not finish" in capsys.readouterr().err and not (tmp_path / "p.zip").exists()


def slower(factor: float) -> Callable[[dict[str, Any]], None]:
    def change(metrics: dict[str, Any]) -> None:
        times = metrics["jobs"]["job1"]["allreduce"]["time_s"]["all"]
        times[:] = [factor * time_s for time_s in times]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (slower(1.05), None),
        (slower(0.95), None),
        (slower(1.2), "a round takes 1.2 times as long, and the limit of the difference is 10%"),
        (slower(0.5), "a round takes 0.5 times as long"),
        (lambda m: m.update(exact=False), "exact was True in the pack and is False here"),
        (lambda m: m["fidelity"].update(verdict="starved"), "too slow (starved)"),
        (lambda m: m["fidelity"].update(verdict="waiting"), None),
        (lambda m: m["jobs"]["job1"]["allreduce"]["time_s"].update(all=[]), "not as long"),
    ],
)
def test_real_runs_agree_within_what_is_stated(
    made: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], said: str | None
) -> None:
    folder = Path(shutil.copytree(first(made), tmp_path / "run"))
    metrics = json.loads((folder / "metrics.json").read_text())
    change(metrics)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    found = list(real_differences(first(made), folder, 0.1))
    assert (found == []) if said is None else any(said in text for text in found)

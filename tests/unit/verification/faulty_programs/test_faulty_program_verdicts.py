"""The faulty programs: each change fits its file, and in virtual time each program fails."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from agglab.testbed import systems
from agglab.testbed.base.paths import P4_FOLDER
from agglab.verification.faulty_programs import command
from agglab.verification.faulty_programs.catalogue import KINDS, Change, FaultyProgram, read
from agglab.verification.faulty_programs.trials import NotRun, verdicts

PROGRAMS = {program.id: program for program in read()}


def test_every_system_with_a_program_has_faulty_ones() -> None:
    own = {name for name in systems.built_in() if (P4_FOLDER / f"{name}.p4").is_file()}
    for kind in ("asked", "late"):
        assert {p.system for p in PROGRAMS.values() if p.kind == kind} == own
    assert {p.kind for p in PROGRAMS.values()} == set(KINDS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_changes_fit(tmp_path: Path, name: str) -> None:
    shutil.copytree(P4_FOLDER, tmp_path / "p4")
    PROGRAMS[name].write(tmp_path / "p4")
    changed = [
        path.name
        for path in P4_FOLDER.rglob("*.p4")
        if path.read_bytes() != (tmp_path / "p4" / path.relative_to(P4_FOLDER)).read_bytes()
    ]
    assert bool(changed) == bool(PROGRAMS[name].kind)


def test_a_change_that_does_not_fit_is_named(tmp_path: Path) -> None:
    shutil.copytree(P4_FOLDER, tmp_path / "p4")
    change = Change("switchml.p4", "no such text", "x")
    program = FaultyProgram("mine", "switchml", "late", {}, "nothing", (change,))
    with pytest.raises(ValueError, match=r"mine: switchml\.p4 does not hold 'no such text' once"):
        program.write(tmp_path / "p4")


VIRTUAL = ("backend=virtual",)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("switchml-brief", "passed"),
        ("switchml-asked-brief", "failed"),
        ("mlfabric-rack", "passed"),
        ("mlfabric-late-cell", "failed"),
    ],
)
def test_verdicts_are_counted(name: str, verdict: str) -> None:
    assert verdicts(PROGRAMS[name], 2, 2, VIRTUAL) == Counter({verdict: 2})


def test_a_scenario_that_does_not_run_says_why() -> None:
    with pytest.raises(NotRun, match="unknown key"):
        verdicts(PROGRAMS["switchml-brief"], 1, 1, ("nonsense=1",))


@pytest.mark.parametrize(("counted", "code"), [("failed", 0), ("undecided", 0), ("passed", 1)])
def test_one_that_passed_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], counted: str, code: int
) -> None:
    monkeypatch.setattr(command, "verdicts", lambda *_: Counter({counted: 3}))
    assert command.main(["--only", "switchml-asked-brief", "--runs", "3"]) == code
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split()[:2] == ["switchml-asked-brief", "asked"] and line.count("3") == 1


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "nothing"]) == 2
    assert "--list shows all" in capsys.readouterr().err

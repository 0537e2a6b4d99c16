"""The command `labs`: the list, hints one by one, skeletons, and the bundle for students."""

from __future__ import annotations

import shutil
from pathlib import Path

import needs
import pytest
from submissions import DOUBLE, LABS

from agglab.testbed.cli.main import main
from agglab.verification.grading import course, labs_command


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny exercises take the place of the course."""
    for module in (course, labs_command):
        monkeypatch.setattr(module, "LAB_FOLDER", LABS)


@needs.mark("network namespaces")
def test_the_list_says_what_is_done(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["labs"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 5 and not any(line.startswith("done") for line in lines)
    assert main(["grade", "03-python", str(DOUBLE / "solution.py")]) == 0
    capfd.readouterr()
    assert main(["labs"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("done")] == [
        "done  03-python   A function returns a value."
    ]


def test_hints_open_one_by_one(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["labs", "hint", "1"]) == 0
    assert "0 of 2 hints are open" in capfd.readouterr().out
    for count in (1, 2, 2):
        assert main(["labs", "hint", "1", "--next"]) == 0
        out = capfd.readouterr().out
        assert out.count("Hint ") == count
    assert "Hint 2 of 2\nWrite the port." in out and "--next" not in out


def test_a_skeleton_is_copied_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["labs", "start", "1", str(tmp_path / "work")]) == 0
    copy = tmp_path / "work/echo.p4"
    assert copy.read_bytes() == (LABS / "01-echo/skeleton.p4").read_bytes()
    copy.write_text("mine")
    assert main(["labs", "start", "1", str(tmp_path / "work")]) == 2
    assert copy.read_text() == "mine"
    assert "exists already" in capfd.readouterr().err


def test_students_get_no_solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = shutil.copytree(LABS, tmp_path / "labs", ignore=shutil.ignore_patterns("__pycache__"))
    for module in (course, labs_command):
        monkeypatch.setattr(module, "LAB_FOLDER", source)
    for name in ("teacher.md", "01-echo/echo.p4", "01-echo/teacher-notes.md"):
        (source / name).write_text("for teachers")
    assert main(["labs", "export", str(tmp_path / "students")]) == 0
    assert main(["labs", "export", str(tmp_path / "teacher"), "--teacher"]) == 0
    given, all_of_it = (
        {str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*.*")}
        for name in ("students", "teacher")
    )
    assert all_of_it - given == {
        str(path.relative_to(source))
        for path in source.rglob("*.*")
        if path.name.startswith(("solution", "wrong", "teacher")) or path.name == "echo.p4"
    }
    assert (
        "01-echo/skeleton.p4" in given
        and "system/forwarding.py" in given
        and "01-echo/echo.p4" in all_of_it
    )
    assert main(["labs", "export", str(tmp_path / "students")]) == 2


def test_an_unknown_exercise_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "03-pyton", "x.py"]) == 2
    assert "did you mean '03-python'?" in capfd.readouterr().err

"""Submissions for a tiny exercise, graded from end to end: their points, and the diagnosis."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from agglab.testbed.cli import main
from agglab.verification.grading import lab as labs
from agglab.verification.grading.grade import grades
from agglab.verification.grading.result import Grade
from agglab.verification.grading.sandbox import Limits

HERE = Path(__file__).parent
ECHO = HERE / "tiny/labs/01-echo"
SOLUTION = (ECHO / "solution.p4").read_text()
WRONG = sorted((ECHO / "wrong").iterdir())


def graded(path: Path, folder: Path = ECHO, limits: Limits | None = None) -> Grade:
    ((_, grade),) = grades(labs.read(folder), [path], limits or Limits(), 1)
    return grade


def written(tmp_path: Path, text: str, name: str = "echo.p4") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_solution_has_all_points(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(ECHO), str(ECHO / "solution.p4")]) == 0
    assert capfd.readouterr().out.startswith("01-echo (The echo): 9 of 9 points\n")


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_program_meets_its_case(path: Path) -> None:
    meets = re.match(r"// meets: (\S+)\n", path.read_text())
    assert meets
    grade = graded(path)
    assert grade.failed == meets[1] and not grade.is_full


def test_the_story_names_fields_and_cells(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(ECHO), str(ECHO / "wrong/never-writes.p4")]) == 1
    lines = capfd.readouterr().out.splitlines()
    story = [
        "A packet was not counted in its slot.",
        "After 1 packet with the right answers:",
        "  sent to port 2: question(slot 0, count 0)",
        "  expected from port 2: question(slot 0, count 2)",
        "  came     from port 2: question(slot 0, count 1)",
        "  seen[0] was 0, and is 0",
    ]
    assert lines[lines.index(story[0]) :][: len(story)] == story
    assert lines[-1].startswith("to see it again: ")


def test_what_does_not_compile_has_no_points(tmp_path: Path) -> None:
    grade = graded(written(tmp_path, SOLUTION.replace("count + 1;", "count + ;")))
    assert grade.points == 0 and grade.failed == "compiles"
    assert grade.verdict("compiles").story[0].startswith("echo.p4:")
    assert str(tmp_path) not in "".join(grade.verdict("compiles").story)


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = written(tmp_path, SOLUTION)
    assert graded(path).is_full
    assert list(tmp_path.iterdir()) == [path]

"""What the tests of the grader hand in, and how they have it graded."""

from __future__ import annotations

from pathlib import Path

from agglab.verification.grading import lab as labs
from agglab.verification.grading.grade import grades
from agglab.verification.grading.result import Grade
from agglab.verification.grading.sandbox import Limits

LABS = Path(__file__).parent / "tiny/labs"
ECHO, FORWARD, DOUBLE, TESTS, FIGURE = sorted(LABS.glob("0*"))


def graded(path: Path, folder: Path = ECHO, limits: Limits | None = None) -> Grade:
    """Returns the grade of one submission."""
    ((_, grade),) = grades(labs.read(folder), [path], limits or Limits(), 1)
    return grade


def written(folder: Path, text: str, name: str = "echo.p4") -> Path:
    """Writes a submission."""
    path = folder / name
    path.write_text(text)
    return path


def solution(folder: Path) -> str:
    """Returns the text of an exercise's solution."""
    (path,) = folder.glob("solution.*")
    return path.read_text()

"""The exercises of labs/ as their tests see them: the grader's own cases, and which of them a
submission fails, judged one after the other in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agglab.verification.grading import course
from agglab.verification.grading import lab as labs
from agglab.verification.grading.grade import SUBJECTS, Submission
from agglab.verification.grading.lab import Case, Lab

ROOT = Path(__file__).resolve().parents[3]
LABS = tuple(map(labs.read, course.folders()))


def cases(lab: Lab) -> list[Case]:
    """Returns all cases of an exercise, in the order in which they are graded."""
    return [case for part in lab.parts for case in part.cases]


WRONG = [(lab, wrong) for lab in LABS for wrong in lab.wrong()]
"""The typical wrong submissions, each with its exercise."""


def failed(lab: Lab, path: Path, folder: Path, asked: list[Case] | None = None) -> Iterator[str]:
    """Yields what a submission is told for each case that it fails, in their order: the id of the
    case, or of the remark that is made instead. Each is judged when it is asked for. folder: for
    files. asked: the cases that are judged; all by default. What is judged here is
    Agglab's own, so it is trusted: a jail for Python is not needed."""
    subject = SUBJECTS[lab.kind](Submission(lab, path, path, folder, is_trusted=True))
    assert subject.compiles().passed, f"{path} does not compile"
    for case in cases(lab) if asked is None else asked:
        judged = subject.judge(case)
        if not judged.passed:
            yield judged.message

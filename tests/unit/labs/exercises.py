"""The exercises of labs/ as their tests see them: the grader's own cases, and which of them a
submission fails, judged one after the other in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agglab.verification.grading import course
from agglab.verification.grading import lab as labs
from agglab.verification.grading.grade import SUBJECTS, Submission
from agglab.verification.grading.lab import Case, Lab

ROOT = Path(__file__).resolve().parents[3]
LABS = tuple(map(labs.read, course.folders()))
MEETS = re.compile(r"(?://|#) meets: (\S+)$")


def cases(lab: Lab) -> list[Case]:
    """Returns all cases of an exercise, in the order in which they are graded."""
    return [case for part in lab.parts for case in part.cases]


@dataclass(frozen=True)
class Wrong:
    """A typical wrong submission, and the case that it has to fail first."""

    lab: Lab
    path: Path

    @property
    def meets(self) -> str:
        match = MEETS.match(self.path.read_text().splitlines()[0])
        assert match, f"{self.path} does not begin with the case that it meets"
        return match[1]

    def __str__(self) -> str:
        return f"{self.lab.name}-{self.path.stem}"


WRONG = [Wrong(lab, path) for lab in LABS for path in sorted(lab.folder.glob("wrong/*.*"))]


def failed(lab: Lab, path: Path, folder: Path, asked: list[Case] | None = None) -> Iterator[str]:
    """Yields the cases that a submission fails, in their order. Each is judged when it is asked
    for. folder: for files. asked: the cases that are judged; all by default. What is judged here is
    Agglab's own, so it is trusted: a jail for Python is not needed."""
    subject = SUBJECTS[lab.kind](Submission(lab, path, path, folder, is_trusted=True))
    assert subject.compiles().passed, f"{path} does not compile"
    for case in cases(lab) if asked is None else asked:
        if not subject.judge(case).passed:
            yield case.id

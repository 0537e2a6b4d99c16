"""Grades one submission: puts it where it is judged, and judges case by case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agglab.switch import PipelineError, ProgramError
from agglab.testbed.errors import CompileError
from agglab.testbed.program import Program, compile_program
from agglab.verification.grading import packets, sandbox, submission
from agglab.verification.grading.lab import COMPILES, Case, Lab
from agglab.verification.grading.result import Grade, Judged
from agglab.verification.grading.sandbox import Limits, Report, Task
from agglab.verification.stf import Binder

COMPILER_LINES_MAX = 12


def grades(
    lab: Lab, submissions: Sequence[Path], limits: Limits, at_once: int
) -> Iterator[tuple[int, Grade]]:
    """Grades submissions, `at_once` at a time. Yields the index of each and its grade, as soon as
    it has one."""
    tasks, indices = [], []
    for index, path in enumerate(submissions):
        try:
            content = submission.read(path)
            submission.check(content, lab.kind)
        except submission.Refused as refused:
            yield index, Grade(lab, str(path), {}, str(refused))
            continue
        indices.append(index)
        tasks.append(task(lab, path, content))
    for number, ended in sandbox.run(tasks, limits, at_once):
        index = indices[number]
        judged = {each.case: each for each in ended.judged}
        yield index, Grade(lab, str(submissions[index]), judged, ended.why)


def task(lab: Lab, path: Path, content: bytes) -> Task:
    """Returns the task that judges a submission with this content."""

    def work(folder: Path, report: Report) -> None:
        own = folder / "submission"
        own.mkdir()
        (own / lab.file).write_bytes(content)
        _judge(lab, own / lab.file, path, report)

    solutions = lab.folder.parent.glob("*/solution*") if lab.kind == ".p4" else ()
    return Task(str(path), work, [each for each in solutions if each.is_file()])


def _judge(lab: Lab, own: Path, path: Path, report: Report) -> None:
    """Reports the verdict on each case. own: the copy that is judged. path: the student's file."""
    try:
        program = compile_program(own, "agglab", {})
    except CompileError as error:
        report(Judged(COMPILES, False, tuple(_said(str(error), own))))
        return
    report(Judged(COMPILES, True))
    subject = Subject(lab, own, path, program)
    for part in lab.parts:
        for case in part.cases:
            report(JUDGES[case.kind](case, subject))


@dataclass(frozen=True)
class Subject:
    """A submission that compiles. own: the copy that is judged. path: the student's file."""

    lab: Lab
    own: Path
    path: Path
    program: Program


def _packets(case: Case, subject: Subject) -> Judged:
    try:
        binder = Binder(subject.program.description)
        return packets.judge(case, subject.program.json, binder, subject.path)
    except (ProgramError, PipelineError) as error:
        return Judged(case.id, False, (f"The program cannot be run: {error}.",))


JUDGES: Mapping[str, Callable[[Case, Subject], Judged]] = {"stf": _packets}


def _said(text: str, own: Path) -> list[str]:
    """Returns the compiler's first lines, with the name of the student's file."""
    lines = text.replace(f"{own.parent}/", "").splitlines()
    return [re.sub(r"\s+$", "", line) for line in lines[:COMPILER_LINES_MAX]]

"""Grades submissions: puts each where it is judged, and judges it case by case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from agglab.hosts import library
from agglab.testbed.base.errors import CompileError, MachineLacks
from agglab.testbed.base.paths import LAB_FOLDER
from agglab.testbed.base.problems import ScenarioError
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.virtual.clock import Clock
from agglab.verification.grading import (
    endless,
    jail,
    mutants,
    packets,
    python_cases,
    runs,
    sandbox,
    submission,
)
from agglab.verification.grading.jail import Jail
from agglab.verification.grading.lab import COMPILES, UNRUNNABLE, Case, Lab
from agglab.verification.grading.result import Grade, Judged
from agglab.verification.grading.sandbox import Limits, Report, Task
from p4native.common.printable import one_line
from p4native.stf import Binder
from p4native.switch import PipelineError, ProgramError

COMPILER_LINES_MAX = 12


class Subject(Protocol):
    """A submission of one kind."""

    def compiles(self) -> Judged: ...

    def judge(self, case: Case, is_told: bool = True) -> Judged:
        """Judges a case. is_told: whether its story is needed, which may take seconds."""


@dataclass(frozen=True)
class Submission:
    """What is judged. copy: the copy that is judged. path: the student's file. folder: for files
    while it is judged."""

    lab: Lab
    copy: Path
    path: Path
    folder: Path
    is_trusted: bool


class P4Program:
    """A P4 program. Its cases send it packets, or run it in a scenario."""

    def __init__(self, handed_in: Submission) -> None:
        self._copy, self._path = handed_in.copy, handed_in.path

    @cached_property
    def _program(self) -> Program:
        return compile_program(self._copy, "agglab", {})

    def compiles(self) -> Judged:
        try:
            around = endless.circle(self._program.description)
        except CompileError as error:
            lines = str(error).replace(f"{self._copy.parent}/", "").splitlines()
            return Judged(COMPILES, False, tuple(lines[:COMPILER_LINES_MAX]))
        text = f"The parser can go round for ever: {' -> '.join([*around, *around[:1]])}."
        return Judged(COMPILES, not around, (text,) if around else ())

    def judge(self, case: Case, is_told: bool = True) -> Judged:
        try:
            if case.kind == "scenario":
                return runs.judge(case, self._copy, self._path, is_told)
            binder = Binder(self._program.description)
            return packets.judge(case, self._program.json, binder, self._path)
        except (ProgramError, PipelineError) as error:
            why = str(error).rpartition(".json: ")[2]
            return Judged(case.id, False, (f"{why}.",), remark=UNRUNNABLE.id)


class PythonFile:
    """A Python file, which the checks of its cases call."""

    def __init__(self, handed_in: Submission) -> None:
        self._copy, self._folder = handed_in.copy, handed_in.folder
        self._jail = Jail((LAB_FOLDER, handed_in.lab.folder.parent), not handed_in.is_trusted)

    def compiles(self) -> Judged:
        return python_cases.loads(self._copy, self._jail, self._folder)

    def judge(self, case: Case, is_told: bool = True) -> Judged:
        return python_cases.judge(case, self._copy, self._jail, self._folder)


class ScenarioFile:
    """A scenario, which is run with the settings and expectations of its cases."""

    def __init__(self, handed_in: Submission) -> None:
        self._copy, self._folder = handed_in.copy, handed_in.folder

    def compiles(self) -> Judged:
        return Judged(COMPILES, True)

    def judge(self, case: Case, is_told: bool = True) -> Judged:
        return runs.judge_scenario(case, self._copy, self._folder)


class PacketTests:
    """A packet test of the student's."""

    def __init__(self, handed_in: Submission) -> None:
        self._copy, self._lab = handed_in.copy, handed_in.lab

    def compiles(self) -> Judged:
        return mutants.readable(self._copy)

    def judge(self, case: Case, is_told: bool = True) -> Judged:
        return mutants.judge(case, self._lab, self._copy)


SUBJECTS: Mapping[str, Callable[[Submission], Subject]] = {
    ".p4": P4Program,
    ".py": PythonFile,
    ".yaml": ScenarioFile,
    ".stf": PacketTests,
}


def grades(
    lab: Lab, submissions: Sequence[Path], limits: Limits, at_once: int, trust: bool = False
) -> Iterator[tuple[int, Grade]]:
    """Grades submissions, `at_once` at a time. Yields the index of each and its grade, as soon as
    it has one. trust: whether Python is judged where the kernel cannot shut it off; otherwise
    MachineLacks is raised."""
    is_trusted = lab.kind == ".py" and _is_trusted(trust)
    _prepare(lab)
    tasks, indices = [], []
    for index, path in enumerate(submissions):
        try:
            content = submission.read(path)
        except submission.Refused as refused:
            yield index, Grade(lab, str(path), {}, str(refused))
            continue
        indices.append(index)
        tasks.append(_task(lab, path, content, is_trusted))
    for number, ended in sandbox.run(tasks, limits, at_once):
        index = indices[number]
        judged = {each.case: each for each in ended.judged}
        yield index, Grade(lab, str(submissions[index]), judged, ended.why)


def _is_trusted(trust: bool) -> bool:
    """Returns whether Python has to run without a jail. Raises MachineLacks if it would have to,
    and nobody trusts it."""
    try:
        jail.require()
    except MachineLacks:
        if not trust:
            raise
        return True
    return False


def _prepare(lab: Lab) -> None:
    """Builds what all submissions share, so that no process has to build it again."""
    if lab.kind in (".p4", ".yaml"):
        library.built()
        Clock()
    if lab.kind == ".stf":
        mutants.prepare(lab)


def _task(lab: Lab, path: Path, content: bytes, is_trusted: bool) -> Task:
    """Returns the task that judges a submission with this content."""

    def work(folder: Path, report: Report) -> None:
        copy = folder / "submission"
        copy.mkdir()
        (copy / lab.file).write_bytes(content)
        _judge(Submission(lab, copy / lab.file, path, folder, is_trusted), report)

    solutions = lab.folder.parent.glob("*/solution*") if lab.kind == ".p4" else ()
    return Task(str(path), work, [each for each in solutions if each.is_file()], lab.kind == ".p4")


def _judge(handed_in: Submission, report: Report) -> None:
    """Reports the verdict on each case; on no case if the submission does not compile. The first
    that does not pass is the diagnosis, so only its story is told."""
    subject = SUBJECTS[handed_in.lab.kind](handed_in)
    compiles = _accepted(handed_in, subject)
    report(compiles)
    is_right = compiles.passed
    for part in handed_in.lab.parts if compiles.passed else ():
        for case in part.cases:
            judged = subject.judge(case, is_told=is_right)
            is_right = is_right and judged.passed
            report(judged)


def _accepted(handed_in: Submission, subject: Subject) -> Judged:
    """Judges whether a submission names no other files, and compiles."""
    try:
        submission.check(handed_in.copy.read_bytes(), handed_in.lab.kind)
    except (submission.Refused, ScenarioError) as refused:
        return Judged(COMPILES, False, (one_line(str(refused)),))
    return subject.compiles()

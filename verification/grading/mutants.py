"""Judges packet tests that a student has written: they must pass on the right program, and fail on
each wrong one."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from agglab.testbed.run.programs.program import compile_program
from agglab.verification.grading import wrong
from agglab.verification.grading.lab import COMPILES, Case, Lab
from agglab.verification.grading.result import Judged
from agglab.verification.grading.wrong import Wrong
from p4native.common.c_build import cache_folder
from p4native.common.private_folders import make_private
from p4native.common.whole_files import whole_file
from p4native.stf import StfError, parse, run_stf
from p4native.switch import PipelineError

FAILURES_SHOWN = 8


def right_program(lab: Lab) -> Path:
    """Returns the program on which the tests must pass."""
    return lab.folder / "solution.p4"


def wrong_programs(case: Case, lab: Lab) -> list[Wrong]:
    """Returns the programs on which the tests must fail. Raises ScenarioError."""
    return wrong.read(case.path, right_program(lab).read_text(encoding="utf-8"))


@cache
def compiled(text: str) -> Path:
    """Returns the BMv2 JSON of a program of the exercise. It stays in the user's cache, so that it
    is compiled once for all submissions."""
    folder = cache_folder() / "grading"
    make_private(folder)
    program = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.p4"
    with whole_file(program) as part:  # others may compile it at the same time
        part.write_text(text, encoding="utf-8")
    return compile_program(program, "agglab", {}).json


def prepare(lab: Lab) -> None:
    """Compiles all programs of the exercise."""
    for part in lab.parts:
        for case in part.cases:
            for program in wrong_programs(case, lab):
                compiled(program.text)
    compiled(right_program(lab).read_text(encoding="utf-8"))


def readable(script: Path) -> Judged:
    """Judges whether a student's script is one."""
    try:
        parse(script.read_text(errors="replace"))
    except StfError as error:
        return Judged(COMPILES, False, (f"{script.name}, line {error.line}: {error}.",))
    return Judged(COMPILES, True)


def judge(case: Case, lab: Lab, script: Path) -> Judged:
    """Judges a student's script with the wrong programs of a case."""
    failures = _failures(right_program(lab).read_text(encoding="utf-8"), script)
    if failures:
        lines = "\n".join(failures[:FAILURES_SHOWN]).splitlines()
        return Judged(case.id, False, ("The tests fail on the right program:", *lines))
    programs = wrong_programs(case, lab)
    passed = [each.name for each in programs if not _failures(each.text, script)]
    if passed:
        count = f"The tests pass on {len(passed)} of {len(programs)} wrong programs"
        return Judged(case.id, False, (f"{count}: {', '.join(passed)}.",))
    return Judged(case.id, True)


def _failures(program: str, script: Path) -> list[str]:
    """Returns what of the script does not hold for a program, which is given as text."""
    try:
        return run_stf(compiled(program), script).failures
    except StfError as error:
        return [f"{error.line}: {error}"]
    except PipelineError as error:
        return [str(error)]

"""Judges packet tests that a student has written: they must pass on the right program, and fail on
each wrong one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from agglab.switch import PipelineError
from agglab.testbed.program import compile_program
from agglab.verification.grading.lab import COMPILES, Case, Lab
from agglab.verification.grading.result import Judged
from agglab.verification.stf import StfError, parse, run_stf

FAILURES_SHOWN = 8


def right_program(lab: Lab) -> Path:
    """Returns the program on which the tests must pass."""
    return lab.folder / "solution.p4"


def wrong_programs(case: Case) -> Sequence[Path]:
    return sorted(case.path.glob("*.p4"))


@cache
def compiled(program: Path) -> Path:
    """Returns the BMv2 JSON of a program of the exercise, which is compiled once for all
    submissions."""
    return compile_program(program, "agglab", {}).json


def readable(script: Path) -> Judged:
    """Judges whether a student's script is one."""
    try:
        parse(script.read_text(errors="replace"))
    except StfError as error:
        return Judged(COMPILES, False, (f"{script.name}, line {error.line}: {error}.",))
    return Judged(COMPILES, True)


def judge(case: Case, lab: Lab, script: Path) -> Judged:
    """Judges a student's script with the wrong programs of a case."""
    failures = _failures(right_program(lab), script)
    if failures:
        lines = "\n".join(failures[:FAILURES_SHOWN]).splitlines()
        return Judged(case.id, False, ("The tests fail on the right program:", *lines))
    wrong = wrong_programs(case)
    passed = [path.stem for path in wrong if not _failures(path, script)]
    if passed:
        count = f"The tests pass on {len(passed)} of {len(wrong)} wrong programs"
        return Judged(case.id, False, (f"{count}: {', '.join(passed)}.",))
    return Judged(case.id, True)


def _failures(program: Path, script: Path) -> list[str]:
    """Returns what of the script does not hold for a program."""
    try:
        return run_stf(compiled(program), script).failures
    except StfError as error:
        return [f"{error.line}: {error}"]
    except PipelineError as error:
        return [str(error)]

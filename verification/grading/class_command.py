"""The command `agglab grade-all`: grades a folder of submissions and prints a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from agglab.testbed.base import processors
from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.testbed.base.problems import problem_of
from agglab.testbed.cli import arguments
from agglab.verification.grading import course, formats
from agglab.verification.grading.command import write
from agglab.verification.grading.grade import grades
from agglab.verification.grading.lab import Lab
from agglab.verification.grading.result import Grade
from agglab.verification.grading.sandbox import Limits
from agglab.verification.grading.text import number
from p4native.common.printable import one_line, plain

SAYS_MAX = 100


def main(words: Sequence[str]) -> int:
    """Returns 0 if every submission has all points, otherwise 1. Raises ScenarioError for an
    exercise or a folder that is wrong, and MachineLacks."""
    options = arguments.parse("grade-all", arguments.grade_all, words)
    lab = course.find(options.lab)
    handed_in = list(submissions(options.folder, lab))
    if not handed_in:
        message = f"has no {lab.kind} files, and no folders with a file {lab.file}"
        raise problem_of(options.folder, message)
    at_once = options.processes or processors.allowed()
    paths, done = [path for _, path in handed_in], dict[int, Grade]()
    for index, grade in grades(lab, paths, Limits(), at_once, options.trust):
        done[index] = grade
        text = f"{len(done)} of {len(paths)}: {handed_in[index][0]} {number(grade.points)}"
        print(plain(text), file=sys.stderr, flush=True)
    table = [(name, done[index]) for index, (name, _) in enumerate(handed_in)]
    print(plain("\n".join(_lines(table))))
    if options.csv:
        write(Path(options.csv), formats.as_csv(table))
    return PASSED if all(grade.is_full for _, grade in table) else FAILED


def submissions(folder: Path, lab: Lab) -> Iterator[tuple[str, Path]]:
    """Yields the name and path of each submission: the files of the right kind in a folder, and the
    file of the exercise's name in each of its folders. Links are yielded themselves, and hidden
    entries are left out. Raises ScenarioError."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise problem_of(folder, str(error.strerror)) from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() or (entry.suffix == lab.kind and not entry.is_dir()):
            yield entry.stem, entry
        elif entry.is_dir():
            yield entry.name, entry / lab.file


def _lines(table: Sequence[tuple[str, Grade]]) -> Iterator[str]:
    """Yields a line for each submission, with its points and the first line of its diagnosis."""
    parts = [part.name for part in table[0][1].lab.parts]
    width = max(len("submission"), *(len(one_line(name)) for name, _ in table))
    yield f"{'submission':<{width}}  {'points':>6}  " + "  ".join(f"{part:>6}" for part in parts)
    for name, grade in table:
        sizes = zip(parts, grade.parts, strict=True)
        cells = "  ".join(f"{number(part.points):>{max(6, len(name))}}" for name, part in sizes)
        points = f"{one_line(name):<{width}}  {number(grade.points):>6}"
        yield f"{points}  {cells}  {_reason(grade)}".rstrip()


def _reason(grade: Grade) -> str:
    if grade.is_full:
        return ""
    story = grade.verdict(grade.failed).story
    return one_line(grade.says or (story[0] if story else ""), SAYS_MAX)

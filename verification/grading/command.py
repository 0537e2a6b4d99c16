"""The command `agglab grade`: grades one submission and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.testbed.base.problems import problem_of
from agglab.testbed.cli import arguments
from agglab.verification.grading import course, formats
from agglab.verification.grading.grade import grades
from agglab.verification.grading.progress import note_done
from agglab.verification.grading.sandbox import Limits
from agglab.verification.grading.text import text
from p4native.common.printable import plain
from p4native.common.whole_files import whole_file


def main(words: Sequence[str]) -> int:
    """Returns 0 if the submission has all points, otherwise 1. Raises ScenarioError for an exercise
    or a command line that is wrong, and MachineLacks."""
    options = arguments.parse("grade", arguments.grade, words)
    lab, path = course.find(options.lab), Path(options.program)
    if not path.exists() and not path.is_symlink():
        raise problem_of(options.program, "there is no such file")
    ((_, grade),) = grades(lab, [path], Limits(), 1, options.trust)
    if options.junit:
        write(Path(options.junit), formats.as_junit(grade))
    if options.json:
        print(formats.as_json(grade))
    elif options.gradescope:
        print(formats.as_gradescope(grade))
    else:
        print(plain(text(grade)))
    if grade.is_full:
        note_done(lab.name)
    return PASSED if grade.is_full else FAILED


def write(path: Path, content: str) -> None:
    """Writes a file that the command line names. Raises ScenarioError if that is not possible."""
    try:
        with whole_file(path) as part:
            part.write_text(content, encoding="utf-8")
    except OSError as error:
        raise problem_of(path, f"cannot be written: {error.strerror}") from None

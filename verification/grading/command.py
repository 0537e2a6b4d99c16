"""The command `agglab grade`: grades one submission and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agglab.testbed import arguments
from agglab.testbed.exit_codes import FAILED, PASSED
from agglab.testbed.terminal import plain
from agglab.verification.grading import course
from agglab.verification.grading.grade import grades
from agglab.verification.grading.sandbox import Limits
from agglab.verification.grading.text import text


def main(words: Sequence[str]) -> int:
    """Returns 0 if the submission has all points, otherwise 1. Raises ScenarioError for an exercise
    that is wrong, and MachineLacks."""
    options = arguments.parse("grade", arguments.grade, words)
    lab = course.find(options.lab)
    ((_, grade),) = grades(lab, [Path(options.program)], Limits(), 1, options.trust)
    print(plain(text(grade)))
    return PASSED if grade.is_full else FAILED

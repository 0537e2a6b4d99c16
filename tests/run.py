"""Runs all tests in two parts: those that need no root on all processors at once; then those with
networks and real time, one after the other, so that each has the machine to itself.

`python tests/run.py [PYTEST'S ARGUMENTS]`; the exit code is pytest's, 0 if both parts passed.
`python tests/run.py --quick [PYTEST'S ARGUMENTS]` runs the first part of QUICK alone.
Each part names its failures as they happen and ends with how long each folder took."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = (("-m", "not root", "-n", "auto", "--dist", "worksteal"), ("-m", "root"))
# What a developer runs between two edits: as many folders as a minute of two cores holds.
QUICK = (
    "tests/unit/compiler/syntax",
    "tests/unit/compiler/check",
    "tests/unit/topologies",
    "tests/unit/testbed/plan",
    "tests/unit/testbed/control",
    "tests/unit/testbed/network",
    "tests/unit/testbed/report",
    "tests/unit/test_layout.py",
)
NOT_QUICK = ("--ignore=tests/unit/testbed/report/test_width.py",)  # a browser draws every page
PLUGINS = ("-p", "tests.folder_times", "--durations=30", "--durations-min=5")
PASSED, INTERRUPTED, WRONG_USAGE, NO_TESTS = 0, 2, 4, 5


def together(codes: Sequence[int]) -> int:
    """pytest's exit code for the parts as one run: one may be empty, but not all."""
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (PASSED, NO_TESTS)), PASSED)


def main(arguments: Sequence[str]) -> int:
    parts = PARTS
    if arguments and arguments[0] == "--quick":
        parts, arguments = PARTS[:1], [*NOT_QUICK, *QUICK, *arguments[1:]]
    codes: list[int] = []
    for part in parts:
        command = [sys.executable, "-m", "pytest", *PLUGINS, *part, *arguments]
        codes.append(subprocess.call(command, cwd=ROOT))
        if codes[-1] in (INTERRUPTED, WRONG_USAGE):
            break
    return together(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

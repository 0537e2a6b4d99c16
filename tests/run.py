"""Runs all tests in two parts: those that need no root on all processors at once; then those with
networks and real time, one after the other, so that each has the machine to itself.

`python tests/run.py [PYTEST'S ARGUMENTS]`; the exit code is pytest's, 0 if both parts passed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

PARTS = (("-m", "not root", "-n", "auto", "--dist", "worksteal"), ("-m", "root"))
PASSED, INTERRUPTED, WRONG_USAGE, NO_TESTS = 0, 2, 4, 5


def together(codes: Sequence[int]) -> int:
    """pytest's exit code for the parts as one run: one may be empty, but not all."""
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (PASSED, NO_TESTS)), PASSED)


def main(arguments: Sequence[str]) -> int:
    codes: list[int] = []
    for part in PARTS:
        codes.append(subprocess.call([sys.executable, "-m", "pytest", *part, *arguments]))
        if codes[-1] in (INTERRUPTED, WRONG_USAGE):
            break
    return together(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

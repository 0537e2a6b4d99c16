"""Runs all tests in two parts: those that need no root on all processors at once; then those with
networks and real time, one after the other, so that each has the machine to itself.

`python tests/run.py [PYTEST'S ARGUMENTS]`; the exit code is pytest's, 0 if both parts passed.
`python tests/run.py --skipped [PYTEST'S ARGUMENTS]` runs only what the run before skipped, or all
if it ended early; a test that skips again fails if CI has what it needs (needs.py).
`python tests/run.py --quick [PYTEST'S ARGUMENTS]` runs the first part of QUICK alone.
Each part names its failures as they happen and ends with how long each folder took. The last ends
with what the skipped tests of both need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "parallel": ("-m", "not root", "-n", "auto", "--dist", "worksteal"),
    "alone": ("-m", "root", "--skipped-table"),
}
SKIPPED = ROOT / "build/skipped"
"""A file for each part: the tests that it skipped, and why."""
SKIPPED_BEFORE = ROOT / "build/skipped-before"
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
PLUGINS = ("-p", "tests.folder_times", "-p", "tests.skipped", "--durations=30", "--durations-min=5")
PASSED, INTERRUPTED, WRONG_USAGE, NO_TESTS = 0, 2, 4, 5


def together(codes: Sequence[int]) -> int:
    """pytest's exit code for the parts as one run: one may be empty, but not all."""
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (PASSED, NO_TESTS)), PASSED)


def run(*options: str) -> int:
    """Runs pytest; returns its exit code."""
    return subprocess.call([sys.executable, "-m", "pytest", *PLUGINS, *options], cwd=ROOT)


def run_all(options: Sequence[str], only_skipped: bool = False) -> int:
    """Runs both parts, or what they skipped the last time. The second is left out if the first is
    interrupted."""
    shutil.rmtree(SKIPPED_BEFORE, ignore_errors=True)
    if SKIPPED.is_dir():
        SKIPPED.rename(SKIPPED_BEFORE)
    codes: list[int] = []
    for part, marked in PARTS.items():
        record = [f"--skipped-to={SKIPPED / part}.json"]
        if only_skipped:
            record += [f"--skipped-from={SKIPPED_BEFORE / part}.json", "--skipped-fail"]
        codes.append(run(*marked, *record, *options))
        if codes[-1] in (INTERRUPTED, WRONG_USAGE):
            break
    return together(codes)


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "--quick":
        return run(*PARTS["parallel"], *NOT_QUICK, *QUICK, *arguments[1:])
    if arguments and arguments[0] == "--skipped":
        return run_all(arguments[1:], only_skipped=True)
    return run_all(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs all tests in three parts: those that need no root on all processors at once; then those with
networks, two files at a time; then those that measure real time (marked `alone`), one after the
other, so that each has the machine to itself.

`python tests/run.py [PYTEST'S ARGUMENTS]`; the exit code is pytest's, 0 if all parts passed.
`--short` before these leaves out the tests marked long, and `--long` runs only these: of a test
with many cases, those that TEST_SEED draws (toolchain/tests/hooks.py).
`--skipped` runs only what the runs before skipped, or all if the last ended early; a test that
skips again fails if CI has what it needs (needs.py). `--long --skipped` runs these and the long
tests.
`--quick` runs the first part of QUICK alone.
Each part names its failures as they happen and ends with how much time each folder took, and with
the tests that take too much for `make test`. The last part ends with what the skipped tests of all
parts need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_ROOT_NEEDED = (
    "--ignore=tests/unit",
    "--ignore=systems",
    *(f"--ignore=toolchain/tests/{name}" for name in ("compiler", "packets", "switch")),
)
PARTS = {
    "parallel": ("not root", "-n", "auto", "--dist", "worksteal"),
    "networks": ("root and not alone", *NO_ROOT_NEEDED, "-n", "2", "--dist", "loadfile"),
    "alone": ("root and alone", *NO_ROOT_NEEDED, "--skipped-table"),
}
"""Of each part: the expression that selects its tests, and options. No test in the folders that the
others ignore is marked root: to read them takes half a minute."""
TIERS = {"short": " and not long", "long": " and long and not undrawn", "all": ""}
"""What each tier adds to the expression."""
SKIPPED = ROOT / "build/skipped"
"""A file for each tier and part: the tests that it skipped, and why."""
SKIPPED_BEFORE = ROOT / "build/skipped-before"
COMPILED = ROOT / "build/pycache"
TIMES = ROOT / "build/test-times"
"""A file for each tier and part: what each test took."""
# What a developer runs between two edits: as many folders as a minute of two cores holds.
QUICK = (
    "toolchain/tests/compiler/syntax",
    "toolchain/tests/compiler/check",
    "tests/unit/topologies",
    "tests/unit/testbed/systems/plan",
    "tests/unit/testbed/run",
    "tests/unit/testbed/real",
    "tests/unit/testbed/report",
    "tests/unit/test_layout.py",
)
NOT_QUICK = ("--ignore=tests/unit/testbed/report/test_width.py",)  # a browser draws every page
PLUGINS = ("-p", "tests.folder_times", "-p", "tests.skipped", "--durations=30", "--durations-min=5")
WORDS = ("--quick", "--short", "--long", "--skipped")
PASSED, INTERRUPTED, WRONG_USAGE, NO_TESTS = 0, 2, 4, 5


def together(codes: Sequence[int]) -> int:
    """pytest's exit code for the parts as one run: one may be empty, but not all."""
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (PASSED, NO_TESTS)), PASSED)


def run(part: str, tier: str, *options: str) -> int:
    """Runs pytest on the tests of a part and tier; returns its exit code."""
    expression, *of_part = PARTS[part]
    selected = ["-m", expression + TIERS[tier], *of_part]
    command = [sys.executable, "-m", "pytest", *PLUGINS, *selected, *options]
    return subprocess.call(command, cwd=ROOT, env=environment())


def environment() -> dict[str, str]:
    """This process's environment, but Python keeps what it compiles, in build/. The tests start
    some thousand processes; where PYTHONDONTWRITEBYTECODE is set, each would compile all anew."""
    kept = {**os.environ, "PYTHONPYCACHEPREFIX": str(COMPILED)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept


def run_parts(tier: str, options: Sequence[str]) -> int:
    """Runs all parts of a tier. If one is interrupted, the others are left out."""
    codes: list[int] = []
    for part in PARTS:
        name = f"{tier}-{part}.json"
        records = (f"--skipped-to={SKIPPED / name}", f"--times-to={TIMES / name}")
        chosen = [f"--skipped-from={each}" for each in SKIPPED_BEFORE.glob(f"*-{part}.json")]
        codes.append(run(part, tier, *records, *sorted(chosen), *options))
        if codes[-1] in (INTERRUPTED, WRONG_USAGE):
            break
    return together(codes)


def forget(tier: str, keeps_others: bool) -> None:
    """Removes the records of what this tier skipped, or of what all tiers skipped."""
    for record in SKIPPED.glob(f"{tier}-*.json" if keeps_others else "*.json"):
        record.unlink()


def run_skipped(is_long_too: bool, options: Sequence[str]) -> int:
    """Runs what the records name, and all long tests if asked to; a part without records is run
    whole."""
    if SKIPPED.is_dir():
        SKIPPED.rename(SKIPPED_BEFORE)
    added = ["--skipped-or-long"] if is_long_too else []
    return run_parts("all", ["--skipped-fail", *added, *options])


def main(arguments: Sequence[str]) -> int:
    words = list(takewhile(WORDS.__contains__, arguments))
    options = arguments[len(words) :]
    shutil.rmtree(SKIPPED_BEFORE, ignore_errors=True)
    if "--quick" in words:
        return run("parallel", "short", *NOT_QUICK, *QUICK, *options)
    if "--skipped" in words:
        return run_skipped("--long" in words, options)
    tier = next((word.removeprefix("--") for word in words), "all")
    forget(tier, keeps_others=tier == "long")
    return run_parts(tier, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

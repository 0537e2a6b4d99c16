"""`python -m testbed explore`: random schedules of faults; all interleavings of a small case."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from testbed.exit_codes import FAILED, INVALID, PASSED
from testbed.explore.interleavings import WINDOW, Wrong, enumerate_all
from testbed.explore.search import explore
from testbed.places import P4_FOLDER
from testbed.program import CompileError

SCHEDULES, DEPTH, CHUNKS = 100_000, 10, 5


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if nothing was found, 1 if something was, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    if not Path(options.program).is_file():
        print(f"{options.program}: no such file", file=sys.stderr)
        return INVALID
    program = Path(options.program).resolve()
    try:
        whole = _enumerate(program, options.depth, sys.stdout)
        found = explore(program, seeds, Path(options.found), sys.stdout) if seeds else PASSED
    except CompileError as error:
        print(error, file=sys.stderr)
        return INVALID
    return found if whole else FAILED


def _enumerate(program: Path, depth: int, out: TextIO) -> bool:
    """Whether all is as it must be."""
    print(f"two workers, a window of {WINDOW}: loss, duplication and delay", file=out)
    try:
        for chunks, steps in ((CHUNKS, depth), (WINDOW, None)):
            begun = time.monotonic()
            done = enumerate_all(program, chunks, steps)
            took = f"{done.states} states, {time.monotonic() - begun:.0f} s"
            count = "all, of any length" if done.interleavings is None else done.interleavings
            print(f"  {chunks} chunks, {done.depth} steps: {count} interleavings, {took}", file=out)
    except Wrong as wrong:
        print(f"  {wrong}", file=out)
        return False
    return True


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed explore",
        description="Look for fault schedules that end in a hang, a wrong sum or an undeclared "
        "failure, in virtual time. What is found is written as a scenario.",
    )
    parser.add_argument("--schedules", type=_whole, default=SCHEDULES, metavar="N", help="how many")
    parser.add_argument("--first-seed", type=_whole, default=0, metavar="N", help="of the first")
    parser.add_argument(
        "--depth", type=_whole, default=DEPTH, metavar="N", help="steps of the interleavings"
    )
    own = str(P4_FOLDER / "switchml.p4")
    parser.add_argument("--program", default=own, metavar="P4", help="the switch program")
    folder = "results/explore"
    parser.add_argument("--found", default=folder, metavar="DIR", help=f"scenarios; {folder}")
    return parser

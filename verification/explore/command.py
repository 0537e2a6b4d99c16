"""The command `explore`: random schedules of faults; all interleavings of a small case."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from agglab.testbed import systems
from agglab.testbed.exit_codes import FAILED, INVALID, PASSED
from agglab.testbed.places import P4_FOLDER
from agglab.testbed.program import CompileError
from agglab.verification.explore.interleavings import Case, enumerate_all
from agglab.verification.explore.search import explore, replay
from agglab.verification.explore.walk import Wrong

SCHEDULES, DEPTH = 100_000, 10
WIDE, TWO_SLOTS = Case(window=2, chunks=5, copies=2), Case(window=2, chunks=2, copies=1)
ONE_CHUNK = Case(window=1, chunks=1, copies=2)
SET_AGAIN = Case(window=1, chunks=2, copies=1)
"""A slot carries an opening and two chunks: the last meets what the opening has left in its set."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if nothing was found, 1 if something was, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    options.program = options.program or str(P4_FOLDER / _program_name(options.system))
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    if not Path(options.program).is_file():
        print(f"{options.program}: no such file", file=sys.stderr)
        return INVALID
    program, folder = Path(options.program).resolve(), Path(options.found)
    system = options.system
    try:
        if options.replay is not None:
            return _replay(Path(options.replay), program)
        whole = system != systems.DEFAULT or _enumerate(program, options.depth, sys.stdout)
        found = explore(program, seeds, folder, sys.stdout, system) if seeds else PASSED
    except CompileError as error:
        print(error, file=sys.stderr)
        return INVALID
    return found if whole else FAILED


def _program_name(system: str) -> str:
    return f"{systems.DEFAULT if system == systems.DEFAULT else 'forwarding'}.p4"


def _replay(path: Path, program: Path) -> int:
    try:
        return replay(path, program, sys.stdout)
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
    except ValueError as error:
        print(f"{path}: {error}", file=sys.stderr)
    return INVALID


def _enumerate(program: Path, depth: int, out: TextIO) -> bool:
    """Whether all is as it must be."""
    print("two workers: loss, duplication and delay", file=out)
    try:
        for case in (WIDE, ONE_CHUNK, TWO_SLOTS, SET_AGAIN):
            begun = time.monotonic()
            done = enumerate_all(program, case, depth if case is WIDE else None)
            took = f"{done.states} states, {time.monotonic() - begun:.0f} s"
            if done.interleavings is None:
                count = f"all orders, of any length (the last new state after {done.depth} steps)"
            else:
                count = f"{done.interleavings} orders of {done.depth} steps"
            print(f"  {case}: {count}, {took}", file=out)
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
        prog="python -m agglab.verification explore",
        description="Look for fault schedules that end in a hang, a wrong sum or an undeclared "
        "failure, in virtual time, or that differ from a model of the protocol. What is found is "
        "made small and written as a file.",
    )
    parser.add_argument("--schedules", type=_whole, default=SCHEDULES, metavar="N", help="how many")
    parser.add_argument("--first-seed", type=_whole, default=0, metavar="N", help="of the first")
    parser.add_argument(
        "--depth", type=_whole, default=DEPTH, metavar="N", help="steps of the interleavings"
    )
    parser.add_argument(
        "--system",
        choices=systems.built_in(),
        default=systems.DEFAULT,
        help="which way of aggregating; the others have scenarios only, no walks",
    )
    parser.add_argument("--program", metavar="P4", help="the switch program (the system's own)")
    parser.add_argument("--replay", metavar="FILE", help="walk as a file of an earlier search says")
    folder = "results/explore"
    parser.add_argument("--found", default=folder, metavar="DIR", help=f"scenarios; {folder}")
    return parser

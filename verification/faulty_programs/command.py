"""The command `python -m agglab.verification faulty-programs`, which runs programs with a fault and
prints their verdicts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from agglab.testbed.base.exit_codes import FAILED, INVALID, LACKING, PASSED
from agglab.verification.faulty_programs.catalogue import KINDS, FaultyProgram, read
from agglab.verification.faulty_programs.trials import NotRun, busy, verdicts

COLUMNS = ("passed", "failed", "undecided")


def main(words: Sequence[str]) -> int:
    """Returns 0 if no faulty program passed in any run, 1 if one did, 2 for a wrong command line,
    and 3 if a run was not possible on this machine."""
    options = _parser().parse_args(words)
    chosen = [p for p in read() if not options.only or p.id.startswith(tuple(options.only))]
    if not chosen:
        print("no program has such a name; --list shows all", file=sys.stderr)
        return INVALID
    if options.list:
        print("\n".join(f"{p.id:<32} {KINDS[p.kind]}: {p.breaks}" for p in chosen))
        return PASSED
    with busy(options.busy):
        try:
            return _try_all(chosen, options)
        except NotRun as error:
            print(error, file=sys.stderr)
            return LACKING


def _try_all(chosen: Sequence[FaultyProgram], options: argparse.Namespace) -> int:
    print(f"{'program':<32} {'kind':<6}" + "".join(f"{word:>10}" for word in COLUMNS), flush=True)
    code = PASSED
    for program in chosen:
        counted = verdicts(program, options.runs, options.jobs, tuple(options.set))
        numbers = "".join(f"{counted[word]:>10}" for word in COLUMNS)
        print(f"{program.id:<32} {program.kind or 'right':<6}{numbers}", flush=True)
        if program.kind and counted["passed"]:
            code = FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agglab.verification faulty-programs",
        description="Run P4 programs whose sums are right, but whose switches answer late, only "
        "when asked, too often, or at the wrong port. None of them may pass.",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="ID",
        help="only programs whose names begin with one of these",
    )
    parser.add_argument("--runs", type=int, default=1, help="how often each is run (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at once (default: 1)")
    parser.add_argument(
        "--busy", type=int, default=0, help="number of busy loops beside the runs (default: 0)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of each scenario"
    )
    parser.add_argument("--list", action="store_true", help="list the programs and run nothing")
    return parser

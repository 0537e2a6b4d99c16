"""The command `conformance`: runs programs, packet tests and random programs on every pair of
compiler and switch on this machine, and reports differences."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from p4native.common.exit_codes import FAILED, INVALID, LACKING, PASSED
from p4native.verification.conformance import packets, pairs, randomised
from p4native.verification.conformance.packets import Case, Found
from p4native.verification.conformance.pairs import Pair
from p4native.verification.corpus import TESTS, Corpus, script_problem

RESULTS = Path("build/conformance")
EXIT_CODES = """exit codes:
  0  all pairs that are here agree; peers that are not are named
  1  something differs
  2  a file that the command line names is not there, or is no packet test
  3  no peer is here to agree with (random programs always have the interpreter), one that is
     here could not run, or there are no packet tests"""


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(words)
    programs = options.programs or Corpus().programs()
    if absent := [path for path in programs if not path.is_file()]:
        print(f"conformance: {absent[0]}: no such file", file=sys.stderr)
        return INVALID
    if problem := next(filter(None, map(script_problem, programs)), ""):
        print(f"conformance: {problem}", file=sys.stderr)
        return INVALID
    if not programs and not options.random:
        lack = f"no packet tests in {TESTS}: run it in a checkout, or name programs"
        print(f"conformance: {lack}", file=sys.stderr)
        return LACKING
    here, is_complete = announced_pairs(pairs.SPECIFICATION if options.random else None)
    if options.random:
        seeds = range(options.first_seed, options.first_seed + options.random)
        code = randomised.run(seeds, here, options.results, options.workers, options.shrink_s)
    else:
        code = run_cases(packets.cases(programs), here)
    return LACKING if code == PASSED and not is_complete else code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m p4native.verification conformance",
        description="Compare compilers and switches by programs, packet tests and random programs.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--random", type=int, metavar="N", help="run only N random programs with their packets")
    add(
        "--first-seed",
        type=int,
        default=1,
        metavar="S",
        help="seed of the first random program (default: 1)",
    )
    add(
        "--shrink-s",
        type=float,
        default=240.0,
        metavar="T",
        help="seconds for shrinking a program whose results differ (default: 240)",
    )
    add(
        "--workers",
        type=int,
        default=randomised.default_workers(),
        metavar="W",
        help="random programs to run at once",
    )
    add(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help=f"the folder for random programs whose results differ (default: {RESULTS})",
    )
    add(
        "programs",
        nargs="*",
        type=Path,
        metavar="PROGRAM.p4",
        help="programs, each with its packet test (.stf) beside it, if it has one "
        "(default: the toolchain's packet tests)",
    )
    return parser


def announced_pairs(more: Pair | None = None) -> tuple[list[Pair], bool]:
    """Prints which pairs are on this machine, and which peers are absent or do not run. Returns the
    pairs, and whether there is something to compare and every peer that is here runs. more: a pair
    to add."""
    absent, broken = pairs.absent(), pairs.broken()
    here = [*pairs.present(without=broken), *([more] if more else [])]
    print(f"pairs: {', '.join(map(str, here))}")
    for name, tools in absent.items():
        print(f"absent: {name} (not on PATH: {tools}): nothing is compared with it")
    for name, trouble in broken.items():
        print(f"could not run: {name} ({trouble}): nothing is compared with it")
    return here, not broken and len(here) > 1


def run_cases(cases: Sequence[Case], here: Sequence[Pair]) -> int:
    """Runs cases on the pairs, prints what differs, and returns the exit code."""
    wrong = not_run = 0
    for case, outcome in _in_parallel(cases, here):
        wrong += bool(outcome.differs)
        not_run += bool(outcome.not_run)
        for text in (*outcome.differs, *outcome.not_run):
            print(text, flush=True)
        _show_progress(case.name)
    tested = sum(case.script is not None for case in cases)
    verdict = f"{wrong} differ" if wrong else "the others agree" if not_run else "all agree"
    verdict = f"{not_run} could not run, {verdict}" if not_run else verdict
    print(f"packets: {len(cases)} programs, {tested} packet tests, {len(here)} pairs: {verdict}")
    return FAILED if wrong else LACKING if not_run else PASSED


def _in_parallel(cases: Sequence[Case], here: Sequence[Pair]) -> Iterator[tuple[Case, Found]]:
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from zip(cases, pool.map(partial(packets.run_case, pairs=here), cases), strict=True)


def _show_progress(name: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{name}", end="\r", file=sys.stderr, flush=True)

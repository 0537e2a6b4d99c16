"""The command `python -m agglab.verification mutants`, which puts faults into Agglab and shows what
catches them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agglab.testbed.base.command_lines import module
from agglab.testbed.base.exit_codes import FAILED, INVALID, LACKING, PASSED
from agglab.testbed.base.paths import REPOSITORY
from agglab.verification.mutants import table
from agglab.verification.mutants.catalogue import CAUGHT_BY, CHECKS, CatalogueError, choose, read
from agglab.verification.mutants.suite import ControlFailed, Result, Suite
from agglab.verification.mutants.workspace import NoRepository

SIGNALS = (signal.SIGINT, signal.SIGTERM)
TABLE = REPOSITORY / "build" / "mutants.md"


class Interrupted(BaseException):
    """Raised when Ctrl-C or SIGTERM interrupts the run. number: the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(words: Sequence[str]) -> int:
    """Returns exit code 0 if every mutant was caught by every check that has to catch it. Returns 1
    if some mutant was not, or if a check fails without a fault. Returns 2 for a wrong command line,
    and 3 if the machine lacks something.

    If signal n interrupts the run, returns 128 + n; the table then has the mutants that were tried
    before the signal.
    """
    options = _parser().parse_args(words)
    try:
        mutants = choose(read(), options.only, options.kind)
        unknown = set(options.checks) - set(CHECKS)
        if unknown:
            raise CatalogueError(f"no check {sorted(unknown)[0]}; allowed: {', '.join(CHECKS)}")
    except CatalogueError as error:
        print(error, file=sys.stderr)
        return INVALID
    if options.list:
        print("\n".join(f"{m.id:<40} {','.join(m.changes):<24} {m.breaks}" for m in mutants))
        return PASSED
    begun_s = time.monotonic()
    try:
        hints = table.hints(options.table)
        suite = Suite(REPOSITORY, options.checks, options.jobs, sys.stdout, hints)
        with _interruptible():
            results = suite.run(mutants, keep=lambda result: _write(options.table, [result]))
    except Interrupted as interrupt:
        print("interrupted", file=sys.stderr)
        return 128 + interrupt.number
    except ControlFailed as error:
        print(error, file=sys.stderr)
        return FAILED
    except NoRepository as error:
        print(error, file=sys.stderr)
        return LACKING
    _write(options.table, results)
    return _tell(results, _spent(results, time.monotonic() - begun_s, options.jobs))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Makes the first signal raise Interrupted. Later signals are ignored, so that they do not
    disturb the cleaning up."""

    def interrupt(number: int, frame: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    previous = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _write(path: Path, results: Sequence[Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write(path, read(), results)


def _spent(results: Sequence[Result], seconds: float, jobs: int) -> str:
    caught = sum(result.good for result in results)
    processors = f"{jobs} at a time on {_processors()} processors"
    return f"{caught} of {len(results)} mutants caught in {seconds / 60:.0f} min, {processors}"


def _tell(results: Sequence[Result], spent: str) -> int:
    bad = [result for result in results if not result.good]
    for result in bad:
        print(result)
    print(spent)
    return FAILED if bad else PASSED


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{module('agglab.verification')} mutants",
        description="Apply each fault of the catalogue to a copy of the repository, and see which "
        "unit test, schedule and scenario catch it. Writes a table, build/mutants.md.",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="ID",
        help="only mutants whose names begin with one of these",
    )
    kinds = ", ".join(CAUGHT_BY)
    parser.add_argument(
        "--kind",
        nargs="+",
        default=[],
        metavar="KIND",
        help=f"only mutants of these kinds: {kinds}",
    )
    parser.add_argument(
        "--with",
        dest="checks",
        type=lambda text: text.split(","),
        default=list(CHECKS),
        metavar="CHECK,...",
        help=f"the checks to run: {', '.join(CHECKS)} (default: all)",
    )
    parser.add_argument(
        "--jobs",
        type=_positive,
        default=_processors(),
        metavar="N",
        help="number of mutants to test at once",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the mutants, one per line, and run nothing"
    )
    parser.add_argument(
        "--table",
        type=Path,
        default=TABLE,
        metavar="FILE",
        help="the file to write (default: build/mutants.md)",
    )
    return parser

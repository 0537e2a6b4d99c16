"""The command `conformance`: runs programs, packet tests and scenarios on every pair of compiler
and switch on this machine, and reports differences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agglab.testbed.base.command_lines import module
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.exit_codes import FAILED, INVALID, LACKING, PASSED
from agglab.testbed.base.paths import P4_FOLDER, REPOSITORY
from agglab.testbed.base.problems import nearest, quote
from agglab.verification.conformance import scenarios
from agglab.verification.conformance.scenarios import ScenarioResult
from p4native.verification.conformance import Pair, announced_pairs, cases, run_cases
from p4native.verification.corpus import TESTS, Corpus

RESULTS = REPOSITORY / "build" / "conformance"
EXIT_CODES = """exit codes:
  0  all pairs that are here agree; peers that are not are named
  1  something differs
  2  a name is not known
  3  no peer is here to agree with, one that is here could not run, or the machine lacks what
     scenarios need"""


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(words)
    programs = Corpus((P4_FOLDER,)).programs()
    if not TESTS.is_dir():
        raise MachineLacks(f"the packet tests {TESTS}", "run it in a checkout")
    if options.only and (unknown := _unknown(options.only, programs)):
        print(unknown, file=sys.stderr)
        return INVALID
    here, is_complete = announced_pairs()
    codes = []
    if not options.scenarios:
        chosen = [path for path in programs if not options.only or path.stem in options.only]
        codes.append(run_cases(cases(chosen), here))
    if not options.packets:
        codes.append(_scenarios(here, options.only, options.results))
    if FAILED in codes:
        return FAILED
    return PASSED if is_complete and LACKING not in codes else LACKING


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{module('agglab.verification')} conformance",
        description="Compare compilers and switches by programs, packet tests and scenarios.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--packets", action="store_true", help="run no scenarios; this needs no root"
    )
    parser.add_argument("--scenarios", action="store_true", help="run no packet tests")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="the folder for results (default: build/conformance)",
    )
    parser.add_argument("only", nargs="*", help="names of programs or scenarios (default: all)")
    return parser


def _unknown(only: Sequence[str], programs: Sequence[Path]) -> str:
    """Returns a line about the first name in `only` that is neither a program's nor that of a
    scenario marked for conformance. Returns an empty string if there is no such name."""
    known = [path.stem for path in programs] + scenarios.marked()
    for name in only:
        if name not in known:
            lack = "no program with a packet test and no scenario marked for it"
            return f"conformance: {quote(name)}: {lack}{nearest(name, known)}"
    return ""


def _scenarios(here: Sequence[Pair], only: Sequence[str], results: Path) -> int:
    codes = []
    for name in scenarios.marked():
        if only and name not in only:
            continue
        try:
            ran = {pair: scenarios.run_on(name, pair, results) for pair in here}
        except scenarios.NotRun as error:
            print(f"scenario {name}: not run: {error}")
            codes.append(LACKING)
            continue
        codes += [_compared(name, run, each) for run, each in scenarios.by_run(ran).items()]
    return max(codes, default=PASSED) if FAILED not in codes else FAILED


def _compared(name: str, run: str, ran: Mapping[Pair, ScenarioResult]) -> int:
    """Prints the outcome of one run of a scenario on all pairs."""
    found = scenarios.compare(ran)
    run = f" ({run})" if run else ""
    for line in found:
        print(f"scenario {name}{run} {line}")
    alike = "the same sums" if next(iter(ran.values())).sums is not None else "right on all pairs"
    verdict = "differs" if found else alike
    print(f"scenario {name}{run}: {verdict}; a round: {scenarios.times(ran)}", flush=True)
    return FAILED if found else PASSED

"""The command `conformance`: runs programs, packet tests, scenarios and random programs on every
pair of compiler and switch on this machine, and reports differences."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from agglab.testbed.command_lines import module
from agglab.testbed.errors import MachineLacks
from agglab.testbed.exit_codes import FAILED, INVALID, LACKING, PASSED
from agglab.testbed.paths import REPOSITORY
from agglab.testbed.problems import nearest, quote
from agglab.verification.conformance import packets, pairs, randomised, scenarios
from agglab.verification.conformance.packets import Case, Found
from agglab.verification.conformance.pairs import Pair
from agglab.verification.conformance.scenarios import ScenarioResult

RESULTS = REPOSITORY / "build" / "conformance"
EXIT_CODES = """exit codes:
  0  all pairs that are here agree; peers that are not are named
  1  something differs
  2  a name is not known
  3  no peer is here to agree with (random programs always have the interpreter), one that is
     here could not run, or the machine lacks what scenarios need"""


def main(words: Sequence[str]) -> int:
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
        "--random", type=int, metavar="N", help="run only N random programs with their packets"
    )
    parser.add_argument(
        "--first-seed",
        type=int,
        default=1,
        metavar="S",
        help="seed of the first random program (default: 1)",
    )
    parser.add_argument(
        "--shrink-s",
        type=float,
        default=240.0,
        metavar="T",
        help="seconds for shrinking a program whose results differ (default: 240)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=randomised.default_workers(),
        metavar="W",
        help="random programs to run at once",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="the folder for results (default: build/conformance)",
    )
    parser.add_argument("only", nargs="*", help="names of programs or scenarios (default: all)")
    options = parser.parse_args(words)
    if not packets.TESTS.is_dir():
        raise MachineLacks(f"the packet tests {packets.TESTS}", "run it in a checkout")
    if options.only and (unknown := _unknown(options.only)):
        print(unknown, file=sys.stderr)
        return INVALID
    absent, broken = pairs.absent(), pairs.broken()
    here = pairs.present(without=broken)
    if options.random:
        here.append(pairs.SPECIFICATION)
    print(f"pairs: {', '.join(map(str, here))}")
    for name, what in absent.items():
        print(f"absent: {name} (not on PATH: {what}): nothing is compared with it")
    for name, trouble in broken.items():
        print(f"could not run: {name} ({trouble}): nothing is compared with it")
    incomplete = bool(broken) or len(here) == 1
    if options.random:
        seeds = range(options.first_seed, options.first_seed + options.random)
        code = randomised.run(seeds, here, options.results, options.workers, options.shrink_s)
        return LACKING if code == PASSED and incomplete else code
    codes = [] if options.scenarios else [_packets(here, options.only)]
    codes += [] if options.packets else [_scenarios(here, options.only, options.results)]
    if FAILED in codes:
        return FAILED
    return LACKING if LACKING in codes or incomplete else PASSED


def _unknown(only: Sequence[str]) -> str:
    """Returns a line about the first name in `only` that is neither a program's nor that of a
    scenario marked for conformance. Returns an empty string if there is no such name."""
    known = [case.program.stem for case in packets.cases()] + scenarios.marked()
    for name in only:
        if name not in known:
            what = (
                f"no program with a packet test and no scenario marked for it{nearest(name, known)}"
            )
            return f"conformance: {quote(name)}: {what}"
    return ""


def _packets(here: Sequence[Pair], only: Sequence[str]) -> int:
    chosen = [case for case in packets.cases() if not only or case.program.stem in only]
    wrong = not_run = 0
    for case, found in _in_parallel(chosen, here):
        wrong += bool(found.differs)
        not_run += bool(found.not_run)
        for text in (*found.differs, *found.not_run):
            print(text, flush=True)
        _show_progress(case.name)
    tested = sum(case.script is not None for case in chosen)
    verdict = f"{wrong} differ" if wrong else "the others agree" if not_run else "all agree"
    verdict = f"{not_run} could not run, {verdict}" if not_run else verdict
    print(f"packets: {len(chosen)} programs, {tested} packet tests, {len(here)} pairs: {verdict}")
    return FAILED if wrong else LACKING if not_run else PASSED


def _in_parallel(chosen: Sequence[Case], here: Sequence[Pair]) -> Iterator[tuple[Case, Found]]:
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from zip(chosen, pool.map(partial(packets.run_case, pairs=here), chosen), strict=True)


def _show_progress(name: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{name}", end="\r", file=sys.stderr, flush=True)


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

"""The command `sweep`: runs every system with many seeds and losses in virtual time, and shows
what was reported although nothing but the losses was wrong."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.verification.sweep.points import LOSSES, SIZES, TOPOLOGIES, points
from agglab.verification.sweep.progress import Record, summary
from agglab.verification.sweep.runs import run_all

SEEDS = 200
EXIT_CODES = """exit codes:
  0  no run reported anything
  1  some runs reported something, or ended with a wrong sum, a failure or not at all
  2  the command line, a setting or a scenario is wrong"""


def main(words: Sequence[str]) -> int:
    """Returns the exit code. Raises ScenarioError or CompileError before the first run of a point
    that cannot be run."""
    options = _parser().parse_args(words)
    chosen = list(points(options.system, options.topology, options.size, options.loss, options.set))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    record = Record(Path(options.record) if options.record else None, seeds)
    run_all(chosen, record, options.processes)
    print(summary(record.of(chosen)), flush=True)
    return FAILED if any(each.reds for each in record.of(chosen).values()) else PASSED


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agglab.verification sweep",
        description="Run every system with many seeds, in virtual time, on links that lose "
        "packets. Since nothing else is wrong, no run may fail or report a finding.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    in_time = systems.in_virtual_time(systems.built_in())
    for flag, allowed in (
        ("--system", in_time),
        ("--topology", list(TOPOLOGIES)),
        ("--size", list(SIZES)),
    ):
        parser.add_argument(
            flag,
            nargs="+",
            choices=allowed,
            default=allowed,
            help=f"default: {' '.join(allowed)}",
        )
    parser.add_argument(
        "--loss",
        nargs="+",
        default=LOSSES,
        metavar="P",
        help=f"probabilities of a loss on each link (default: {' '.join(LOSSES)})".replace(
            "%", "%%"
        ),
    )
    parser.add_argument(
        "--seeds",
        type=_count,
        default=SEEDS,
        metavar="N",
        help=f"number of seeds of each point (default: {SEEDS})",
    )
    parser.add_argument(
        "--first-seed", type=_count, default=1, metavar="N", help="the first seed (default: 1)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of every scenario, such as links.delay=1ms",
    )
    parser.add_argument(
        "--processes", type=_count, default=1, metavar="N", help="runs at once (default: 1)"
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="a file to which each finished point is appended; points that it has are not run "
        "again",
    )
    return parser

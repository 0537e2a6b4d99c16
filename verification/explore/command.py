"""The command `explore`: tries random schedules of faults, and all orders of events of small
cases."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from agglab.testbed import systems
from agglab.testbed.base.command_lines import module
from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.exit_codes import FAILED, INVALID, PASSED
from agglab.verification import programs, proofs
from agglab.verification.explore.search import Subject, explore, replay
from agglab.verification.explore.walk import FaultFound

SCHEDULES, DEPTH = 100_000, 10


def main(arguments: Sequence[str]) -> int:
    """Returns exit code 0 if nothing was found, 1 if something was found, and 2 for a wrong command
    line."""
    options = _parser().parse_args(arguments)
    program = Path(options.program or programs.path(options.system)).resolve()
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    if not program.is_file():
        print(f"{options.program}: no such file", file=sys.stderr)
        return INVALID
    subject = Subject(options.system, program)
    try:
        if options.replay is not None:
            return _replay(Path(options.replay), subject)
        whole = _enumerate(subject, options.depth, sys.stdout)
        found = explore(subject, seeds, Path(options.found), sys.stdout) if seeds else PASSED
    except CompileError as error:
        print(error, file=sys.stderr)
        return INVALID
    return found if whole else FAILED


def _replay(path: Path, subject: Subject) -> int:
    try:
        return replay(path, subject, sys.stdout)
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
    except ValueError as error:
        print(f"{path}: {error}", file=sys.stderr)
    return INVALID


def _enumerate(subject: Subject, depth: int, out: TextIO) -> bool:
    """Whether every order of events of the system's small cases ends without a fault."""
    exhaust = proofs.of(subject.system).exhaust
    try:
        if exhaust:
            exhaust(subject.program, depth, out)
    except FaultFound as wrong:
        print(f"  {wrong}", file=out)
        return False
    return True


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{module('agglab.verification')} explore",
        description="Look, in virtual time, for fault schedules that end in a hang, a wrong sum, "
        "or a failure, finding or bytes on links that no fault explains, or in which a switch or "
        "worker behaves differently from its model. Each schedule that is found is made smaller "
        "and written to a file.",
    )
    parser.add_argument(
        "--schedules",
        type=_whole,
        default=SCHEDULES,
        metavar="N",
        help=f"number of schedules to try (default: {SCHEDULES})",
    )
    parser.add_argument(
        "--first-seed",
        type=_whole,
        default=0,
        metavar="N",
        help="seed of the first schedule (default: 0)",
    )
    parser.add_argument(
        "--depth",
        type=_whole,
        default=DEPTH,
        metavar="N",
        help=f"number of steps in an interleaving (default: {DEPTH})",
    )
    parser.add_argument(
        "--system",
        choices=systems.in_virtual_time(systems.built_in()),
        default=systems.default(),
        help=f"the system to explore (default: {systems.default()})",
    )
    parser.add_argument(
        "--program", metavar="P4", help="the switch's P4 program (default: the system's own)"
    )
    parser.add_argument(
        "--replay", metavar="FILE", help="repeat the walk that an earlier search wrote to this file"
    )
    folder = "results/explore"
    parser.add_argument(
        "--found",
        default=folder,
        metavar="DIR",
        help=f"the folder for scenarios that were found (default: {folder})",
    )
    return parser

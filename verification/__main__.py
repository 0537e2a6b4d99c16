"""Checks the protocols and what the laboratory reads: `python -m agglab.verification COMMAND`."""

from __future__ import annotations

import sys

from agglab.testbed.base import system_programs
from agglab.testbed.base.command_lines import module
from agglab.testbed.base.exit_codes import INTERRUPTED, INVALID, PASSED
from agglab.testbed.cli import main as cli

USAGE = f"""usage: {module("agglab.verification")} COMMAND ...

  explore      search for schedules of faults that break a protocol
  sweep        run every system with many seeds and losses, and see what is reported
  conformance  compare with p4c and BMv2: programs, packet tests, sums
  fuzz         malformed inputs of every kind, under sanitizers
  mutants      put faults into Agglab, one at a time, and see which check catches each
  faulty-programs
               run P4 programs that answer late, too often or at a wrong port; none may pass"""


def main(words: list[str]) -> int:
    """Returns the exit code of a command. An exception of the command becomes one line on
    stderr."""
    system_programs.add_to_path()
    return cli.guarded(_dispatch, words)


def _dispatch(words: list[str]) -> int:
    command, rest = words[:1], words[1:]
    if command == ["explore"]:
        from agglab.verification.explore import command as explore

        return explore.main(rest)
    if command == ["sweep"]:
        from agglab.verification.sweep import command as sweep

        return sweep.main(rest)
    if command == ["conformance"]:
        from agglab.verification import conformance

        return conformance.main(rest)
    if command == ["fuzz"]:
        from agglab.verification import fuzz

        return fuzz.main(rest)
    if command == ["mutants"]:
        from agglab.verification.mutants import command as mutants

        return mutants.main(rest)
    if command == ["faulty-programs"]:
        from agglab.verification.faulty_programs import command as faulty_programs

        return faulty_programs.main(rest)
    helped = command in (["-h"], ["--help"])
    print(USAGE, file=sys.stdout if helped else sys.stderr)
    return PASSED if helped else INVALID


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)

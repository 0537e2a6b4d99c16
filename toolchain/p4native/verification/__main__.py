"""Checks the compiler and the switch: `python -m p4native.verification COMMAND`."""

from __future__ import annotations

import sys

from p4native.common.exit_codes import FAILED, INTERRUPTED, INVALID, PASSED
from p4native.common.printable import one_line

USAGE = """usage: python -m p4native.verification COMMAND ...

  conformance  compare with p4c and BMv2: programs, packet tests, random programs
  fuzz         malformed inputs of every kind, under sanitizers
  editor       random edits of a long program: the language server's answers, and their times"""


def main(words: list[str]) -> int:
    """Returns the exit code of a command. A file that cannot be read or written becomes one line on
    stderr."""
    command, rest = words[:1], words[1:]
    try:
        if command == ["conformance"]:
            from p4native.verification import conformance

            return conformance.main(rest)
        if command == ["fuzz"]:
            from p4native.verification import fuzz

            return fuzz.main(rest)
        if command == ["editor"]:
            from p4native.verification import editor

            return editor.main(rest)
    except OSError as error:
        print(f"{command[0]}: {one_line(str(error))}", file=sys.stderr)
        return FAILED
    helped = command in (["-h"], ["--help"])
    print(USAGE, file=sys.stdout if helped else sys.stderr)
    return PASSED if helped else INVALID


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)

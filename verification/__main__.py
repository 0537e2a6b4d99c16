"""`python -m verification COMMAND`: commands that prove something about Agglab itself."""

from __future__ import annotations

import sys

from testbed.exit_codes import INTERRUPTED, INVALID

USAGE = """usage: python -m verification COMMAND ...

  mutants   put faults into Agglab, one at a time, and see which check catches each"""


def main(words: list[str]) -> int:
    """The exit code of a command."""
    if words[:1] == ["mutants"]:
        from verification.mutants import command

        return command.main(words[1:])
    helped = words[:1] in (["-h"], ["--help"])
    print(USAGE, file=sys.stdout if helped else sys.stderr)
    return 0 if helped else INVALID


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)

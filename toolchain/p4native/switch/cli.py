"""Runs the switch with the options of its command line (options.py)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from p4native.switch.options import EXIT_PROGRAM, EXIT_USAGE, Options, UsageError, parse


def show_c(options: Options) -> int:
    """Prints the C to which a program is translated."""
    from p4native.switch.errors import PipelineError
    from p4native.switch.program import Program
    from p4native.switch.translate import translate

    assert options.json is not None
    try:
        text = translate(Program.read(options.json), sources=True)
    except PipelineError as error:
        print(f"switch: {error}", file=sys.stderr)
        return EXIT_PROGRAM
    with contextlib.suppress(BrokenPipeError):
        print(text, end="")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Runs the switch until a signal and returns the exit code."""
    try:
        options = parse(arguments)
    except UsageError as error:
        print(f"switch: {error}", file=sys.stderr)
        return EXIT_USAGE
    if options.show:
        return show_c(options)
    # Compiling a program and gRPC are slow to import; --help and a wrong command line need neither.
    from p4native.switch.runner import run

    return run(options)

"""How long commands take that have nothing to compute, as ratios to the start of Python itself.

`run()` takes some seconds and returns the rows. A command is measured in turns with the
interpreter, by the processor time of its process, so that other programs disturb it little."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from benchmarks.row import Goal, Row

REPETITIONS = 11
COMMANDS = (("--help",), ("list",), ("run", "--help"))
MOST_S = Goal(0.3, most=True, of_value=True)
"""What a person does not notice as waiting."""


def run() -> list[Row]:
    """Runs the benchmark and returns its rows."""
    return [_row(words) for words in COMMANDS]


def _row(words: tuple[str, ...]) -> Row:
    command = [sys.executable, "-m", "agglab.testbed", *words]
    bare = [sys.executable, "-c", "pass"]
    turns = [(_processor_s(command), _processor_s(bare)) for _ in range(REPETITIONS)]
    command_s, bare_s = (statistics.median(times) for times in zip(*turns, strict=True))
    what = f"agglab {' '.join(words)}"
    return Row("start", what, command_s, "s cpu", "python -c pass", command_s / bare_s, MOST_S)


def _processor_s(command: list[str]) -> float:
    """Returns the processor time of a process, from its start to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime

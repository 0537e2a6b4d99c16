"""What can go wrong in the network part and is worth telling a user."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.paths import program_remedy
from agglab.testbed.terminal import plain

LOG_LINES_SHOWN = 12


class MachineLacks(Exception):
    """The machine lacks something a run needs (exit code 3): what, and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"this machine lacks {what}: {remedy}")
        self.what = what
        self.remedy = remedy


C_COMPILER = ("cc", "apt-get install gcc libc6-dev")


def lacks_program(program: str, remedy: str) -> MachineLacks:
    """As every scenario and `doctor` says it."""
    return MachineLacks(f"the program {program}", program_remedy(remedy))


class ControlError(Exception):
    """A switch refused, or did not answer, what a controller asked: one line with its reason."""


class CouldNotRun(Exception):
    """A program of others' that is on PATH did not run: which, and what it said last."""

    def __init__(self, program: str, said: str) -> None:
        super().__init__(f"{program} could not run: {said}")
        self.program, self.said = program, said

    def __reduce__(self) -> tuple[type[CouldNotRun], tuple[str, str]]:
        return CouldNotRun, (self.program, self.said)


class NodeFailed(Exception):
    """A program of the run did not start, or ended early.

    `str()` is one line; `report()` adds the command, the log's last lines and the likely cause.
    """

    def __init__(
        self, node: str, what: str, command: Sequence[str], log: Path, likely_cause: str = ""
    ) -> None:
        super().__init__(f"{node}: {what}")
        self.node = node
        self.command = tuple(command)
        self.log = log
        self.likely_cause = likely_cause

    def log_tail(self) -> list[str]:
        """The last lines of the program's log; empty when it wrote none."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-LOG_LINES_SHOWN:]

    def report(self) -> str:
        """Several lines for the terminal: what failed, command, log, likely cause."""
        lines = [str(self), f"  command: {' '.join(self.command)}", f"  log: {self.log}"]
        lines += [f"    {line}" for line in self.log_tail()]
        if self.likely_cause:
            lines.append(f"  likely cause: {self.likely_cause}")
        return plain("\n".join(lines))


def exit_in_words(status: int) -> str:
    """A process's exit status (negative: signal) as the end of a sentence."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with exit code {status}"

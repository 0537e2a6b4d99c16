"""Exceptions that the programs and steps of a run raise, and whose messages are shown to the
user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.base.command_lines import program_remedy
from p4native.common.printable import plain

LOG_LINES_SHOWN = 12


class MachineLacks(Exception):
    """Raised if the machine lacks something that a run needs (exit code 3). what: the missing
    thing. remedy: how to get it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"this machine lacks {what}: {remedy}")
        self.what = what
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[MachineLacks], tuple[str, str]]:
        return MachineLacks, (self.what, self.remedy)


class CompileError(Exception):
    """Raised if the compiler refused a program. The text is the compiler's output."""


C_COMPILER = ("cc", "apt-get install gcc libc6-dev")


def lacks_program(program: str, remedy: str) -> MachineLacks:
    """Returns the error for a missing program, with the same words for every scenario and
    `doctor`."""
    return MachineLacks(f"the program {program}", program_remedy(remedy))


class AgentFailed(Exception):
    """Raised if an agent has violated the protocol. The message is one line that names the
    agent."""


class NodeFailed(Exception):
    """Raised if a program of the run did not start, or ended too early.

    `str()` returns one line. `report()` adds the command, the log's last lines and the likely
    cause.
    """

    def __init__(
        self,
        node: str,
        what: str,
        command: Sequence[str],
        log: Path,
        likely_cause: str = "",
        killed: bool = False,
    ) -> None:
        """killed: whether SIGKILL ended the program, which nothing in a run uses unasked."""
        super().__init__(f"{node}: {what}")
        self.killed = killed
        self.node = node
        self.command = tuple(command)
        self.log = log
        self.likely_cause = likely_cause

    def log_tail(self) -> list[str]:
        """Returns the last lines of the program's log; empty if it wrote none."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-LOG_LINES_SHOWN:]

    def report(self) -> str:
        """Returns several lines for the terminal: what failed, the command, the log, and the likely
        cause."""
        lines = [str(self), f"  command: {' '.join(self.command)}", f"  log: {self.log}"]
        lines += [f"    {line}" for line in self.log_tail()]
        if self.likely_cause:
            lines.append(f"  likely cause: {self.likely_cause}")
        return plain("\n".join(lines))

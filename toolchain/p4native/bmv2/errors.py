"""Exceptions about switches that are controlled, and programs that are run, from outside."""

from __future__ import annotations


class ControlError(Exception):
    """Raised if a switch refused a controller's request, or did not answer. The message is one line
    with the reason."""


class CouldNotRun(Exception):
    """Raised if a third-party program on PATH could not be run. program: its name. said: its last
    line of output."""

    def __init__(self, program: str, said: str) -> None:
        super().__init__(f"{program} could not be run: {said}")
        self.program, self.said = program, said

    def __reduce__(self) -> tuple[type[CouldNotRun], tuple[str, str]]:
        return CouldNotRun, (self.program, self.said)

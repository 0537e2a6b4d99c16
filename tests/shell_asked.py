"""A prompt of `agglab shell` without a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agglab.testbed.base.scratch import scratch_folder
from agglab.testbed.cli.shell.command import only
from agglab.testbed.cli.shell.prompt import Prompt
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.scenario import load


class Asked:
    """Carries out lines, and returns what they print."""

    def __init__(self, prompt: Prompt, said: list[str]) -> None:
        self.prompt, self._said = prompt, said

    def __call__(self, *lines: str) -> str:
        self._said.clear()
        for line in lines:
            self.prompt.carry_out(line)
        return "\n".join(self._said)


@contextmanager
def opened(path: Path) -> Iterator[Asked]:
    """Opens a prompt on a scenario in virtual time."""
    said: list[str] = []
    point = only(load(path))
    (prepared,) = compile_points([point])
    with (
        scratch_folder() as scratch,
        Session(point, prepared, scratch, said.append) as session,
    ):
        yield Asked(Prompt(session), said)

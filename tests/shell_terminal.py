"""`agglab shell` on a pseudo-terminal, as a user has it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

from waiting import until

ROOT = Path(__file__).resolve().parents[1]
PROMPT = "agglab> "
BELL = "\x07"
ESCAPE = re.compile(r"\x1b\[[?\d;]*[a-zA-Z]")
SCENARIO = """
name: prompt
backend: virtual
topology: {workers: 3}
switch: {slots: 2, lanes: 4}
workload: {elements: 32, rounds: 4, dtype: int32}
"""


class Terminal:
    """A shell on a pseudo-terminal. text: all that it has shown."""

    def __init__(self, words: Sequence[str], environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "agglab.testbed", "shell", *words]
        own, other = pty.openpty()
        self._own = own
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: take_terminal(other),
            env={**os.environ, "TERM": "dumb", **(environment or {})},
        )
        os.close(other)
        self.text = ""
        self.await_prompt()

    def await_prompt(self) -> str:
        """Returns what is shown until the prompt comes."""
        return self.await_text(PROMPT)

    def await_text(self, wanted: str) -> str:
        """Returns what is shown until this text comes at the end."""
        came = ""
        while not came.endswith(wanted):
            new = self._read()
            assert new, f"the shell has ended: {self.text}"
            came += new
        return came.removesuffix(wanted)

    def _read(self) -> str:
        """Returns the next characters; empty if the shell has ended."""
        select.select([self._own], [], [])
        try:
            new = os.read(self._own, 4096).decode(errors="replace")
        except OSError:
            return ""
        new = ESCAPE.sub("", new.replace("\r\n", "\n")).replace(BELL, "")
        self.text += new
        return new

    def type(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def ask(self, line: str) -> str:
        """Types a line, and returns the answer."""
        self.type(f"{line}\n")
        return self.await_prompt().partition("\n")[2]

    def end(self) -> int:
        """Waits until the shell has ended, and returns its exit code."""
        while self._read():
            pass
        os.close(self._own)
        return self.process.wait()

    def kill(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.end()

    def scratch(self) -> Path:
        """The shell's folder for sockets and results."""
        found: list[Path] = []

        def look() -> list[Path]:
            for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
                path = Path(os.readlink(link))
                found.extend([path.parent] if path.name == "lock" else [])
            return found

        until(look, "the shell has a folder")
        return found[0]


def take_terminal(descriptor: int) -> None:
    """Makes a terminal the one of this process, which leads a session."""
    import fcntl

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)

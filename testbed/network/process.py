"""A program running in a node's namespace."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


class NodeProcess:
    """A program of a node, in a session of its own (Ctrl-C does not reach it), output in a log file."""

    def __init__(
        self,
        node: str,
        name: str,
        command: Sequence[str],
        log: Path,
        popen: subprocess.Popen[bytes],
    ) -> None:
        self.node = node
        self.name = name
        self.command = tuple(command)
        self.log = log
        self._popen = popen

    @property
    def pid(self) -> int:
        return self._popen.pid

    def poll(self) -> int | None:
        """Exit status if it has ended (negative: killed by that signal), else None."""
        return self._popen.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end; subprocess.TimeoutExpired when that takes longer."""
        return self._popen.wait(timeout_s)

    def stop(self, grace_s: float = 2.0) -> int:
        """SIGTERM, then SIGKILL after the grace; returns the exit status."""
        raise NotImplementedError

    def cpu_s(self) -> float:
        """Processor seconds (user + system) so far; the last known value after its end."""
        raise NotImplementedError

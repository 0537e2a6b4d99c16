"""Runs programs in the namespaces of nodes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
# Fields 14 and 15 of /proc/<pid>/stat, counted after the `)` that ends the command's name.
UTIME, STIME = 11, 12
# Of the nodes' programs, so that what else the machine does slows an emulated network less.
NICENESS = -10


class NodeProcess:
    """A program that runs in a node's namespace. It has a separate session, so that Ctrl-C does not
    reach it.

    Both of its output streams go to `log`.
    """

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
        self._cpu_s = 0.0

    @property
    def pid(self) -> int:
        return self._popen.pid

    def poll(self) -> int | None:
        """Returns the exit status if the program has ended (-n if signal n killed it), else
        None."""
        if self._popen.returncode is None:
            # A zombie still shows its times; reaping it loses them.
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._cpu_s = _cpu_s(self.pid)
        return self._popen.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Waits until the program ends and returns the exit status. Raises TimeoutExpired if that
        takes longer than `timeout_s` seconds."""
        if self._popen.returncode is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                select.select([descriptor], [], [], timeout_s)
            finally:
                os.close(descriptor)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self.command, timeout_s or 0)
        return status

    def stop(self, grace_s: float = 2.0) -> int:
        """Sends SIGTERM to the program and its children, and SIGKILL after the grace period.
        Returns the exit status."""
        stop_all([self], grace_s)
        return self.wait()

    def signal_group(self, number: int) -> None:
        """Signals the program and the children in its group; does nothing if it has ended."""
        if self.poll() is None:
            os.killpg(self.pid, number)

    def cpu_s(self) -> float:
        """Returns the processor seconds (user and system) that the program has used so far. After
        its end, returns the last known value."""
        if self.poll() is None:
            self._cpu_s = _cpu_s(self.pid)
        return self._cpu_s


def put_first(pid: int) -> None:
    """Gives a process that leads a session the niceness NICENESS. Does nothing if that is not
    allowed.

    With autogroups (sched(7)) the scheduler weighs sessions, and a process's niceness counts only
    within its session. Therefore the session's niceness is set as well.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(NICENESS))


def stop_all(processes: Sequence[NodeProcess], grace_s: float = 2.0) -> None:
    """Sends SIGTERM to all processes, and SIGKILL to those that are left after one common grace
    period. Waits until all have ended."""
    for process in processes:
        process.signal_group(signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.signal_group(signal.SIGKILL)
            process.wait()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[UTIME]) + int(fields[STIME])) / CLOCK_TICKS

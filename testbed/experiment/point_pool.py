"""Runs points of a sweep concurrently, each in a separate process."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import mean
from typing import TextIO

from agglab.testbed.base import processors, signals
from agglab.testbed.base.exit_codes import FAILED, INTERRUPTED, PASSED
from agglab.testbed.base.kernel import die_with_parent
from agglab.testbed.experiment.point_group import Group, ends_sweep, progress_text
from p4native.common.processes import exit_in_words


class PointPool:
    """Runs points concurrently. A point whose process was killed is run once more after all others,
    because what killed it may be gone by then, such as a lack of memory."""

    def __init__(
        self,
        groups: Sequence[Group],
        processes: int,
        conduct: Callable[[Group, Path, TextIO], int],
        say: Callable[[str], None],
    ) -> None:
        """processes: how many points run at once. conduct: the function that runs a point, and
        returns its exit code. say: the function that prints a line."""
        self._waiting, self._of = list(groups), len(groups)
        self._processes, self._conduct, self._say = processes, conduct, say
        self._running: dict[int, tuple[Group, BaseProcess, float]] = {}
        self._repeated: set[int] = set()
        self._took_s: list[float] = []

    def run(self, scratch: Path) -> int:
        """Runs the points; returns the same as Points.run."""
        code = PASSED
        try:
            while self._running or (self._waiting and not ends_sweep(code)):
                self._fill(scratch, code)
                for sentinel in connection.wait(list(self._running)):
                    assert isinstance(sentinel, int)
                    code = max(code, self._end(sentinel))
        except KeyboardInterrupt:
            self._stop()
            return INTERRUPTED
        return code

    def _fill(self, scratch: Path, code: int) -> None:
        """Begins as many points as may run, if the exit code of the others so far allows it."""
        while self._waiting and not ends_sweep(code) and len(self._running) < self._processes:
            self._begin(self._waiting.pop(0), scratch)

    def _begin(self, group: Group, scratch: Path) -> None:
        """Starts a process for the point by fork. Therefore no part of a point has to be pickled,
        which may be impossible for a user's own system."""
        with signals.blocked() as before:
            work = multiprocessing.get_context("fork").Process(
                target=self._child, args=(group, scratch, os.getpid(), before)
            )
            work.start()
            self._running[work.sentinel] = group, work, time.monotonic()

    def _child(
        self, group: Group, scratch: Path, parent: int, blocked: set[signal.Signals]
    ) -> None:
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if self._processes > 1:
            processors.leave_one()
        sys.exit(self._conduct(group, scratch, io.StringIO()))

    def _end(self, sentinel: int) -> int:
        """Handles the end of a process, and returns the exit code of its point. A point that waits
        for its repetition counts as PASSED until then."""
        group, work, began_s = self._running.pop(sentinel)
        work.join()
        status = work.exitcode or PASSED
        if status < 0:
            return self._killed(group, exit_in_words(status))
        self._took_s.append(time.monotonic() - began_s)
        self._ended(group)
        return status

    def _killed(self, group: Group, how: str) -> int:
        if group.number not in self._repeated:
            self._repeated.add(group.number)
            self._waiting.append(group)
            self._say(f"{group.label} {how}; it will be run once more")
            return PASSED
        group.fail(f"its process {how}, twice")
        self._ended(group, f" {how} again; the sweep goes on without it")
        return FAILED

    def _ended(self, group: Group, how: str = "") -> None:
        left = len(self._waiting) + len(self._running)
        left_s = left * mean(self._took_s or [0]) / self._processes
        self._say(f"{group.label}{how} ({progress_text(self._of - left, left, left_s)})")

    def _stop(self) -> None:
        """Interrupts all points. Ctrl-C reaches all processes of a terminal, but SIGTERM reaches
        only the one to which it is sent."""
        for _, work, _ in self._running.values():
            if work.pid:
                os.kill(work.pid, signal.SIGINT)
        for _, work, _ in self._running.values():
            work.join()

"""Runs the points of a suite, one after the other or concurrently, each in its own folder. Points
that are already finished in that folder, by an earlier run of the same suite, are kept."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import mean
from typing import TextIO

from agglab.testbed import dask_points, processors, signals
from agglab.testbed.exit_codes import INTERRUPTED, PASSED
from agglab.testbed.group import Run, take_turns
from agglab.testbed.kernel import die_with_parent
from agglab.testbed.machine_facts import code_sha256, memory_available_bytes
from agglab.testbed.metrics import memory_needed_bytes
from agglab.testbed.point_group import Group, progress_text
from agglab.testbed.prepare import Prepared
from agglab.testbed.record import RunFolder, point_folder
from agglab.testbed.scenario import Point, Suite, to_yaml
from agglab.testbed.scenario.load import POINTS_MAX
from agglab.testbed.terminal import plain

SIGNALLED = 128


def in_random_order(groups: Sequence[Group], seed: int) -> list[Group]:
    """Returns the points in random order, so that changes of the machine over time do not look like
    effects of a swept key. If all points are in virtual time, they keep their order."""
    if all(point.resolved.virtual for group in groups for point, _ in group.runs):
        return list(groups)
    return random.Random(f"{seed}/order of points").sample(groups, len(groups))


class Points:
    """The points of a suite. folder: the suite's folder. processes: how many points may run at
    once."""

    def __init__(
        self,
        suite: Suite,
        prepared: Sequence[Prepared],
        folder: RunFolder,
        processes: int,
        out: TextIO,
        scheduler: str | None = None,
    ) -> None:
        """scheduler: the address of a Dask scheduler that runs the points on other machines; None
        to run them here."""
        self._suite, self._folder, self._out = suite, folder, out
        self._processes, self._scheduler = processes, scheduler
        numbered = iter(prepared)
        self._code = code = code_sha256()
        self._groups = [
            self._group(number, group, [next(numbered) for _ in group], code)
            for number, group in enumerate(suite.groups)
        ]

    def _group(
        self, number: int, points: Sequence[Point], prepared: Sequence[Prepared], code: str
    ) -> Group:
        path = self._folder.path
        own = (
            RunFolder(path / point_folder(number), new=False) if self._suite.axes else self._folder
        )
        runs = tuple(zip(points, prepared, strict=True))
        return Group(number, plain(points[0].label), runs, own, key_of(runs, code))

    def run(self, scratch: Path) -> int:
        """Runs the points that are not finished. Returns PASSED, or the exit code of the first
        point that was aborted. No other point is begun after that one."""
        waiting = [group for group in self._groups if not group.is_done]
        if len(waiting) < len(self._groups):
            kept = len(self._groups) - len(waiting)
            self._say(f"{kept} of {len(self._groups)} points were already finished")
        if self._scheduler:
            return dask_points.run(self._scheduler, waiting, self._code, self._say)
        if self._processes > 1 and len(waiting) > 1:
            return _ProcessPool(waiting, self._processes, self._conduct, self._say).run(scratch)
        for group in in_random_order(waiting, self._suite.points[0].resolved.seed):
            if self._suite.axes:
                self._say(f"{group.label} ({group.number + 1} of {len(self._groups)})")
            if code := self._conduct(group, scratch, self._out):
                return code
        return PASSED

    def _say(self, text: str) -> None:
        print(f"{self._suite.name}: {text}", file=self._out, flush=True)

    def _conduct(self, group: Group, scratch: Path, out: TextIO) -> int:
        """Runs the runs of one point in turns."""
        if self._suite.axes:
            return conduct(group, scratch, out)
        return take_turns(_runs(group, self._folder, scratch, out))


def conduct(group: Group, scratch: Path, out: TextIO) -> int:
    """Runs the runs of one point of a sweep in turns, in a new folder that replaces the point's old
    one. Returns PASSED, or the exit code of the first run that was aborted."""
    shutil.rmtree(group.folder.path, ignore_errors=True)
    own = RunFolder(group.folder.path)
    runs = _runs(group, own, scratch, out)
    for run, (point, _) in zip(runs, group.runs, strict=True):
        if run.folder is own:
            own.write("scenario.yaml", to_yaml(point.resolved))
    if code := take_turns(runs):
        return code
    group.finish()
    return PASSED


def _runs(group: Group, own: RunFolder, scratch: Path, out: TextIO) -> list[Run]:
    runs = []
    for number, (point, prepared) in enumerate(group.runs):
        place = own
        if point.contender:
            place = own.contender(point.contender)
            place.write("scenario.yaml", to_yaml(point.resolved))
        # Not the contender's name: the path of a Unix socket has at most 107 bytes.
        sockets = scratch / f"{group.number}-{number}"
        runs.append(Run(point, prepared, place, sockets, out))
    return runs


class _ProcessPool:
    """Runs points concurrently, each in a separate process."""

    def __init__(
        self,
        groups: Sequence[Group],
        processes: int,
        conduct: Callable[[Group, Path, TextIO], int],
        say: Callable[[str], None],
    ) -> None:
        self._waiting, self._of = list(groups), len(groups)
        self._processes, self._conduct, self._say = processes, conduct, say
        self._running: dict[int, tuple[Group, BaseProcess, float]] = {}
        self._took_s: list[float] = []

    def run(self, scratch: Path) -> int:
        """Runs the points; returns the same as Points.run."""
        code = PASSED
        try:
            while self._running or (self._waiting and not code):
                while self._waiting and not code and len(self._running) < self._processes:
                    self._begin(self._waiting.pop(0), scratch)
                for sentinel in connection.wait(list(self._running)):
                    assert isinstance(sentinel, int)
                    ended = self._end(sentinel)
                    code = code or ended
        except KeyboardInterrupt:
            self._stop()
            return INTERRUPTED
        return code

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
        """Handles the end of a process, and returns its exit code."""
        group, work, began_s = self._running.pop(sentinel)
        work.join()
        status = work.exitcode or PASSED
        self._took_s.append(time.monotonic() - began_s)
        ended = len(self._took_s)
        left = self._of - ended
        left_s = left * mean(self._took_s) / self._processes
        self._say(f"{group.label} ({progress_text(ended, left, left_s)})")
        return SIGNALLED - status if status < 0 else status

    def _stop(self) -> None:
        """Interrupts all points. Ctrl-C reaches all processes of a terminal, but SIGTERM reaches
        only the one to which it is sent."""
        for _, work, _ in self._running.values():
            if work.pid:
                os.kill(work.pid, signal.SIGINT)
        for _, work, _ in self._running.values():
            work.join()


def processes_for(suite: Suite, asked: int | None) -> int:
    """Returns how many points of a suite run at once. This is `asked` if the user has given it;
    otherwise it follows from the number of processors and the memory. Runs on real links measure
    the machine, so their points run one at a time."""
    if any(not point.resolved.virtual for point in suite.points):
        return 1
    if asked:
        return asked
    need = max(sum(memory_needed_bytes(p.resolved) for p in group) for group in suite.groups)
    fitting = memory_available_bytes() // need if need else POINTS_MAX
    return max(1, min(len(os.sched_getaffinity(0)), fitting))


def key_of(runs: Sequence[tuple[Point, Prepared]], code: str) -> str:
    """Returns a hash of everything on which the results of a point depend. Modules that the user's
    own modules import are not included."""
    digest = hashlib.sha256(code.encode())
    for point, prepared in runs:
        digest.update(to_yaml(point.resolved).encode())
        for switch, program in sorted(prepared.programs.items()):
            digest.update(f"{switch} {program.json_sha256}".encode())
        for path in sorted(_own_files(point)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _own_files(point: Point) -> set[Path]:
    """Returns the user's own Python files and table entries."""
    scenario = point.resolved.scenario
    specs = [scenario.system, scenario.workload.worker, *(j.workload.worker for j in scenario.jobs)]
    named = {Path(spec.rpartition(":")[0]) for spec in specs if ".py:" in spec}
    entries = Path(scenario.switch.entries) if scenario.switch.entries else None
    if entries and entries.is_dir():
        named |= set(entries.iterdir())
    elif entries:
        named.add(entries)
    return {path for path in named if path.is_file()}

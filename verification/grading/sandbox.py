"""Processes in which submissions are judged: with limits, with an own temporary folder, and without
a network where the kernel has namespaces. They report verdicts as lines through a pipe, and nothing
of them is left when they have ended."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from agglab.testbed.base import kernel
from agglab.testbed.base.scratch import note_elsewhere, scratch_folder
from agglab.verification.grading.result import Judged
from p4native.common.c_build import cache_folder

Report = Callable[[Judged], None]
Work = Callable[[Path, Report], None]
"""What a process does. It takes its folder, and a function that reports verdicts."""
PREFIX = "agglab-grade-"
OUT_OF_MEMORY = 77
ANSWER_BYTES_MAX = 4 << 20
GENERATED = "switch"
"""The part of the cache that has programs compiled to native code."""


@dataclass(frozen=True)
class Limits:
    """The limits of one submission. cpu_s, memory_bytes: of each of its processes. folder_bytes: of
    all its files together."""

    cpu_s: int = 60
    wall_s: int = 180
    memory_bytes: int = 3 << 30
    file_bytes: int = 64 << 20
    folder_bytes: int = 512 << 20
    processes: int = 256


@dataclass(frozen=True)
class Task:
    """A submission to be judged. hidden: files that its processes cannot read. compiles: whether a
    program of the student's is compiled to native code, which must not stay in the user's cache."""

    name: str
    work: Work
    hidden: Sequence[Path] = ()
    compiles: bool = True


@dataclass(frozen=True)
class Ended:
    """What became of a task. why: why judging ended early, as a sentence; empty if it did not."""

    judged: tuple[Judged, ...]
    why: str


def run(tasks: Sequence[Task], limits: Limits, at_once: int) -> Iterator[tuple[int, Ended]]:
    """Judges tasks, `at_once` at a time. Yields the index of each and what became of it, as soon as
    it has ended."""
    waiting = list(enumerate(tasks))[::-1]
    running: dict[int, _Process] = {}
    with scratch_folder() as scratch, selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    index, task = waiting.pop()
                    running[index] = process = _Process(task, limits, scratch)
                    selector.register(process.pipe, selectors.EVENT_READ, index)
                for index in _finished(selector, running):
                    process = running.pop(index)
                    selector.unregister(process.pipe)
                    yield index, process.end()
        finally:
            for process in running.values():
                process.end()


def _finished(selector: selectors.BaseSelector, running: dict[int, _Process]) -> list[int]:
    """Waits until a process reports something or one has used up its time. Returns the indices of
    those that have ended or are to be ended."""
    left_s = min(process.deadline_s for process in running.values()) - time.monotonic()
    ready = [key.data for key, _ in selector.select(max(0.0, left_s))]
    over = {index for index in ready if not running[index].read()}
    now_s = time.monotonic()
    return sorted(over | {i for i, process in running.items() if process.deadline_s <= now_s})


class _Process:
    """One judging process, seen from its parent."""

    def __init__(self, task: Task, limits: Limits, scratch: Path) -> None:
        """scratch: where the process's folder is noted, so that it is removed even if this process
        is killed."""
        self.deadline_s = time.monotonic() + limits.wall_s
        self._limits = limits
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        note_elsewhere(scratch, self._folder)
        self._lines, self._is_at_end = b"", False
        self.pipe, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.pipe)
            _gate(parent, task, self._folder, limits, write)
        os.close(write)

    def read(self) -> bool:
        """Reads what the process has reported. Returns False at the end, and if it is too much."""
        chunk = os.read(self.pipe, 1 << 16)
        self._lines += chunk
        self._is_at_end = not chunk
        return bool(chunk) and len(self._lines) < ANSWER_BYTES_MAX

    def end(self) -> Ended:
        """Ends the process, removes its folder and returns what it has reported."""
        is_late = not self._is_at_end and time.monotonic() >= self.deadline_s
        if not self._is_at_end:
            self._kill()
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self._kill()
        _, status = os.waitpid(self._pid, 0)
        os.close(self.pipe)
        shutil.rmtree(self._folder, ignore_errors=True)
        lines = self._lines.decode("utf-8", "replace").split("\n")[:-1]
        return Ended(tuple(map(Judged.of, lines)), self._why(status, is_late))

    def _kill(self) -> None:
        """Kills what is left of the process's group, whose number is taken until the process has
        been waited for. A pid namespace dies with its first process."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def _why(self, status: int, is_late: bool) -> str:
        code = os.waitstatus_to_exitcode(status)
        if code == 0 and not is_late:
            return ""
        if is_late:
            return f"It had not ended after {self._limits.wall_s} s."
        if code == 128 + signal.SIGXCPU:
            return f"It used more than {self._limits.cpu_s} s of processor time."
        if code == OUT_OF_MEMORY:
            return f"It needed more than {self._limits.memory_bytes >> 20} MiB of memory."
        return f"Judging it ended with exit code {code}."


def _gate(parent: int, task: Task, folder: Path, limits: Limits, write: int) -> NoReturn:
    """Enters new namespaces, and forks the first process of the pid namespace. Signals do not end
    that one, so it forks the process that judges. Each ends as its child ends."""
    try:
        os.setsid()
        kernel.die_with_parent(parent)
        isolate(task.hidden, folder, limits.folder_bytes)
        _end_as(lambda: _end_as(lambda: _judge(task, folder, limits, write), write), write)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _end_as(child: Callable[[], NoReturn], write: int) -> NoReturn:
    """Forks, calls `child` in the child, and ends with the same exit code."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        kernel.die_with_parent(parent)
        child()
    os.close(write)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def isolate(hidden: Sequence[Path], folder: Path, folder_bytes: int) -> bool:
    """Moves this process into new namespaces, in which the hidden files are empty, and the folder
    is in memory, has room for so many bytes, and is gone when the processes are. Its next child is
    the first process of the new pid namespace. Returns whether the kernel allows that; without it,
    the other limits still hold."""
    try:
        kernel.enter_namespaces(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID)
        options = f"size={folder_bytes},mode=700"
        kernel.mount("tmpfs", str(folder), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        for path in hidden:
            kernel.mount(os.devnull, str(path), "none", kernel.MS_BIND)
    except OSError:
        return False
    return True


def _judge(task: Task, folder: Path, limits: Limits, write: int) -> NoReturn:
    try:
        _limit(limits)
        if task.compiles:
            _private_cache(folder)
        os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        task.work(folder, lambda judged: _write(write, judged))
        os._exit(0)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _write(pipe: int, judged: Judged) -> None:
    line = f"{judged.line()}\n".encode()
    while line:
        line = line[os.write(pipe, line) :]


def _limit(limits: Limits) -> None:
    for kind, most in (
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most + 1 if kind == resource.RLIMIT_CPU else most))


def _private_cache(folder: Path) -> None:
    """Lets everything that is compiled for this submission be kept in its folder. The libraries
    that all submissions use are links to those of the user's cache."""
    cache = folder / "cache"
    cache.mkdir(mode=0o700)
    shared = cache_folder()
    for part in shared.iterdir() if shared.is_dir() else ():
        if part.name != GENERATED:
            (cache / part.name).symlink_to(part.resolve())
    os.environ["P4NATIVE_CACHE"] = str(cache)

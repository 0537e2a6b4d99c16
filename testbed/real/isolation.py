"""Runs a function in new network, mount and pid namespaces. However the function ends, the kernel
removes everything in them.

There are four processes. Each is the child of the one before it in this list, and the kernel kills
it when that one dies:

    outer    the user's `agglab run`; creates and removes the scratch directory
    gate     has created the new namespaces, and is in all of them except pid
    init     process 1 of the pid namespace: reaps orphans; when it dies the kernel kills all others
    run      the caller's function

Therefore SIGKILL of any of them ends all of them, and every program, interface and namespace of the
run.

The mount namespace is private: mounts made in it are not visible outside. Only the scratch
directory is outside the namespaces (testbed/base/scratch.py), and `outer` holds the lock on it.
Without root, `gate` first becomes root of a new user namespace.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from agglab.testbed.base import kernel, signals
from agglab.testbed.base.scratch import scratch_folder

INTERRUPTED = 130

# make, timeout and the terminal may each deliver the same Ctrl-C; only a later one means "at once".
PATIENCE_S = 1.0


def isolated(run: Callable[[Path], int]) -> int:
    """Calls `run(scratch)` in a forked child inside new namespaces, and returns the exit code of
    `run`.

    scratch: a private directory with a short path (for Unix sockets), which is removed afterwards.
    Ctrl-C, SIGTERM and SIGHUP reach `run` once, as KeyboardInterrupt. If another of these signals
    arrives more than PATIENCE_S seconds later, it kills `run`. Returns INTERRUPTED for an uncaught
    KeyboardInterrupt, and 128 + n if signal n killed the run. It must be called from the main
    thread. Other threads do not exist in the forked child.
    """
    with scratch_folder() as scratch:
        return _supervise(lambda: _gate(lambda: _init(lambda: _run(run, scratch))))


def _supervise(child: Callable[[], NoReturn], orphans: bool = False) -> int:
    """Forks, calls `child` in the child, passes signals on to it, waits, and returns its exit code.

    orphans: whether to reap also processes that this process did not start (process 1 inherits
    them).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # Blocked until each side has its handlers, so that no signal falls between fork and handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _child(child, parent)
    relay = _Relay(pid)
    previous = {number: signal.signal(number, relay) for number in _handled_signals()}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ENDING)
    try:
        return _wait(pid, orphans)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _handled_signals() -> list[signal.Signals]:
    """Returns the signals to handle. SIGHUP is not handled if it is ignored (nohup). SIGINT is
    handled even if it was ignored, because shells ignore it for any `command &`."""
    hup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in signals.ENDING if not (number is signal.SIGHUP and hup_ignored)]


def _child(body: Callable[[], NoReturn], parent: int) -> NoReturn:
    """Runs `body` in a forked process, which is killed when its parent ends. Never returns."""
    try:
        kernel.die_with_parent(parent)
        body()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


class _Relay:
    """A signal handler that passes signals on to a process: the first one as SIGTERM, and those
    that arrive more than PATIENCE_S seconds later as SIGKILL."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        impatient = now - self._first > PATIENCE_S
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL if impatient else signal.SIGTERM)


def _wait(pid: int, orphans: bool) -> int:
    while True:
        ended, status = os.waitpid(-1 if orphans else pid, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _gate(init: Callable[[], NoReturn]) -> NoReturn:
    kernel.enter_namespaces(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID)
    os._exit(_supervise(init))


def _init(run: Callable[[], NoReturn]) -> NoReturn:
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", "proc", flags)
    os._exit(_supervise(run, orphans=True))


def _run(run: Callable[[Path], int], scratch: Path) -> NoReturn:
    interrupt = _InterruptOnce()
    for number in _handled_signals():
        signal.signal(number, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ENDING)
    try:
        code = run(scratch)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as exit_request:
        code = exit_request.code if isinstance(exit_request.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _InterruptOnce:
    """A signal handler that turns the first signal into KeyboardInterrupt and ignores later ones,
    so that they do not interrupt the clean-up.

    With SIG_IGN instead of this handler, Python would complain about signals that arrived just
    before.
    """

    def __init__(self) -> None:
        self._came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self._came:
            self._came = True
            raise KeyboardInterrupt

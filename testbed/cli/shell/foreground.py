"""Runs a program in the terminal's foreground, so that Ctrl-C reaches it and not the prompt."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence


def in_front(command: Sequence[str]) -> int:
    """Runs a program with the terminal, and returns its exit code. If the prompt is no terminal,
    the lines there are not for the program."""
    if not sys.stdin.isatty():
        return subprocess.run(command, stdin=subprocess.DEVNULL).returncode
    if os.getpgrp() == 0:  # the group's leader is outside of this pid namespace
        os.setpgid(0, 0)
    # Not Popen with a preexec_fn: it forks, and gRPC's threads make the child abort.
    child = os.posix_spawnp(
        command[0], list(command), os.environ, setpgroup=0, setsigdef=[signal.SIGPIPE]
    )
    try:
        give_terminal(child)
        return _ended(child)
    finally:
        give_terminal(os.getpgrp())


def give_terminal(group: int) -> None:
    """Makes a process group the foreground of the terminal."""
    with _undisturbed(), contextlib.suppress(OSError):  # its last process may just have ended
        os.tcsetpgrp(sys.stdin.fileno(), group)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keeps the kernel from stopping this process because it is not in the foreground itself."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, before)


def _ended(child: int) -> int:
    """Waits until a program has ended, and returns its exit code. It goes on at once if it stops
    (because of Ctrl-Z, or because it has read from the terminal before it had it), because there is
    nothing here that would let it go on later."""
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        os.killpg(child, signal.SIGCONT)

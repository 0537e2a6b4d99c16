"""System calls that Python 3.10 has no name for: namespaces, mounts, parent-death signals."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: object) -> int:
    """Call libc's function; OSError with its name when it returns a negative number."""
    result = int(getattr(_libc, function)(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", flags)


def mount(source: str, target: str, kind: str, flags: int) -> None:
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        None,
    )


def die_with_parent(parent: int) -> None:
    """SIGKILL this process when the thread that forked it ends; `parent` is that process's pid."""
    _call("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    # The parent may have died before prctl; 0 is a parent outside this pid namespace.
    if os.getppid() not in (parent, 0):
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def network_namespace(pid: int) -> Iterator[None]:
    """The calling thread, and programs it starts, are in process pid's network namespace inside."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        away = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _call("setns", away, CLONE_NEWNET)
        finally:
            os.close(away)
        try:
            yield
        finally:
            _call("setns", home, CLONE_NEWNET)
    finally:
        os.close(home)

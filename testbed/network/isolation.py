"""A run in network, mount and pid namespaces of its own: whatever way it ends, the kernel removes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

INTERRUPTED = 130


def isolated(run: Callable[[Path], int]) -> int:
    """Call `run(scratch)` in a forked child inside fresh namespaces and return its exit code.

    scratch: a private directory with a short path (for Unix sockets), gone afterwards.
    Ctrl-C, SIGTERM and SIGHUP reach `run` once, as KeyboardInterrupt; if it does not end by itself then, a
    second signal kills it. Returns INTERRUPTED for an uncaught KeyboardInterrupt, 128 + n when signal n
    killed the run. Call it from the main thread, with no other threads that matter: the run is a fork.
    """
    raise NotImplementedError


def remove_stale() -> list[str]:
    """Remove what killed runs left behind (their scratch directories) and return what was removed.

    Only directories that a run recorded as its own and whose run is dead. `isolated` calls it first.
    """
    raise NotImplementedError

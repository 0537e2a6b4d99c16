"""The signals that end a run, and how they wait while the process forks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Each of them is handled like Ctrl-C."""


@contextmanager
def blocked() -> Iterator[set[signal.Signals]]:
    """Lets signals that end a run wait until the context is left. Yields the signals that are
    blocked outside it, which a process forked in the context has to set again.

    At a fork, Python calls functions of its library whose exceptions it prints and forgets. A
    KeyboardInterrupt that is raised in one of them would be lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield {signal.Signals(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

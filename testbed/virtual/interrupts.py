"""Keeps Ctrl-C waiting while C code runs that calls Python.

Python raises KeyboardInterrupt wherever it happens to be. That is mostly the beginning of a
function that C code calls, and an exception cannot pass through C code: it would be printed and
forgotten, together with what the function was called for.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from agglab.testbed.base import signals


@contextmanager
def interrupts_wait(tell: Callable[[], None]) -> Iterator[Sequence[int]]:
    """Lets signals that come in the context wait until it is left. Yields those that have come.
    tell: called as soon as one comes. Only signals with a handler in Python wait."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        tell()

    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():  # others handle no signals
        for each in signals.ENDING:
            handler = signal.getsignal(each)
            if callable(handler):
                handlers[each] = handler
                signal.signal(each, note)
    try:
        yield came
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            handlers[number](number, None)

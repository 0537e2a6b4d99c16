"""Keeps Ctrl-C waiting while C code runs that calls Python.

Python raises KeyboardInterrupt wherever it happens to be. That is mostly the beginning of a
function that C code calls, and an exception cannot pass through C code: it would be printed and
forgotten, together with what the function was called for.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A context manager. Signals that come in the context are handled when it is left. tell: called
    as soon as one comes. Only signals with a handler in Python wait."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.came: list[int] = []

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():  # others handle no signals
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came.append(number)
        self._tell()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for number in self.came:
            self._handlers[number](number, None)

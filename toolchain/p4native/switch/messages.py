"""Writes the running program's messages (log_msg, asserts, traces) to the switch's log."""

from __future__ import annotations

import threading
from collections.abc import Callable

from p4native.switch.pipeline import Pipeline

PERIOD_S = 0.02


class MessageLog:
    """A log of a program's messages, which a thread writes. Call its
    `set_pipeline` in place of the data plane's, so that the last messages of a replaced pipeline
    are written, too."""

    def __init__(
        self, set_pipeline: Callable[[Pipeline | None], None], write: Callable[[str], None]
    ) -> None:
        self._set_pipeline = set_pipeline
        self._write = write
        self._pipeline: Pipeline | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def set_pipeline(self, pipeline: Pipeline | None) -> None:
        """Makes the data plane run another program."""
        with self._lock:
            self._set_pipeline(pipeline)
            self._take()
            self._pipeline = pipeline

    def start(self) -> MessageLog:
        """Starts writing messages."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Writes the remaining messages and stops."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            with self._lock:
                self._take()
        with self._lock:
            self._take()

    def _take(self) -> None:
        if self._pipeline is not None:
            for line in self._pipeline.take_messages():
                self._write(line)

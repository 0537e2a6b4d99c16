"""What the running program says (log_msg, asserts, traces), into the switch's log."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agglab.switch.pipeline import Pipeline

PERIOD_S = 0.02


class MessageLog:
    """Stands before `install`, so that no pipeline is replaced before its last words are taken."""

    def __init__(
        self, install: Callable[[Pipeline | None], None], write: Callable[[str], None]
    ) -> None:
        self._install = install
        self._write = write
        self._pipeline: Pipeline | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def install(self, pipeline: Pipeline | None) -> None:
        """Make the data plane run another program."""
        with self._lock:
            self._install(pipeline)
            self._take()
            self._pipeline = pipeline

    def start(self) -> MessageLog:
        """Write messages from now on."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Write what is left and end."""
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

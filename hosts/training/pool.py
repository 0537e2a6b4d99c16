"""A pool of threads for calls that may wait for each other. This module imports nothing of
`hosts`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Pool:
    """A pool of threads that begins every call at once, in an idle thread or in a new one. The
    number of threads is not limited, because a callback of a finished reduction may wait for a
    later reduction. The threads do not keep the interpreter from ending."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        self._closed = False
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def run(self, call: Callable[[], None]) -> None:
        """Begins a call in a thread of the pool. Calls begin in the order in which `run` was
        called."""
        with self._lock:
            needed = self._idle == 0 and not self._closed
            self._idle -= not needed
            closed = self._closed
        if closed:
            threading.Thread(target=call, name="agglab-callback", daemon=True).start()
            return
        self._calls.put(call)
        if needed:
            thread = threading.Thread(target=self._work, name="agglab-callback", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self, within_s: float) -> None:
        """Lets threads end when they are idle. Waits for each thread for at most `within_s`
        seconds."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(within_s)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            with self._lock:
                self._idle += 1

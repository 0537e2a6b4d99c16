"""The clock of virtual time: what happens next, in whole nanoseconds."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[[Any], None]


class Clock:
    """Actions at times. What is due at the same time happens in the order it was asked for."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.happened = 0
        """Actions carried out so far."""
        self._sequence = 0
        self._waiting: list[tuple[int, int, Action, Any]] = []

    def at(self, time_ns: int, action: Action, argument: Any) -> None:
        """Call `action(argument)` at a time that is not past."""
        assert time_ns >= self.now_ns, "time does not go back"
        self._sequence += 1
        heapq.heappush(self._waiting, (time_ns, self._sequence, action, argument))

    def run(self, until_ns: int, stop: Callable[[], bool]) -> bool:
        """Go on until `stop()` is true after an action (returns True), or up to `until_ns`."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= until_ns:
            self.now_ns, _, action, argument = heapq.heappop(waiting)
            self.happened += 1
            action(argument)
            if stop():
                return True
        self.now_ns = max(self.now_ns, until_ns)
        return False

    @property
    def idle(self) -> bool:
        """Nothing will ever happen unless somebody asks for it."""
        return not self._waiting

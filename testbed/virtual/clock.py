"""The clock of virtual time: what happens next, in whole nanoseconds."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[[Any], None]
AT_ONCE_MAX = 1_000_000
"""Actions at one moment; thousands of workers that begin together need a hundredth of it."""


class NeverEnds(RuntimeError):
    """Virtual time has passed the limit that was set for it, or stands still."""


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
        """Go on until `stop()` is true after an action (returns True), or up to `until_ns`. Raises
        NeverEnds where actions ask for others at the same moment without end."""
        waiting = self._waiting
        at_once = 0
        while waiting and waiting[0][0] <= until_ns:
            time_ns, _, action, argument = heapq.heappop(waiting)
            at_once = 0 if time_ns > self.now_ns else at_once + 1
            if at_once > AT_ONCE_MAX:
                raise NeverEnds(f"virtual time stands still at {time_ns / 1e9:g} s")
            self.now_ns = time_ns
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

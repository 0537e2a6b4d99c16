"""The clock of virtual time: what happens next, in whole nanoseconds (native/clock.c)."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

from agglab.testbed.virtual import native

Action = Callable[[Any], None]
Answer = Callable[[int, bytes], None]
"""The function that answers a question, given its number and data."""
AT_ONCE_MAX = 1_000_000
"""Actions at one moment; thousands of workers that begin together need a hundredth of it."""
ACTIONS_A_CALL = 100_000
"""The number of events after which Python looks for Ctrl-C."""

# `enum question` of native/clock.h.
ACTION, FRAME, HIT, DATAGRAM, TIMER, FINISH, FAILED, AGAIN, EMITTED, PROCESSED, ARRIVED = range(11)
# `enum reason`.
IS_OVER, WAS_STOPPED, HAS_MORE, STANDS_STILL = range(4)


class NeverEnds(RuntimeError):
    """Virtual time has passed the limit that was set for it, or stands still."""


class _State(ctypes.Structure):
    """The beginning of `struct clock`."""

    _fields_ = [
        ("now_ns", ctypes.c_int64),
        *[(name, ctypes.c_uint64) for name in ("happened", "waiting", "at_once")],
        *[(name, ctypes.c_uint32) for name in ("stop", "no_memory")],
    ]


class Clock:
    """Actions at times. What is due at the same time happens in the order it was asked for.

    Links, switches and hosts in C act on the same clock, and ask Python through `answer`.
    """

    def __init__(self) -> None:
        self.library = native.load()
        assert self.library.clock_layout() == ctypes.sizeof(_State), "clock.h and clock.py differ"
        self._ask = native.Ask(self._asked)
        self.address: int = self.library.clock_new(self._ask)
        if not self.address:
            raise MemoryError
        self._state = _State.from_address(self.address)
        self._actions: dict[int, tuple[Action, Any]] = {}
        self._numbers = itertools.count()
        self._answers: dict[tuple[int, int], Answer] = {(HIT, 0): lambda number, data: None}
        self._stop: Callable[[], bool] = lambda: False
        self._error: BaseException | None = None

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.library.clock_free(self.address)

    @property
    def now_ns(self) -> int:
        return self._state.now_ns

    @property
    def happened(self) -> int:
        """Actions carried out so far."""
        return self._state.happened

    def at(self, time_ns: int, action: Action, argument: Any) -> None:
        """Call `action(argument)` at a time that is not past."""
        assert time_ns >= self.now_ns, "time does not go back"
        number = next(self._numbers)
        self._actions[number] = action, argument
        self.library.clock_ask_at(self.address, time_ns, number)

    def answer(self, question: int, subject: int, answer: Answer) -> None:
        """Call `answer` when C asks a question about one of Python's objects, 0 for all of them."""
        self._answers[question, subject] = answer

    def run(self, until_ns: int, stop: Callable[[], bool]) -> bool:
        """Go on until `stop()` is true after something that Python did (returns True), or up to
        `until_ns`. Raises NeverEnds where actions ask for others at the same moment without end."""
        self._stop = stop
        self._state.at_once = 0
        reason = HAS_MORE
        while reason == HAS_MORE:
            self._state.stop = 0
            reason = self.library.clock_run(self.address, until_ns, ACTIONS_A_CALL, AT_ONCE_MAX)
            self._raise_errors()
        if reason == STANDS_STILL:
            raise NeverEnds(f"virtual time stands still at {self.now_ns / 1e9:g} s")
        return reason == WAS_STOPPED

    def _raise_errors(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._state.no_memory:
            raise MemoryError("frames and events of virtual time")

    @property
    def idle(self) -> bool:
        """Whether nothing will ever happen unless somebody asks for it."""
        return not self._state.waiting

    def _asked(self, question: int, subject: int, number: int, data: int, size: int) -> None:
        """Called from C, through which no exception may pass."""
        try:
            if question == ACTION:
                action, argument = self._actions.pop(number)
                action(argument)
            else:
                content = ctypes.string_at(data, size) if data else b""
                self._answers[question, subject](number, content)
            if self._stop():
                self._state.stop = 1
        except BaseException as error:
            self._error = self._error or error
            self._state.stop = 1

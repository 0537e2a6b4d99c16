"""The clock of virtual time, which carries out actions in order. Times are whole nanoseconds
(native/clock.c)."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

from agglab.testbed.virtual import native
from agglab.testbed.virtual.interrupts import interrupts_wait

Action = Callable[[Any], None]
Answer = Callable[[int, bytes], None]
"""The function that answers a question, given its number and data."""
AT_ONCE_MAX = 1_000_000
"""The largest number of actions at one moment. Thousands of workers that begin together need a
hundredth of it."""
ACTIONS_A_CALL = 100_000
"""The number of events after which Python looks for Ctrl-C."""

# `enum question` of native/clock.h.
ACTION, FRAME, HIT, DATAGRAM, TIMER, ACT, FINISH, FAILED, AGAIN, LOCAL = range(10)
EMITTED, PROCESSED, ARRIVED = range(10, 13)
# `enum reason`.
IS_OVER, WAS_STOPPED, HAS_MORE, STANDS_STILL = range(4)


class NeverEnds(RuntimeError):
    """Raised if virtual time has passed the limit that was set for it, or does not advance any
    more."""


class _State(ctypes.Structure):
    """The first fields of `struct clock`."""

    _fields_ = [
        ("now_ns", ctypes.c_int64),
        *[(name, ctypes.c_uint64) for name in ("happened", "at_once")],
        *[(name, ctypes.c_uint32) for name in ("stop", "no_memory")],
    ]


class Clock:
    """A clock that carries out actions at given times. Actions that are due at the same time are
    carried out in the order in which they were requested.

    Links, switches and hosts that are written in C use the same clock. To call Python, they ask
    questions, for which `answer` sets functions.
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
        """The number of actions carried out so far."""
        return self._state.happened

    def at(self, time_ns: int, action: Action, argument: Any) -> None:
        """Calls `action(argument)` when the clock reaches `time_ns`, which must not be past."""
        assert time_ns >= self.now_ns, "time does not go back"
        number = next(self._numbers)
        self._actions[number] = action, argument
        self.library.clock_ask_at(self.address, time_ns, number)

    def answer(self, question: int, subject: int, answer: Answer) -> None:
        """Sets the function that is called when C code asks this question about a Python object.
        subject: the object's id; 0 for all objects."""
        self._answers[question, subject] = answer

    def run(self, until_ns: int, stop: Callable[[], bool]) -> bool:
        """Carries out actions up to `until_ns`, or until `stop()` is true after an action of
        Python. Returns whether it ended because of `stop()`. Raises NeverEnds if actions endlessly
        request further actions at the same moment."""
        self._stop = stop
        self._state.at_once = self._state.stop = 0
        reason = HAS_MORE
        with interrupts_wait(self.stop) as came:
            while reason == HAS_MORE and not came:
                reason = self.library.clock_run(self.address, until_ns, ACTIONS_A_CALL, AT_ONCE_MAX)
                self._raise_errors()
        if reason == STANDS_STILL:
            raise NeverEnds(f"virtual time stands still at {self.now_ns / 1e9:g} s")
        return reason == WAS_STOPPED

    def stop(self) -> None:
        """Makes `run` return after the current action."""
        self._state.stop = 1

    def _raise_errors(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._state.no_memory:
            raise MemoryError("frames and events of virtual time")

    @property
    def idle(self) -> bool:
        """Whether nothing will happen unless another action is requested."""
        return bool(self.library.clock_is_idle(self.address))

    def _asked(self, question: int, subject: int, number: int, data: int, size: int) -> None:
        """Answers a question. It is called from C, through which no exception may pass."""
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

"""Decides when which program is analysed: once its text has not changed for a moment, and at the
latest a second after its first change. Knows no clock."""

from __future__ import annotations

QUIET_S = 0.1
LIMIT_S = 1.0


class Schedule:
    """The programs that wait for an analysis. Times are in seconds, of any clock that only goes
    forward."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def changed(self, program: str, now_s: float) -> None:
        self._first.setdefault(program, now_s)
        self._last[program] = now_s

    def forget(self, program: str) -> None:
        self._first.pop(program, None)
        self._last.pop(program, None)

    def take(self, now_s: float) -> str | None:
        """Returns the program that is due, and takes it out, or None."""
        program = min(self._first, key=self._due_s, default=None)
        if program is None or self._due_s(program) > now_s:
            return None
        self.forget(program)
        return program

    def wait_s(self, now_s: float) -> float | None:
        """Returns how long nothing will be due, or None if nothing waits."""
        due = min(map(self._due_s, self._first), default=None)
        return None if due is None else max(0.0, due - now_s)

    def _due_s(self, program: str) -> float:
        return min(self._last[program] + QUIET_S, self._first[program] + LIMIT_S)

"""The errors of an all-reduce, and errors for numbers out of range. Imports nothing of `hosts`."""

from __future__ import annotations

from collections.abc import Sequence


class AllReduceError(RuntimeError):
    """The round has no result; the message says in one line what is missing or wrong, and where."""


class RoundTimeout(AllReduceError):
    """No awaited result came for as long as the worker was told to wait.

    `missing` holds the first and last chunk of each run of chunks that were in flight.
    """

    def __init__(self, message: str, missing: Sequence[tuple[int, int]]) -> None:
        super().__init__(message)
        self.missing = list(missing)


class ShapeMismatch(AllReduceError):
    """The workers of the job did not begin the same round: every one of them raises this."""


class ProgramFailed(AllReduceError):
    """The user's own program of this rank has ended before it was done: the rank has gone, though
    its agent answers."""


class NotFinite(AllReduceError):
    """Inf or NaN in some worker's input, or a sum too large for float32."""


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raises ValueError, naming what is allowed."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; it must be {low} to {high}")

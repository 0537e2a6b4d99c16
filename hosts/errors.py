"""The errors of an all-reduce, and errors for numbers out of range. This module imports nothing of
`hosts`."""

from __future__ import annotations

from collections.abc import Sequence


class AllReduceError(RuntimeError):
    """An error because of which a round has no result. The message says in one line what is missing
    or wrong, and where."""


class RoundTimeout(AllReduceError):
    """An error: no awaited result came for as long as the worker was told to wait.

    `missing` lists runs of chunks that were sent and have no result, each as its first and last
    chunk. It is None if the system does not number its chunks.
    """

    def __init__(self, message: str, missing: Sequence[tuple[int, int]] | None) -> None:
        super().__init__(message)
        self.missing = None if missing is None else list(missing)


class ShapeMismatch(AllReduceError):
    """An error: the workers of the job did not begin the same round. All of them raise it."""


class ProgramFailed(AllReduceError):
    """An error: the user's own program of this rank ended before it was done. The rank takes no
    further part, although its agent still answers."""


class NotFinite(AllReduceError):
    """An error: the input of some worker contains Inf or NaN, or a sum is too large for float32."""


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raises ValueError, which names the allowed range, if the value is not from `low` to
    `high`."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; it must be {low} to {high}")

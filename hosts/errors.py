"""The exceptions of an all-reduce, and a check for numbers out of range. This module imports
nothing of `hosts`."""

from __future__ import annotations

from collections.abc import Sequence


class AllReduceError(RuntimeError):
    """Raised if a round has no result; the base class of all such exceptions. The message says in
    one line what is missing or wrong, and where."""


class RoundTimeout(AllReduceError):
    """Raised if no result that the worker waits for has come for the give-up time.

    `missing` lists runs of chunks that were sent and have no result, each as its first and last
    chunk. It is None if the system does not number its chunks.
    """

    def __init__(self, message: str, missing: Sequence[tuple[int, int]] | None) -> None:
        super().__init__(message)
        self.missing = None if missing is None else list(missing)


class ShapeMismatch(AllReduceError):
    """Raised by all workers of a job if they did not begin the same round."""


class ProgramFailed(AllReduceError):
    """Raised if this rank's training script ended with an error. The rank takes no further part in
    the job, although its agent still answers."""


class NotFinite(AllReduceError):
    """Raised if the input of some worker contains Inf or NaN, or if a sum is too large for
    float32."""


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raises ValueError if the value is not from `low` to `high`. The message names the allowed
    range."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; it must be {low} to {high}")

"""The priority of the all-reduces that a script begins. This module does not use PyTorch and
imports nothing of `hosts`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PRIORITY_MAX = 2**31 - 1

_current: ContextVar[int | None] = ContextVar("priority", default=None)


@contextmanager
def priority(value: int) -> Iterator[None]:
    """Gives a priority to the all-reduces that the current thread begins within the `with` block:

        with priority(-layer):
            work = dist.all_reduce(gradient, async_op=True)

    Of the all-reduces with a priority that all ranks have begun, the one with the largest number is
    carried out first. All ranks must give the same priorities. Raises ValueError for a value that
    is not a whole number of 32 bits.
    """
    if type(value) is not int or abs(value) > PRIORITY_MAX:
        raise ValueError(f"priority: {value!r} is not a whole number of 32 bits")
    token = _current.set(value)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> int | None:
    """Returns the priority of an all-reduce that the current thread begins now, or None."""
    return _current.get()

"""All-reduces as the script's end handles them, and the pieces into which they are cut. This module
imports only agreement.py of `hosts`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numpy.typing import NDArray

from agglab.hosts.agreement import PLAIN, Agreement


@dataclass(frozen=True)
class Piece:
    """The values of one reduction. fill(slot) writes the values into a slot of the shared memory.
    drain(slot) reads the sums from it."""

    elements: int
    dtype: str
    fill: Callable[[NDArray], object]
    drain: Callable[[NDArray], object]


@dataclass(eq=False)
class Job:
    """One all-reduce, as the script sees it.

    ended: a function that a separate thread calls when the all-reduce has ended. Its argument is
    None, or one line that says why there is no result. priority: None for an all-reduce that
    neither overtakes nor is overtaken (order.py). agreement: what all ranks have to agree on.
    asked: how many of the pieces were requested. left: how many have no result yet.
    """

    pieces: Sequence[Piece]
    ended: Callable[[str | None], None]
    priority: int | None = None
    agreement: Agreement = PLAIN
    asked: int = 0
    left: int = 0
    error: str | None = None

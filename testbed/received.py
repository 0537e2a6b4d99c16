"""What one worker had in its hands after a round: the arrays that are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]


class Claim(NamedTuple):
    """An array that ought to hold a round's outcome. what: `sum`, `result` or `out`."""

    what: str
    array: Array | None


@dataclass(frozen=True)
class Received:
    """Of one worker and one round; None where the worker has left nothing.

    result: what `all_reduce` returned, of the tensor's dtype and length. sums: the integers that
    the switch returned, where `result` is not made of them as they are (float32). out: the array
    that was given for the result, where another one was returned. more: what only some kinds of
    workload leave, by names of their own.
    """

    result: Array | None
    sums: Array | None = None
    out: Array | None = None
    more: Mapping[str, Array] = field(default_factory=dict)

    def claims(self, with_sums: bool) -> Iterator[Claim]:
        """All that must be right. with_sums: the worker has to have left sums, too."""
        if with_sums:
            yield Claim("sum", self.sums)
        yield Claim("result", self.result)
        if self.out is not None:
            yield Claim("out", self.out)

    def exact(self, with_sums: bool) -> Array | None:
        """The array of which every bit is determined."""
        return self.sums if with_sums else self.result

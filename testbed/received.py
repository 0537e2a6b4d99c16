"""What one worker had after a round: the arrays that are verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]


class Claim(NamedTuple):
    """An array that should hold a round's result. what: `sum`, `result` or `out`."""

    what: str
    array: Array | None


@dataclass(frozen=True)
class Received:
    """What one worker had after one round; a field is None if the worker left nothing.

    result: what `all_reduce` returned, of the tensor's dtype and length. sums: the integers that
    the switch returned, if `result` is computed from them (float32). out: the array that was given
    for the result, if another one was returned. more: what only some kinds of workload leave, by
    their own names.
    """

    result: Array | None
    sums: Array | None = None
    out: Array | None = None
    more: Mapping[str, Array] = field(default_factory=dict)

    def claims(self, with_sums: bool) -> Iterator[Claim]:
        """Yields every array that must be right. with_sums: whether the worker must have left sums
        as well."""
        if with_sums:
            yield Claim("sum", self.sums)
        yield Claim("result", self.result)
        if self.out is not None:
            yield Claim("out", self.out)

    def exact(self, with_sums: bool) -> Array | None:
        """Returns the array that is determined bit for bit, if there is one."""
        return self.sums if with_sums else self.result

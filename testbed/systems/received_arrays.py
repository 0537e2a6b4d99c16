"""The arrays that one worker received in a round, in the form in which they are verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Values(Protocol):
    """An array, or what can be read like one part after the other."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, part: slice, /) -> Array: ...

    def tobytes(self) -> bytes: ...


class Claim(NamedTuple):
    """An array that must be verified against the result of a round. what: `sum`, `result` or `out`,
    as in Received."""

    what: str
    array: Values | None


@dataclass(frozen=True)
class Received:
    """What one worker received in one round; a field is None if the worker left no such array.

    result: the array that `all_reduce` returned, with the tensor's dtype and length. sums: the
    integers that the switch returned, if `result` is computed from them (float32). out: the array
    that the caller gave for the result, if another array was returned. more: arrays that only some
    kinds of workload leave, by their own names.
    """

    result: Values | None
    sums: Values | None = None
    out: Values | None = None
    more: Mapping[str, Array] = field(default_factory=dict)

    @property
    def whole(self) -> Array | None:
        """The result of a worker that held whole arrays."""
        assert self.result is None or isinstance(self.result, np.ndarray)
        return self.result

    def claims(self, with_sums: bool) -> Iterator[Claim]:
        """Yields every array that must be right. with_sums: whether the worker must also have left
        sums."""
        if with_sums:
            yield Claim("sum", self.sums)
        yield Claim("result", self.result)
        if self.out is not None:
            yield Claim("out", self.out)

    def exact(self, with_sums: bool) -> Values | None:
        """Returns the array whose right value is determined bit for bit; None if the worker left
        none."""
        return self.sums if with_sums else self.result

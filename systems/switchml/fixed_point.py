"""The rules by which a job may convert floats to integers other than by one exponent for each
chunk. docs/numbers.md describes them under "A scaling factor of one's own"."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts import quantise
from agglab.hosts.native_structures import FixedPointState

COUNTERS = {
    "clipped": (
        "values",
        "floats that a fixed scaling factor made larger than the largest integer, and that were "
        "cut to it",
    ),
    "vanished": ("values", "floats other than 0 that a fixed scaling factor made 0"),
}
"""The counters of a job that has a `FixedPoint` of its own: for each name the unit and the meaning.
Each value is counted at most once in each counter."""


@dataclass(frozen=True)
class FixedPoint:
    """The rule by which floats become integers.

    scale_log2: floats are multiplied by 2 to this power; None: by the power that the chunk's
    exponent allows. bits: the largest number of bits of an integer, with its sign; None: as many as
    leave room for the sum. noise_key: the key of stochastic rounding, 1 or more; None: floats are
    rounded to the nearest integer.
    """

    scale_log2: int | None = None
    bits: int | None = None
    noise_key: int | None = None

    def value_bits(self, workers: int) -> int:
        """Returns the number b for which all integers are from -(2^b - 1) to 2^b - 1."""
        most = quantise.value_bits(workers)
        return most if self.bits is None else min(most, self.bits - 1)

    def state(self, workers: int) -> FixedPointState:
        """Returns the settings for the C code. It expects a scaling factor in another form: as the
        exponent of a chunk to which this factor belongs."""
        exponent = 0
        if self.scale_log2 is not None:
            exponent = self.value_bits(workers) + 126 - self.scale_log2
            assert 0 < exponent < quantise.EXPONENT_NOT_FINITE
        in_use = self != BY_CHUNK
        return FixedPointState(noise_key=self.noise_key or 0, exponent=exponent, in_use=in_use)


BY_CHUNK = FixedPoint()
"""The default rule: only the exponent of each chunk decides."""

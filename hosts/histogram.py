"""A histogram of times (native/histogram.h) and its percentiles.

Log-linear as HdrHistogram's: each octave of nanoseconds has 32 buckets, so that a percentile is
known to 1/64 of itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BITS = 5
LAST_NS = (1 << 37) - 1
BUCKETS = (37 - BITS + 1) << BITS
BYTES = 4 * BUCKETS
"""The size of `struct histogram`, whose counts are uint32."""


def bounds_ns(bucket: int) -> tuple[int, int]:
    """The shortest and the longest time that a bucket counts."""
    assert 0 <= bucket < BUCKETS
    shift = max(0, (bucket >> BITS) - 1)
    low = (bucket - (shift << BITS)) << shift
    return low, low + (1 << shift) - 1


def none() -> NDArray[np.int64]:
    """Counts, int64 of shape (BUCKETS,), of no time at all."""
    return np.zeros(BUCKETS, np.int64)


def percentiles_ns(counts: NDArray[np.int64], shares: Sequence[float]) -> list[float | None]:
    """The time that this share of all is not above, for each share: the middle of the bucket in
    which it is. None where nothing was counted."""
    upto = np.cumsum(counts)
    if not upto[-1]:
        return [None for _ in shares]
    wanted = [max(1, int(np.ceil(share * upto[-1]))) for share in shares]
    buckets = np.searchsorted(upto, wanted)
    return [sum(bounds_ns(int(bucket))) / 2 for bucket in buckets]

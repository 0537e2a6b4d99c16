"""A histogram of durations (native/histogram.h) and its percentiles.

The buckets are log-linear, as those of HdrHistogram: each octave of nanoseconds has 32 buckets. So
a percentile is known with a relative error of at most 1/64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.structures import U32, Structure, repeated, structure

BITS = 5
LAST_NS = (1 << 37) - 1
BUCKETS = (37 - BITS + 1) << BITS


@structure("histogram")
class Histogram(Structure):
    """How many times were counted in each bucket."""

    counts: Annotated[int, repeated(U32, BUCKETS)]


@cache
def bounds_ns(bucket: int) -> tuple[int, int]:
    """Returns the shortest and the longest duration that belong to a bucket, in nanoseconds."""
    assert 0 <= bucket < BUCKETS
    shift = max(0, (bucket >> BITS) - 1)
    low = (bucket - (shift << BITS)) << shift
    return low, low + (1 << shift) - 1


def none() -> NDArray[np.int64]:
    """Returns the counts of an empty histogram: int64 of shape (BUCKETS,)."""
    return np.zeros(BUCKETS, np.int64)


def percentiles_ns(counts: NDArray[np.int64], shares: Sequence[float]) -> list[float | None]:
    """Returns one percentile for each share: the duration that this share of all durations does not
    exceed. It is rounded to the middle of its bucket. All percentiles are None if the histogram is
    empty."""
    upto = np.cumsum(counts)
    if not upto[-1]:
        return [None for _ in shares]
    wanted = [max(1, int(np.ceil(share * upto[-1]))) for share in shares]
    buckets = np.searchsorted(upto, wanted)
    return [sum(bounds_ns(int(bucket))) / 2 for bucket in buckets]

"""The histogram of times: C (native/histogram.h, through recovery.c) against its definition."""

import ctypes
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agglab.hosts import histogram, library
from agglab.hosts.recovery import PENDING, Recovery, Timing

TIMES = st.integers(0, 1 << 40) | st.integers(0, 4096)


def counted(times_ns):
    """What answers after these times leave in a struct recovery."""
    native = library.load()
    native.recovery_answered.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    ]  # fmt: skip
    recovery = Recovery.of(Timing())
    for time_ns in times_ns:
        pending = np.zeros(1, PENDING)
        native.recovery_answered(ctypes.addressof(recovery), pending.ctypes.data, -1, time_ns)
    return recovery.answered_after


def test_buckets_follow_each_other_without_a_gap():
    ends = [histogram.bounds_ns(bucket) for bucket in range(histogram.BUCKETS)]
    assert ends[0][0] == 0
    assert ends[-1][1] == histogram.LAST_NS
    assert all(low == before + 1 for (_, before), (low, _) in itertools.pairwise(ends))
    assert all(high - low + 1 <= max(1, low / 32) for low, high in ends)


@given(st.lists(TIMES, max_size=20))
def test_each_time_is_counted_in_its_bucket(times_ns):
    counts = counted(times_ns)
    assert counts.sum() == len(times_ns)
    expected = histogram.none()
    ends = np.array([histogram.bounds_ns(bucket)[1] for bucket in range(histogram.BUCKETS)])
    for time_ns in times_ns:
        expected[np.searchsorted(ends, min(time_ns, histogram.LAST_NS))] += 1
    assert counts.tolist() == expected.tolist()


@given(st.lists(st.integers(0, histogram.LAST_NS), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_is_known_to_a_64th(times_ns, share):
    (found,) = histogram.percentiles_ns(counted(times_ns), [share])
    exact = sorted(times_ns)[max(1, int(np.ceil(share * len(times_ns)))) - 1]
    assert abs(found - exact) <= exact / 64


def test_nothing_counted_has_no_percentile():
    assert histogram.percentiles_ns(histogram.none(), [0.5, 1.0]) == [None, None]

"""Computes the size of the token bucket that gives a real link its rate (docs/network.md)."""

# What a late timer loses beyond the bucket is lost for good: on a machine whose processors others
# kept busy, quickstart's ratio was 1.09 with 0.5 ms and 1.055 with 2 ms (medians of 5). Deeper, and
# the first frames of a round would leave faster than the rate by a visible share.
BURST_US = 2000


def burst_bytes(rate_bps: int, frame_bytes: int) -> int:
    """Returns the bucket's depth: BURST_US at the rate, and at least two full frames.

    The kernel's token bucket filter (TBF) always drops a frame that is larger than its bucket.
    """
    return max(2 * frame_bytes, rate_bps * BURST_US // 8_000_000)

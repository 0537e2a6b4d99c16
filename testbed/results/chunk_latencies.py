"""Latencies of chunks, each from a packet's first transmission until its answer. They are written
to latency.csv and, as percentiles, to metrics.json. The columns of latency.csv are:

    job,agent,from_ns,to_ns,count
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import histogram
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.results.series_table import agent_name

NAME = "latency.csv"
COLUMNS = ("job", "agent", "from_ns", "to_ns", "count")
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
NS_PER_S = 1e9

Counts = NDArray[np.int64]


def lines(latencies: Mapping[WorkerId, Counts], jobs: Mapping[int, str]) -> Iterator[str]:
    """Yields the rows of latency.csv. There is one row for each bucket that is not empty, with the
    bucket's inclusive ends."""
    yield ",".join(COLUMNS)
    for worker, counts in latencies.items():
        head = f"{jobs[worker.job]},{agent_name(worker)}"
        buckets = np.flatnonzero(counts)
        for bucket, count in zip(buckets.tolist(), counts[buckets].tolist(), strict=True):
            yield f"{head},{_ends(bucket)},{count}"


@cache
def _ends(bucket: int) -> str:
    low_ns, high_ns = histogram.bounds_ns(bucket)
    return f"{low_ns},{high_ns}"


def percentiles(latencies: Iterable[Counts]) -> dict[str, Any]:
    """Returns the percentiles of all agents together, in seconds; None if nothing was counted."""
    total = sum(latencies, histogram.none())
    found = histogram.percentiles_ns(total, list(SHARES.values()))
    return {
        name: None if time_ns is None else time_ns / NS_PER_S
        for name, time_ns in zip(SHARES, found, strict=True)
    }

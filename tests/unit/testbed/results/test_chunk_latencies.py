"""The lines of latency.csv."""

from __future__ import annotations

import numpy as np

from agglab.hosts import histogram
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.results import chunk_latencies


def test_each_bucket_that_is_not_empty_has_a_line_with_its_ends() -> None:
    durations_ns = [0, 5, 5, 1000, 1_000_000, 123_456_789]
    counts = histogram.none()
    for duration_ns in durations_ns:
        fits = [
            b
            for b in range(histogram.BUCKETS)
            if histogram.bounds_ns(b)[0] <= duration_ns <= histogram.bounds_ns(b)[1]
        ]
        counts[fits] += 1
    head, *lines = chunk_latencies.lines({WorkerId(1, "h1"): counts}, {1: "job1"})
    assert head == "job,agent,from_ns,to_ns,count"
    found = [line.split(",") for line in lines]
    assert {(job, agent) for job, agent, *_ in found} == {("job1", "h1")}
    numbers = np.array([own[2:] for own in found], np.int64)
    assert numbers[:, 2].tolist() == [1, 2, 1, 1, 1]
    for (low_ns, high_ns, _), duration_ns in zip(numbers, sorted({*durations_ns}), strict=True):
        assert low_ns <= duration_ns <= high_ns
        assert high_ns - low_ns <= duration_ns / 32

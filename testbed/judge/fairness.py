"""Computes how fast jobs reduced, and how fairly they shared the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agglab.testbed.run.outcome import JobResult
from agglab.testbed.scenario import workloads

NS_PER_S = 1e9


def completion_s(result: JobResult) -> float | None:
    """Returns the seconds from the job's start to the end of its last round. Time in which other
    runs had their turns is not counted. Returns None if no round was completed."""
    if not result.rounds or result.started_ns is None:
        return None
    last_ns = max(event["end_ns"] for event in result.rounds[-1].ended.values())
    rested_ns = sum(done.rested_ns for done in result.rounds)
    return float(last_ns - result.started_ns - rested_ns) / NS_PER_S


def elements_per_s(result: JobResult) -> float | None:
    """Returns the tensor elements reduced per second of the job's time. The result is 0 if no time
    passed, which can happen in virtual time if nothing crosses a link. It is None if the scenario
    does not say how many elements a round reduces."""
    if not workloads.KINDS[result.job.work.kind].reduces_elements:
        return None
    taken_s = completion_s(result)
    return len(result.rounds) * result.job.elements / taken_s if taken_s else 0.0


def fairness(results: Sequence[JobResult]) -> dict[str, Any]:
    """Returns the share of each job in the throughput of all, and Jain's index of the jobs'
    throughputs relative to their declared shares. The index is 1 if every job gets its declared
    share, and 1/n if one of n jobs gets everything. All are None if a job's throughput is not
    known."""
    known = [rate for result in results if (rate := elements_per_s(result)) is not None]
    rates = known if len(known) == len(results) else []
    weighed = [rate / result.job.share for rate, result in zip(rates, results, strict=False)]
    squares = len(weighed) * sum(rate * rate for rate in weighed)
    total = sum(rates)
    shares = [rate / total for rate in rates] if total else [None] * len(results)
    names = [result.job.name for result in results]
    return {
        "jain": sum(weighed) ** 2 / squares if squares else None,
        "shares": dict(zip(names, shares, strict=True)),
    }

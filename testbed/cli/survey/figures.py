"""Extracts the numbers of one row from a run's metrics.json. A number that the metrics do not
contain is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.testbed.results.metric_values import lookup
from agglab.testbed.schema.jobs import Job

Metrics = Mapping[str, Any]


@dataclass(frozen=True)
class BusiestDirection:
    """The direction that carried the most bytes, and how many it carried in a round."""

    direction: str
    size_bytes: float


@dataclass(frozen=True)
class Figures:
    """The numbers of one run. Times are those of the slowest job's median round; bytes and packets
    are those of a round.

    times_bound: the time divided by the link bound. up_bytes, down_bytes: the bytes of the worker's
    link that carried the most in the direction from or to the worker. tensor_bytes: the size of one
    worker's tensor. register_bits: the size of the registers of the switch that has most. error:
    the largest distance of a float from a float64 sum. broken: why the run did not end as it
    should, in one line; empty if it did.
    """

    time_s: float | None = None
    times_bound: float | None = None
    up_bytes: float | None = None
    down_bytes: float | None = None
    busiest: BusiestDirection | None = None
    tensor_bytes: int = 0
    register_bits: int | None = None
    sent: float | None = None
    again: float | None = None
    exact: bool | None = None
    error: float | None = None
    broken: str = ""


def figures(metrics: Metrics, jobs: Sequence[Job]) -> Figures:
    """Returns the figures of a run of these jobs."""
    ended: list[Metrics] = list(metrics.get("jobs", {}).values())
    rounds = max((job["rounds"] for job in ended), default=0)
    if not rounds:
        return Figures(broken=str(metrics.get("reason") or "no round was completed"))
    ways = {
        name: way["bytes"] / rounds
        for link in metrics["links"].values()
        for name, way in link.items()
    }
    hosts = {host for job in jobs for host in job.hosts}
    busiest = max(ways, key=lambda name: ways[name])
    return Figures(
        time_s=_largest(ended, "allreduce.time_s.median"),
        times_bound=_largest(ended, "link_bound_ratio"),
        up_bytes=max(size for name, size in ways.items() if name.partition("->")[0] in hosts),
        down_bytes=max(size for name, size in ways.items() if name.partition("->")[2] in hosts),
        busiest=BusiestDirection(busiest, ways[busiest]),
        tensor_bytes=VALUE_BYTES * max(job.work.elements for job in jobs),
        register_bits=max(switch["register_bits"] for switch in metrics["switches"].values()),
        sent=metrics["totals"]["sent"] / rounds,
        again=metrics["totals"]["retransmitted"] / rounds,
        exact=bool(metrics["exact"]) and not metrics["wrong_results"],
        error=_largest(ended, "error.max_abs"),
        broken="" if metrics["ok"] else metrics["reason"],
    )


VALUE_BYTES = 4


def _largest(jobs: Sequence[Metrics], path: str) -> float | None:
    """Returns the largest value at this path among the jobs that have a value there; None if no job
    has one."""
    found = [value for job in jobs if (value := lookup(job, path)) is not None]
    return max(found, default=None)

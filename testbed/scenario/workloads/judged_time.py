"""Names the time by which a kind of workload is judged, and by which its runs are compared: that of
a step for a training, that of a call for calls, and that of a round for all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MEDIAN = ".median"


@dataclass(frozen=True)
class Headline:
    """metric: the path of the time in a job's metrics. of: what takes this time, in one word."""

    metric: str
    of: str

    @property
    def sample(self) -> str:
        """The path of the list of times whose median the metric is; empty if it is no median."""
        whole, dot, _ = self.metric.rpartition(MEDIAN)
        return f"{whole}.all" if dot else ""

    def to_json(self) -> dict[str, str]:
        return {"metric": self.metric, "of": self.of}


ROUND = Headline("allreduce.time_s.median", "round")
STEP = Headline("training.step_s.median", "step")
CALL = Headline("latency_s.p50", "call")


def headline(metrics: Mapping[str, Any]) -> Headline:
    """Returns the headline of a run or of one of its jobs. metrics: the content of metrics.json, or
    of a job in it."""
    section = metrics.get("headline")
    if not isinstance(section, Mapping):
        return ROUND
    return Headline(str(section.get("metric")), str(section.get("of")))


def common(runs: Iterable[Mapping[str, Any]]) -> Headline:
    """Returns the headline that all runs have; ROUND if they differ. Runs that were aborted have
    none."""
    every = {headline(run) for run in runs if "allreduce" in run or "jobs" in run}
    return every.pop() if len(every) == 1 else ROUND

"""Gathers the metrics of a system's runs by their paths in metrics.json, which `expect:` may use.
The table in docs/results.md is written from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from agglab.testbed.scenario import workloads
from agglab.testbed.scenario.workloads.judged_time import ROUND
from agglab.testbed.schema.job_metrics import (
    COUNTS_OF_AGENTS,
    COUNTS_OF_SERVERS,
    CPU_S,
    OF_CONTROLLER,
    OF_HEADLINE,
    OF_JOB,
)
from agglab.testbed.schema.metric import Metric, counted
from agglab.testbed.schema.run_metrics import (
    ASKED_OF_DIRECTIONS,
    FIRST_WRONG,
    JUDGED,
    OF_ALL_JOBS,
    OF_DIRECTIONS,
    OF_SWITCHES,
    TOGETHER,
    VERDICT,
)
from agglab.testbed.systems.base import System

GROWTH = "growth."
"""In a sweep, `growth.<path>` is the value at the last point divided by the value at the first. In
a comparison it is `growth.<contender>.<path>`."""
RATIO = "ratio."
"""In a comparison, `ratio.<a>.<b>.<path>` is contender a's value divided by contender b's."""


@dataclass(frozen=True)
class ComparisonContext:
    """A comparison, as one of its runs sees it. contenders: the names of all contenders; empty if
    nothing is compared. own: the contender whose run this is; empty for the scenario on which all
    contenders are based."""

    contenders: tuple[str, ...] = ()
    own: str = ""

    def about(self, metric: str) -> tuple[tuple[str, ...], str]:
        """Returns the contenders that the metric's path names, and the metric's path in the run of
        each. There are no contenders if the metric is about a single run, or if nothing is
        compared."""
        words = metric.split(".")
        named = 2 if metric.startswith(RATIO) else 1 if self.contenders else 0
        if not metric.startswith((RATIO, GROWTH)):
            return (), metric
        return tuple(words[1 : 1 + named]), ".".join(words[1 + named :])

    def concerns(self, metric: str) -> bool:
        """Returns whether the metric is about this run. That is the case if the metric's path names
        this run's contender, or no contender."""
        names, _ = self.about(metric)
        return not names or self.own in names


NO_COMPARISON = ComparisonContext()


@cache
def of_job(system: System) -> Mapping[str, Metric]:
    """Returns each metric of a job, by path. If there is only one job, its metrics are also at the
    top level."""
    own = (
        counted(f"workers.*.{name}", counter.unit, counter.meaning)
        for name, counter in system.host_counters.items()
    )
    counts = [*COUNTS_OF_AGENTS, *own]
    paths = _by_path([*OF_JOB, *counts, CPU_S])
    if system.abilities.has_servers:
        for each in counts:
            path = each.path.replace("workers", "servers")
            paths[path] = COUNTS_OF_SERVERS.get(path, replace(each, path=path))
    for kind in map(workloads.KINDS.__getitem__, workloads.done_with(system.abilities.workloads)):
        paths |= _by_path(kind.metrics)
        paths |= _by_path(OF_HEADLINE if kind.headline != ROUND else ())
    return paths | _by_path(OF_CONTROLLER if system.abilities.has_controller else ())


@cache
def metrics(system: System) -> Mapping[str, Metric]:
    """Returns each metric that metrics.json holds for a run of this system, by path."""
    own = of_job(system).values()
    packets = (
        counted(f"switches.*.packets.{kind}", "packets", counter.meaning)
        for kind, counter in system.counters.items()
    )
    as_above = (
        replace(each, path=f"jobs.*.{each.path}", meaning=f"as `{each.path}`, for one job by name")
        for each in OF_ALL_JOBS
    )
    of_jobs = (each.below("jobs.*.") for each in own)
    of_run = (*VERDICT, *OF_ALL_JOBS, *FIRST_WRONG, *own, *as_above, *of_jobs, *TOGETHER)
    links = (*OF_DIRECTIONS, *ASKED_OF_DIRECTIONS)
    return _by_path([*of_run, *packets, *OF_SWITCHES, *links, *JUDGED])


def _by_path(declared: Iterable[Metric]) -> dict[str, Metric]:
    return {each.path: each for each in declared}


def metric_of(path: str, system: System) -> Metric | None:
    """Returns the system's metric whose path, in which `*` stands for any name, matches `path`;
    None if there is none."""
    known = metrics(system).items()
    return next((each for p, each in known if re.fullmatch(regex_of(p), path)), None)


def regex_of(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", r"[A-Za-z0-9_>-]+")

"""Judges a run in virtual time. It must not return a wrong sum. A job may fail only if the
scenario's faults allow that, and the failure must name who is missing. All that makes any run fail
without an `expect:`, such as packets that were sent again without a reason, is wrong here too, and
so is every byte on a link that was not predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agglab.testbed.results.metrics import compute
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.outcome import Failure, JobResult
from agglab.testbed.scenario import ResolvedScenario, Scenario
from agglab.testbed.schema.fault_kinds import FaultEntry
from agglab.testbed.schema.finding_kinds import WARNINGS
from agglab.testbed.schema.jobs import Job
from agglab.topologies import Topology
from agglab.verification import proofs

LASTING = ("link_down", "worker_pause", "server_pause")
KILLING = ("worker_crash", "worker_restart")
SENT_AGAIN, SLOW, LINK_BYTES = "sent-again", "slow", "link bytes"
OF_SETTINGS = ("small-window", *WARNINGS)
"""The kinds of findings that follow from settings alone, which searches draw freely."""
EMPTYING = ("worker_restart", "switch_restart", "switch_reprogram")


@dataclass(frozen=True)
class Finding:
    """Something wrong in a run. kind: hang, wrong sum, failure, nobody named, error, link bytes, or
    the kind of a run's finding (testbed/judge/findings.py)."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def judge(resolved: ResolvedScenario, measured: Measurements) -> Iterator[Finding]:
    """Yields what was wrong in a run, the most certain first."""
    for result in measured.outcome.jobs:
        yield from _wrong_sums(result)
    for result in measured.outcome.jobs:
        if result.failure:
            yield from _judge_failure(resolved, result.job, result.failure)
    metrics = compute(resolved, measured)
    for finding in metrics["findings"]:
        if finding["kind"] not in OF_SETTINGS and not _is_due(finding, resolved, measured):
            yield Finding(finding["kind"], finding["text"])
    if metrics["links_as_predicted"] is False:
        yield Finding(LINK_BYTES, metrics["links_unclear"])


def _is_due(finding: Mapping[str, Any], resolved: ResolvedScenario, measured: Measurements) -> bool:
    """Whether a finding had to come. Agents of a job that fails ask again until they give up. How a
    system works may also make its agents ask again, and rounds in which they do are slow."""
    repeats = proofs.of(resolved.system.name).repeats
    most = repeats(resolved, measured.counters) if repeats else 0
    if finding["kind"] == SENT_AGAIN:
        failed = any(job.failure for job in measured.outcome.jobs)
        return failed or finding["numbers"]["unexplained"] <= most
    return finding["kind"] == SLOW and most > 0


def _wrong_sums(result: JobResult) -> Iterator[Finding]:
    for number, verdict in result.judged:
        if not verdict.right:
            where = f"{result.job.name}, round {number}"
            counts = f"{verdict.wrong_sums} sums, {verdict.wrong_results} results"
            yield Finding("wrong sum", f"{where}: {counts}, first {verdict.first}")


def _judge_failure(resolved: ResolvedScenario, job: Job, failure: Failure) -> Iterator[Finding]:
    if not may_fail(resolved.scenario, job):
        yield Finding("failure", f"{job.name}: {failure.reason}")
    elif not _names(failure, resolved.graph):
        yield Finding("nobody named", f"{job.name}: {failure.reason}")


def may_fail(scenario: Scenario, job: Job) -> bool:
    """Whether a failure of the job is allowed: some fault is not one with which the job's
    `on_failure` must cope, or the faults leave no survivor."""
    killed = {entry.worker for entry in scenario.faults if entry.kind in KILLING}
    if job.on_failure == "survivors" and killed >= set(job.hosts):
        return True
    return any(not _forgiven(entry, job.on_failure) for entry in scenario.faults)


def _forgiven(entry: FaultEntry, on_failure: str) -> bool:
    """Whether a job must cope with a fault. Every job must cope with impairments, and with a link
    or worker that comes back soon. A job with `on_failure: restart` must also cope with programs
    that start again, and one with `survivors` with lost workers."""
    if entry.kind in LASTING:
        return entry.for_s is not None
    if entry.kind == "worker_crash":
        return on_failure == "survivors"
    if entry.kind == "server_crash":  # no job goes on without a server
        return False
    if entry.kind == "server_restart":
        return on_failure == "restart"
    if entry.kind == "worker_restart" and entry.for_s is None:
        return on_failure != "fail"
    return entry.kind not in EMPTYING or on_failure != "fail"


def _names(failure: Failure, graph: Topology) -> bool:
    names = {host.name for host in graph.hosts} | {switch.name for switch in graph.switches}
    return failure.worker is not None or not names.isdisjoint(failure.reason.split())

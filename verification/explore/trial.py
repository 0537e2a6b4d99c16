"""Runs one scenario in virtual time and judges it. A run must not hang or return a wrong sum. A job
may fail only if the scenario's faults allow that, and the failure must name who is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agglab.testbed.control.assembly import conductor
from agglab.testbed.control.conductor import Conductor
from agglab.testbed.control.outcome import Failure, Outcome
from agglab.testbed.scenario import Scenario, resolve
from agglab.testbed.scenario.fault_kinds import FaultEntry
from agglab.testbed.scenario.jobs import Job
from agglab.testbed.virtual import CompiledProgram, NeverEnds, VirtualBackend
from agglab.topologies import Topology
from agglab.verification.explore.walk import place

LIMIT_NS = 10_000 * 1_000_000_000
LASTING = ("link_down", "worker_pause", "server_pause")
KILLING = ("worker_crash", "worker_restart")
EMPTYING = ("worker_restart", "switch_restart", "switch_reprogram")


@dataclass(frozen=True)
class Finding:
    """What was wrong in a run. kind: hang, wrong sum, failure, nobody named, or error."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class Trial:
    """The outcome of one run. finding: None if nothing is wrong. failed: the number of jobs that
    ended with a failure that they reported themselves. actions: the number of events of the virtual
    clock. dropped: the numbers of the frames that each direction lost to impairments; empty if
    there is no finding."""

    finding: Finding | None
    failed: int = 0
    actions: int = 0
    dropped: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


class Silent:
    """A replacement for a run's progress display and event log that prints and writes nothing."""

    def begin_round(self, job: int, number: int, now_ns: int) -> None: ...

    def event(self, event: Any) -> None: ...

    def end_round(self, job: int, time_s: float) -> None: ...

    def due(self) -> bool:
        return False

    def draw(self) -> None: ...

    def add(self, event: str, **fields: Any) -> None: ...


def attempt(scenario: Scenario, compiled: CompiledProgram) -> Trial:
    """Runs a checked scenario whose numbers of lanes and slots are those of the compiled
    program."""
    resolved, silent = resolve(scenario), cast(Any, Silent())
    graph, seed = resolved.graph, resolved.seed
    programs = {switch.name: compiled for switch in graph.switches}
    with VirtualBackend(graph, seed, programs, limit_ns=LIMIT_NS) as backend:
        run = conductor(resolved, backend, silent, silent)
        failed, finding = _conduct(run, scenario, graph)
        lost = {way.direction: way.dropped_numbers for way in backend.statistics().directions}
        return Trial(finding, failed, backend.clock.happened, lost if finding else {})


def _conduct(run: Conductor, scenario: Scenario, graph: Topology) -> tuple[int, Finding | None]:
    """Runs the jobs. Returns how many of them failed, and the first thing that is wrong, if any."""
    try:
        outcome = run.run()
    except NeverEnds as error:
        return 0, Finding("hang", str(error))
    except Exception as error:  # whatever it is, it must not be
        return 0, Finding("error", f"{type(error).__name__}: {error} ({place(error)})")
    failed = sum(job.failure is not None for job in outcome.jobs)
    return failed, next(_findings(scenario, graph, outcome), None)


def _findings(scenario: Scenario, graph: Topology, outcome: Outcome) -> Iterator[Finding]:
    for result in outcome.jobs:
        for number, verdict in result.judged:
            if not verdict.right:
                where = f"{result.job.name}, round {number}"
                counts = f"{verdict.wrong_sums} sums, {verdict.wrong_results} results"
                yield Finding("wrong sum", f"{where}: {counts}, first {verdict.first}")
    for result in outcome.jobs:
        failure = result.failure
        if failure is None:
            continue
        if not may_fail(scenario, result.job):
            yield Finding("failure", f"{result.job.name}: {failure.reason}")
        elif not _names(failure, graph):
            yield Finding("nobody named", f"{result.job.name}: {failure.reason}")


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

"""Runs one scenario in virtual time and judges it, for the searches `explore` and `sweep`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, cast

from agglab.testbed.run.assembly import conductor
from agglab.testbed.run.measurements import Measurements, collect
from agglab.testbed.run.programs.prepare import Prepared
from agglab.testbed.run.programs.program import Program
from agglab.testbed.run.programs.user_entries import as_planned
from agglab.testbed.scenario import ResolvedScenario, Scenario, resolve
from agglab.testbed.virtual import NOTHING, CompiledProgram, NeverEnds, VirtualBackend, Wanted
from agglab.verification.explore.walk import place
from agglab.verification.judgement import Finding, judge

LIMIT_NS = 10_000 * 1_000_000_000
PROGRAMS_KEPT = 16


@dataclass(frozen=True)
class Simulation:
    """What a run came to. measured: None if it broke off. broke_off: why it did. actions: the
    number of events of the virtual clock. dropped: the numbers of the frames that each direction
    lost to impairments."""

    measured: Measurements | None
    broke_off: Finding | None
    actions: int
    dropped: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Trial:
    """The judgement of one run. failed: the number of jobs that ended with a failure that they
    reported themselves. time_s: the median of the first job's rounds; None if it completed none.
    actions, dropped: as in Simulation, but `dropped` is empty if there are no findings."""

    findings: tuple[Finding, ...] = ()
    failed: int = 0
    actions: int = 0
    time_s: float | None = None
    dropped: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def finding(self) -> Finding | None:
        """The first finding, if there is one."""
        return next(iter(self.findings), None)


class Silent:
    """A replacement for a run's progress display and event log that prints and writes nothing."""

    def begin_round(self, job: int, number: int, now_ns: int) -> None: ...

    def event(self, event: Any) -> None: ...

    def end_round(self, job: int, time_s: float) -> None: ...

    def due(self) -> bool:
        return False

    def draw(self) -> None: ...

    def add(self, event: str, **fields: Any) -> None: ...


@lru_cache(PROGRAMS_KEPT)
def native(json: Path, quick: bool = False) -> CompiledProgram:
    """Returns the program in a BMv2 JSON file, compiled to native code once. quick: as
    CompiledProgram has it."""
    return CompiledProgram(json, quick=quick)


def try_scenario(scenario: Scenario, program: Program) -> Trial:
    """Runs and judges a checked scenario whose switches all run this program, which was compiled
    for the scenario's numbers of lanes and slots."""
    resolved = resolve(scenario)
    return attempt(resolved, everywhere(program, resolved))


def everywhere(program: Program, resolved: ResolvedScenario) -> Prepared:
    """Returns the programs of a scenario whose switches all run this one."""
    return Prepared({switch.name: program for switch in resolved.graph.switches}, as_planned)


def attempt(resolved: ResolvedScenario, prepared: Prepared) -> Trial:
    """Runs and judges a scenario."""
    ended = simulate(resolved, prepared)
    wrong = findings(resolved, ended)
    lost = ended.dropped if wrong else {}
    if ended.measured is None:
        return Trial(wrong, 0, ended.actions, None, lost)
    jobs = ended.measured.outcome.jobs
    times_s = [done.time_s for done in jobs[0].rounds if done.number >= jobs[0].job.warmup]
    failed = sum(job.failure is not None for job in jobs)
    return Trial(wrong, failed, ended.actions, median(times_s) if times_s else None, lost)


def findings(resolved: ResolvedScenario, ended: Simulation) -> tuple[Finding, ...]:
    """Returns everything that was wrong in a run."""
    if ended.measured is None:
        return () if ended.broke_off is None else (ended.broke_off,)
    try:
        return tuple(judge(resolved, ended.measured))
    except Exception as error:  # whatever it is, it must not be
        return (_error(error),)


def simulate(
    resolved: ResolvedScenario, prepared: Prepared, wanted: Wanted = NOTHING, quick: bool = False
) -> Simulation:
    """Runs a scenario. wanted: what is recorded of its switches. quick: whether their programs are
    compiled with less optimisation, as CompiledProgram has it."""
    jsons = {switch: program.json for switch, program in prepared.programs.items()}
    programs = {switch: native(json, quick) for switch, json in jsons.items()}
    graph, silent = resolved.graph, cast(Any, Silent())
    with VirtualBackend(
        graph, resolved.seed, programs, limit_ns=LIMIT_NS, wanted=wanted
    ) as backend:
        measured, broke_off = None, None
        try:
            outcome = conductor(resolved, backend, silent, silent, prepared.fill).run()
            measured = collect(resolved, backend, outcome, prepared.programs)
        except NeverEnds as error:
            broke_off = Finding("hang", str(error))
        except Exception as error:  # whatever it is, it must not be
            broke_off = _error(error)
        lost = {way.direction: way.dropped_numbers for way in backend.statistics().directions}
        return Simulation(measured, broke_off, backend.clock.happened, lost)


def _error(error: Exception) -> Finding:
    return Finding("error", f"{type(error).__name__}: {error} ({place(error)})")

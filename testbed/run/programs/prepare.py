"""Prepares the user's own programs before any part of a run is started: compiles P4 programs,
compares them with their entries, and loads worker classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agglab.hosts import AllReducer, own_worker
from agglab.hosts.own_worker import WorkerError
from agglab.testbed.base.errors import CompileError
from agglab.testbed.run.programs.program import (
    Program,
    Programs,
    check_fits,
    check_registers,
    compile_program,
)
from agglab.testbed.run.programs.program_state import check_asked
from agglab.testbed.run.programs.user_entries import Fill, filling
from agglab.testbed.scenario import (
    Point,
    Problem,
    ResolvedScenario,
    Scenario,
    ScenarioError,
    Where,
)
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.plan import Entries


@dataclass(frozen=True)
class Prepared:
    """The compiled programs of a run's switches. fill: the function that adds the scenario's own
    entries to the planned ones."""

    programs: Programs
    fill: Fill


def compile_points(points: Sequence[Point]) -> list[Prepared]:
    """Returns the programs of each point. They fit both the planned entries and the user's own.

    Raises CompileError with everything that is wrong with the programs, ScenarioError for wrong
    entries of the user, or MachineLacks if the compiler is not installed.
    """
    found, refusals = [], []
    for point in points:
        try:
            found.append(_checked(point.resolved))
        except CompileError as error:
            refusals.append(str(error))
    if refusals:
        raise CompileError("\n".join(dict.fromkeys(refusals)))
    return found


def _checked(resolved: ResolvedScenario) -> Prepared:
    prepared = prepare(resolved)
    scenario = resolved.scenario
    sources = resolved.system.sources(scenario).values()
    sizes = {name: cells for source in sources for name, cells in source.registers.items()}
    for program in dict.fromkeys(prepared.programs.values()):
        check_registers(program, sizes)
        check_asked(program, scenario.switch.registers)
    for node, entries in all_entries(resolved).items():
        check_fits(prepared.programs[node], prepared.fill(node, entries))
    return prepared


def prepare(resolved: ResolvedScenario) -> Prepared:
    """Compiles the scenario's programs and reads the user's entries. Raises ScenarioError if the
    entries do not fit the programs."""
    programs = _compiled(resolved)
    jsons = {switch: program.json for switch, program in programs.items()}
    return Prepared(programs, filling(resolved.scenario.switch.entries, jsons, resolved.target))


def _compiled(resolved: ResolvedScenario) -> Programs:
    """Compiles each program once, with the system's compile-time parameters."""
    compiler, made = resolved.scenario.switch.compiler, dict[str, Program]()
    for program in resolved.programs.values():
        if str(program) not in made:
            made[str(program)] = compile_program(program.path, compiler, program.parameters)
    return {switch: made[str(program)] for switch, program in resolved.programs.items()}


def all_entries(resolved: ResolvedScenario) -> dict[str, Entries]:
    """Returns the entries of every switch while the largest possible number of jobs runs at once.
    Jobs are taken in their order."""
    sessions, running = resolved.system.sessions(resolved), []
    for job in resolved.jobs:
        sessions.join(job)
        if (share := sessions.take(job)) is not None:
            running.append(resolved.whole(job, share))
    return dict(resolved.system.tables(resolved.graph, running))


def load_workers(points: Sequence[Point]) -> None:
    """Runs the modules that `workload.worker` names and tries each class. Raises ScenarioError if
    one cannot be used."""
    problems = []
    for point in points:
        for path, workload in _workloads(point.resolved.scenario):
            try:
                _try_worker(workload, point.resolved.virtual)
            except WorkerError as error:
                where = Where(point.resolved.name)
                problems.append(Problem(where, path, str(error), own_worker.ALLOWED))
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))


def _workloads(scenario: Scenario) -> list[tuple[str, Workload]]:
    own = ("workload.worker", scenario.workload)
    jobs = [(f"jobs[{i}].workload.worker", job.workload) for i, job in enumerate(scenario.jobs)]
    return [(path, workload) for path, workload in (own, *jobs) if workload.worker]


def _try_worker(workload: Workload, virtual: bool) -> None:
    own = own_worker.load(workload.worker)
    if virtual and own.all_reduce is not AllReducer.all_reduce:
        raise WorkerError(own_worker.ONLY_COMBINE)
    own_worker.try_combine(workload.worker, workload.dtype)

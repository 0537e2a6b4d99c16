"""What a run needs of the user's own programs, made and tried before anything is started: P4
programs compiled and matched with what they will be filled with, worker classes loaded."""

from __future__ import annotations

from collections.abc import Sequence

from agglab.hosts import AllReducer, own_worker
from agglab.hosts.own_worker import WorkerError
from agglab.testbed import systems
from agglab.testbed.own_entries import Fill, filling
from agglab.testbed.plan import Entries
from agglab.testbed.program import CompileError, Program, check_fits, compile_program
from agglab.testbed.scenario import Point, Problem, Scenario, ScenarioError, Where
from agglab.testbed.scenario.graph import topology
from agglab.testbed.scenario.jobs import tenants
from agglab.testbed.scenario.schema import Workload
from agglab.testbed.systems.base import Setting


def compile_points(points: Sequence[Point]) -> list[Program]:
    """Each point's program, which holds its entries and those of the user.

    Raises CompileError with everything that is wrong with them, ScenarioError for wrong entries of
    the user's, MachineLacks where the compiler is not installed.
    """
    programs, refusals = [], []
    for point in points:
        try:
            programs.append(_compiled(point))
        except CompileError as error:
            refusals.append(str(error))
    if refusals:
        raise CompileError("\n".join(dict.fromkeys(refusals)))
    return programs


def _compiled(point: Point) -> Program:
    program = compiled(point)
    filled = fill(point.scenario, program)
    for node, entries in all_entries(point.scenario).items():
        check_fits(program, filled(node, entries))
    return program


def compiled(point: Point) -> Program:
    """The point's program with its system's compile-time parameters."""
    parameters = systems.of(point.scenario).source(point.scenario).parameters
    return compile_program(point.program, point.scenario.switch.compiler, parameters)


def setting_of(scenario: Scenario) -> Setting:
    """A resolved scenario with its network and jobs."""
    graph = topology(scenario)
    return Setting(scenario, graph, tenants(scenario, graph))


def fill(scenario: Scenario, program: Program) -> Fill:
    """How the scenario's own entries join the planned ones; ScenarioError if they cannot."""
    switches = [switch.name for switch in topology(scenario).switches]
    return filling(scenario.switch.entries, program.json, switches, scenario.switch.target)


def all_entries(scenario: Scenario) -> dict[str, Entries]:
    """What every switch is filled with when as many jobs run as may at once, in their order."""
    system, setting = systems.of(scenario), setting_of(scenario)
    sessions, running = system.sessions(setting), []
    for job in setting.jobs:
        sessions.join(job)
        if (share := sessions.take(job)) is not None:
            running.append(setting.whole(job, share))
    return dict(system.tables(setting.graph, running))


def load_workers(points: Sequence[Point]) -> None:
    """Run the modules that `workload.worker` names, and try each class. ScenarioError if one cannot
    be used."""
    problems = []
    for point in points:
        for path, workload in _workloads(point.scenario):
            try:
                _try_worker(workload, point.scenario.backend)
            except WorkerError as error:
                where = Where(point.scenario.name)
                problems.append(Problem(where, path, str(error), own_worker.ALLOWED))
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))


def _workloads(scenario: Scenario) -> list[tuple[str, Workload]]:
    own = ("workload.worker", scenario.workload)
    jobs = [(f"jobs[{i}].workload.worker", job.workload) for i, job in enumerate(scenario.jobs)]
    return [(path, workload) for path, workload in (own, *jobs) if workload.worker]


def _try_worker(workload: Workload, backend: str) -> None:
    own = own_worker.load(workload.worker)
    if backend == "virtual" and own.all_reduce is not AllReducer.all_reduce:
        raise WorkerError(own_worker.ONLY_COMBINE)
    own_worker.try_combine(workload.worker, workload.dtype)

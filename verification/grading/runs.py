"""Judges a case that runs the program in a scenario, once or with many seeds, in virtual time."""

from __future__ import annotations

import io
import json
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agglab.testbed.base.command_lines import launcher, path_on_a_shell
from agglab.testbed.base.errors import CompileError, MachineLacks
from agglab.testbed.experiment import scenario_run as testbed
from agglab.testbed.experiment.overall_verdict import shortfalls
from agglab.testbed.results.metrics import compute
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.run.programs.prepare import Prepared, compile_points
from agglab.testbed.scenario import Scenario, ScenarioError, load, resolve
from agglab.testbed.schema import document
from agglab.testbed.schema.expectations import Expectation
from agglab.testbed.virtual import NOTHING, Wanted
from agglab.verification.explore.shrink import shrink
from agglab.verification.grading.lab import Case
from agglab.verification.grading.result import Judged
from agglab.verification.grading.story import Observed, Teller
from agglab.verification.judgement import OF_SETTINGS
from agglab.verification.trial import simulate
from p4native.common.printable import one_line
from p4native.stf import Binder

REASONS_MAX = 3
SHRINK_S = 8.0
"""How long a failing run is made smaller, in seconds."""
VIRTUAL = "backend=virtual"


@dataclass(frozen=True)
class Shown:
    """What a run has shown. missed: why it did not pass; empty if it passed. kind: the gravest way
    in which it did not pass: a hang, wrong, failed, or the kind of a finding."""

    missed: tuple[str, ...]
    dropped: dict[str, tuple[int, ...]]
    kind: str = ""


def judge(case: Case, program: Path, path: Path, is_told: bool = True) -> Judged:
    """Judges the program with a case's scenario. program: the copy that is judged. path: the
    student's file, for the command that repeats the run. is_told: whether the story is told."""
    try:
        suite = load(case.path, [*case.settings, f"switch.program={program}", VIRTUAL])
        prepared = compile_points(suite.points)
    except (CompileError, ScenarioError) as error:
        lines = str(error).replace(f"{program.parent}/", "").splitlines()
        return Judged(case.id, False, tuple(map(one_line, lines[:REASONS_MAX])))
    for point, programs in zip(suite.points, prepared, strict=True):
        for scenario in _seeded(point.resolved.scenario, case.schedules):
            shown = show(scenario, programs)
            if shown.missed:
                replay = _replay(case, scenario.seed, path)
                story = tuple(_story(scenario, programs)) if is_told else shown.missed[:1]
                return Judged(case.id, False, story, scenario.seed, replay)
    return Judged(case.id, True)


def judge_scenario(case: Case, copy: Path, folder: Path) -> Judged:
    """Judges the student's scenario, in the file `copy`: by the keys that it has, by a case's
    expectations, or by whether its own expectations notice that the experiment is broken. folder:
    for the results, which are not kept."""
    if case.kind == "has":
        lacking = tuple(f"There is no `{key}`." for key in case.keys if not _has(copy, key))
        return Judged(case.id, not lacking, lacking)
    try:
        reasons = _reasons(case, copy, folder)
    except (CompileError, ScenarioError, MachineLacks) as error:
        lines = str(error).replace(f"{copy.parent}/", "").splitlines()
        return Judged(case.id, False, tuple(map(one_line, lines[:REASONS_MAX])))
    if case.kind == "broken_by":
        unnoticed = f"With {', '.join(case.settings)}, your scenario passes as it did before."
        return Judged(case.id, bool(reasons), () if reasons else (unnoticed,))
    return Judged(case.id, not reasons, reasons)


def _reasons(case: Case, copy: Path, folder: Path) -> tuple[str, ...]:
    """Runs the student's scenario with a case's settings, and returns why it does not pass; empty
    if it passes. Raises CompileError, ScenarioError and MachineLacks."""
    settings = [*case.settings, VIRTUAL]
    suite = load(copy, settings, case.path)
    testbed.run(suite, folder / case.id, settings, io.StringIO(), processes=1)
    (metrics,) = (folder / case.id).glob("*/latest/metrics.json")
    shown = json.loads(metrics.read_text())
    return () if shown["ok"] else (one_line(shown["reason"]),)


def _has(scenario: Path, key: str) -> bool:
    """Returns whether a scenario has a key such as `sweep: topology.workers`: colons lead into
    mappings."""
    node = document.read_file(scenario)
    for name in key.split(": "):
        entries = node.entries if isinstance(node, document.Mapping) else ()
        inner = [value for each, value in entries if each.text == name]
        if not inner:
            return False
        node = inner[0]
    return True


def _seeded(scenario: Scenario, schedules: int) -> Iterator[Scenario]:
    """Yields the scenario with each seed of the schedules; as it is if there are none."""
    for seed in range(1, schedules + 1) if schedules else (scenario.seed,):
        yield replace(scenario, seed=seed)


def show(scenario: Scenario, programs: Prepared, wanted: Wanted = NOTHING) -> Shown:
    """Runs a scenario and judges it as `agglab run` does."""
    resolved = resolve(scenario)
    ended = simulate(resolved, _everywhere(programs, scenario), wanted, quick=True)
    dropped = dict(ended.dropped)
    if ended.measured is None:
        assert ended.broke_off is not None
        return Shown((str(ended.broke_off),), dropped, ended.broke_off.kind)
    metrics = compute(resolved, ended.measured)
    missed = shortfalls(ended.measured.outcome, metrics, scenario.expect)
    doubts = [doubt["text"] for doubt in metrics["doubts"] if doubt["firm"]]
    return Shown((*missed, *doubts), dropped, _kind(ended.measured.outcome, metrics))


def _kind(outcome: Outcome, metrics: Mapping[str, Any]) -> str:
    """Returns the gravest way in which a run that ended did not pass; empty if there is none that
    smaller runs could share."""
    if any(not verdict.right for job in outcome.jobs for _, verdict in job.judged):
        return "wrong"
    if any(job.failure for job in outcome.jobs):
        return "failed"
    kinds = (finding["kind"] for finding in metrics["findings"])
    return next((kind for kind in kinds if kind not in OF_SETTINGS), "")


def _everywhere(programs: Prepared, scenario: Scenario) -> Prepared:
    """Returns the programs of a scenario that may be smaller than the one they were compiled for,
    if all switches run the same."""
    only = {*programs.programs.values()}
    if len(only) > 1:
        return programs
    names = [switch.name for switch in resolve(scenario).graph.switches]
    return replace(programs, programs=dict.fromkeys(names, only.pop()))


def _story(scenario: Scenario, programs: Prepared) -> Iterator[str]:
    """Yields the packets of the smallest run that fails like this one, and why it fails."""
    program = next(iter(programs.programs.values()))
    is_alone = {program} == {*programs.programs.values()}
    small = _smaller(scenario, programs) if is_alone else scenario
    observed = Observed()
    shown = show(small, programs, Wanted(observer=observed))
    teller = Teller(resolve(small).graph, Binder(program.description), shown.dropped)
    yield f"The shortest run that shows it has {_size(small)}:"
    yield from teller.lines(observed.steps)
    yield from (f"  {one_line(reason)}" for reason in shown.missed[:1])


def _size(scenario: Scenario) -> str:
    workers = len(resolve(scenario).jobs[0].hosts)
    elements = scenario.workload.elements
    return f"{workers} worker{'s' * (workers != 1)} with {elements} values each"


def _smaller(scenario: Scenario, programs: Prepared) -> Scenario:
    """Returns a smaller scenario that fails in the same way: by as many steps as SHRINK_S
    allows."""
    until_s = time.monotonic() + SHRINK_S
    kind = show(scenario, programs).kind

    def fails(each: Scenario) -> bool:
        return time.monotonic() < until_s and show(each, programs).kind == kind

    begun = replace(scenario, expect=_general(scenario))
    return shrink(begun, lambda each: show(each, programs).dropped, fails) if kind else scenario


def _general(scenario: Scenario) -> tuple[Expectation, ...]:
    """Returns the expectations that also hold in smaller runs."""
    return tuple(each for each in scenario.expect if each.metric == "exact")


def _replay(case: Case, seed: int, path: Path) -> str:
    words = [*case.settings, f"seed={seed}", f"switch.program={path.resolve()}", VIRTUAL]
    given = " ".join(f"--set {shlex.quote(word)}" for word in words)
    return f"{launcher()} run {path_on_a_shell(case.path)} {given}"

"""Says which keys of a scenario have no effect on a run although they are stated. Keys that have no
meaning for a workload, system, target or topology are refused when the scenario is read; the keys
here have a meaning, but not together with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from agglab.testbed.run.programs.prepare import Prepared
from agglab.testbed.run.programs.program import Program
from agglab.testbed.scenario import Point
from agglab.testbed.schema.network_sections import Switch
from agglab.testbed.schema.scenario import Scenario, Series, Timeouts
from agglab.testbed.schema.workload_section import Workload


@runtime_checkable
class WithUnusedKeys(Protocol):
    """A system some of whose own keys may be without effect together with others."""

    def unused_keys(self, scenario: Scenario) -> Iterator[tuple[str, str]]:
        """Yields the path of each key without effect, and why it has none."""


LOGS_MESSAGES = ("debug", "trace")
"""The values of `switch.log` with which a switch's log has what its program says."""


def notes(points: Sequence[Point], prepared: Sequence[Prepared]) -> list[str]:
    """Returns a line for each key without effect, and for each program whose messages no log will
    have. Equal lines are returned once."""
    lines: dict[str, None] = {}
    for point, own in zip(points, prepared, strict=True):
        scenario = point.resolved.scenario
        system = point.resolved.system
        of_system = system.unused_keys(scenario) if isinstance(system, WithUnusedKeys) else ()
        for key, why in (*unused_keys(scenario), *of_system):
            lines[f"{key} has no effect: {why}"] = None
        for program in dict.fromkeys(own.programs.values()):
            if line := _unheard(program, scenario.switch.log):
                lines[line] = None
    return list(lines)


def unused_keys(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yields the path of each stated key that all systems have and that is without effect, and
    why it has none."""
    switch, virtual = scenario.switch, scenario.backend == "virtual"
    if switch.target == "bridge":
        for name in ("log", "compiler"):
            if getattr(switch, name) != getattr(Switch(), name):
                yield f"switch.{name}", "a bridge runs no P4 program"
    elif virtual and switch.log not in ("off", *LOGS_MESSAGES):
        why = "in virtual time a switch's log has only what its program says, which needs `debug`"
        yield "switch.log", why
    if switch.partition != Switch().partition and len(scenario.jobs) < 2:
        yield "switch.partition", "a single job has all slots"
    if virtual and scenario.timeouts.start_s != Timeouts().start_s:
        yield "timeouts.start", "in virtual time switches and agents are ready at once"
    if scenario.pause_at is not None:
        yield "pause_at", "only `agglab shell` stops there"
    if not scenario.series.record and scenario.series.every_s != Series().every_s:
        yield "series.every", "nothing is recorded with `series.record: false`"
    for path, job in _workloads(scenario):
        if job.on_failure == "fail" and job.restarts_max != Workload().restarts_max:
            yield f"{path}.restarts", "with `on_failure: fail` no round is run again"


def _workloads(scenario: Scenario) -> list[tuple[str, Workload]]:
    jobs = [(f"jobs[{i}].workload", job.workload) for i, job in enumerate(scenario.jobs)]
    return jobs or [("workload", scenario.workload)]


def _unheard(program: Program, log: str) -> str:
    """Returns a line about a program whose messages no log will have; empty if there is none."""
    if log in LOGS_MESSAGES:
        return ""
    actions = program.description["actions"]
    said = sum(step["op"] == "log_msg" for action in actions for step in action["primitives"])
    if not said:
        return ""
    times = "once" if said == 1 else f"in {said} places"
    return f"{program.source} calls log_msg {times}, which only switch.log: debug writes to the log"

"""Makes a failing scenario small by delta debugging: parts are left out as long as the scenario
still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from agglab.testbed import systems
from agglab.testbed.scenario import Scenario
from agglab.testbed.scenario.faults import problems
from agglab.testbed.scenario.graph import bare
from agglab.testbed.scenario.job_list import jobs_of
from agglab.testbed.scenario.known import Known
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.schema.fault_kinds import FaultEntry
from agglab.testbed.schema.trust import EVERYTHING
from agglab.testbed.schema.workload_section import Workload
from agglab.verification.explore.schedules import LANES

Fails = Callable[[Scenario], bool]
Lost = Mapping[str, tuple[int, ...]]
CHANCE = ("loss", "gilbert_elliott", "periodic")
"""The kinds of impairment that can be replaced by a list of the frames that they drop."""


def shrink(scenario: Scenario, lost: Callable[[Scenario], Lost], fails: Fails) -> Scenario:
    """Returns a scenario that fails in the same way, and for which no scenario that is one step
    simpler fails.

    The search first keeps random losses as they are. It then replaces them by lists of the frames
    that were lost, and shortens these lists. lost: a function that returns the frames that each
    direction lost in a run of a scenario.
    """
    small = _descend(scenario, fails)
    exact = listed(small, lost(small))
    return _descend(exact, fails) if sound(exact) and fails(exact) else small


def _descend(scenario: Scenario, fails: Fails) -> Scenario:
    """Replaces the scenario by the first simpler scenario that still fails, and repeats this until
    no simpler scenario fails."""
    while True:
        simpler = next((each for each in _simpler(scenario) if sound(each) and fails(each)), None)
        if simpler is None:
            return scenario
        scenario = simpler


def listed(scenario: Scenario, dropped: Lost) -> Scenario:
    """Returns the scenario with its random losses replaced by lists of the frames that were lost.
    Such lists can be shortened."""
    others = tuple(fault for fault in scenario.faults if fault.kind not in CHANCE)
    taken = {fault.link for fault in others if fault.kind == "drop_list"}
    lists = tuple(
        FaultEntry(kind="drop_list", link=direction, packets=numbers)
        for direction, numbers in dropped.items()
        if numbers and direction not in taken
    )
    links = replace(scenario.links, loss=0.0)
    return replace(scenario, links=links, faults=(*lists, *others))


def sound(scenario: Scenario) -> bool:
    """Whether the scenario is valid: its faults name existing objects and possible times."""
    try:
        graph = bare(scenario.topology)
    except ValueError:
        return False
    system = systems.of(scenario)
    if any(system.check(scenario, EVERYTHING)):
        return False
    return not any(problems(Known(scenario, graph, jobs_of(scenario, graph, system), system)))


def _simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Yields simpler scenarios, the largest steps first: without half of the faults, without single
    faults, and then with smaller jobs and topologies."""
    faults = scenario.faults
    for part in _parts(len(faults)):
        kept = tuple(fault for n, fault in enumerate(faults) if n not in part)
        yield replace(scenario, faults=kept)
    if scenario.jobs:
        for job in scenario.jobs:
            yield replace(scenario, jobs=(), workload=job.workload, faults=_unnamed(faults))
    if scenario.links.loss:
        yield replace(scenario, links=replace(scenario.links, loss=0.0))
    if scenario.links.delay_s:
        yield replace(scenario, links=replace(scenario.links, delay_s=0.0))
    yield from _smaller_topologies(scenario)
    if not scenario.jobs:
        for workload in _smaller_workloads(scenario.workload):
            yield replace(scenario, workload=workload)
    for n, fault in enumerate(faults):
        for simpler in _simpler_faults(fault):
            yield replace(scenario, faults=(*faults[:n], simpler, *faults[n + 1 :]))


def _parts(count: int) -> Iterator[set[int]]:
    """Yields the parts to leave out: halves first, then single items."""
    if count > 2:
        yield set(range(count // 2))
        yield set(range(count // 2, count))
    for n in range(count):
        yield {n}


def _unnamed(faults: tuple[FaultEntry, ...]) -> tuple[FaultEntry, ...]:
    """Returns the faults as written for a scenario with a single job, which has no name."""
    return tuple(
        replace(f, job=None, at_chunk=f.at_chunk and replace(f.at_chunk, job=None)) for f in faults
    )


def _smaller_topologies(scenario: Scenario) -> Iterator[Scenario]:
    shape = scenario.topology
    if shape.workers > 1:
        yield replace(scenario, topology=replace(shape, workers=shape.workers - 1))
    if shape.kind != "rack":
        yield replace(scenario, topology=type(shape)("rack", 2))
        yield replace(scenario, topology=type(shape)("rack", 3))
        if shape.racks and shape.racks > 2:
            yield replace(scenario, topology=replace(shape, racks=shape.racks - 1))


def _smaller_workloads(workload: Workload) -> Iterator[Workload]:
    chunks = -(-workload.elements // LANES)
    for fewer in (1, chunks // 2, chunks - 1):
        if 0 < fewer < chunks:
            yield replace(workload, elements=fewer * LANES)
    for rounds in (1, workload.rounds - 1):
        if 0 < rounds < workload.rounds:
            yield replace(workload, rounds=rounds)
    if workload.window and workload.window > 1:
        yield replace(workload, window=1)
        yield replace(workload, window=workload.window - 1)
    if workload.dtype == "float32":
        yield replace(workload, dtype="int32")
    if workload.kind == "sparse_allreduce":
        dense = {name: getattr(Workload(), name) for name in KINDS[workload.kind].keys}
        yield replace(workload, kind="allreduce", **dense)


def _simpler_faults(fault: FaultEntry) -> Iterator[FaultEntry]:
    if len(fault.packets) > 1:
        for part in _parts(len(fault.packets)):
            kept = tuple(k for n, k in enumerate(fault.packets) if n not in part)
            yield replace(fault, packets=kept)
    if fault.at_s:
        yield replace(fault, at_s=0.0)
    if fault.at_chunk and fault.at_chunk.chunk:
        yield replace(fault, at_chunk=replace(fault.at_chunk, chunk=0))

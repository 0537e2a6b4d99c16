"""Chooses a value for everything that a scenario leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.scenario import graph, workloads
from agglab.testbed.scenario.faults import expand
from agglab.testbed.scenario.job_list import jobs_of
from agglab.testbed.schema.jobs import Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.base import Choices, P4Program, ResolvedScenario, Source, System
from agglab.testbed.systems.plan.paths import delays_s
from agglab.topologies import Topology

SAMPLE_S = 0.010


def resolve(
    scenario: Scenario, program: Path | None = None, bare: Topology | None = None
) -> ResolvedScenario:
    """Returns a checked scenario with every `auto` replaced by a value. program: the P4 source that
    replaces the system's own, if there is one. bare: the network as `graph.bare` makes it, if it is
    already known."""
    system = systems.of(scenario)
    bare = bare or graph.bare(scenario.topology)
    slowest_bps = graph.slowest_bps(bare, scenario)
    stated_jobs = jobs_of(scenario, bare, system)
    round_trips_s = _delays_s(graph.with_links(bare, scenario), stated_jobs)
    choices = system.resolve(scenario, slowest_bps, max(round_trips_s))
    jobs = tuple(
        replace(
            job,
            work=workloads.KINDS[job.work.kind].on_links(job.work, slowest_bps),
            window=own.window,
            first_slot=own.first_slot,
            slots=own.slots,
            delays_s=job_delays_s,
        )
        for job, own, job_delays_s in zip(stated_jobs, choices.jobs, round_trips_s, strict=True)
    )
    complete = _complete(scenario, system, choices, jobs)
    sources = system.sources(complete)
    programs = {
        role: P4Program(program or own_path(source), source.parameters)
        for role, source in sources.items()
    }
    return ResolvedScenario(
        scenario=complete,
        system=system,
        options=dict(complete.options).get(system.name),
        programs={each.name: programs[system.role(bare, each.name)] for each in bare.switches},
        graph=graph.with_links(bare, complete),
        jobs=jobs,
        faults=tuple(expand(complete, bare, jobs)),
        lanes=choices.lanes,
        window=choices.window,
    )


def _delays_s(graph: Topology, jobs: Iterable[Job]) -> list[float]:
    """Returns for each job the part of the longest round trip between its agents that the links'
    delays cause, in seconds."""
    return [delays_s(graph, dict.fromkeys((*job.hosts, *job.servers))) for job in jobs]


def own_path(source: Source) -> Path:
    """Returns where a system's own program is: in p4/, or at the path that its name gives."""
    return Path(source.name) if "/" in source.name else P4_FOLDER / f"{source.name}.p4"


def _complete(
    scenario: Scenario, system: System, choices: Choices, jobs: tuple[Job, ...]
) -> Scenario:
    """Returns the scenario with the system's choices in the keys that the system reads."""
    own = dict(scenario.options)
    if system.options and system.name not in own:
        own[system.name] = system.options()
    placed = scenario.switch.partition == "static"
    sections = []
    for section, job in zip(scenario.jobs, jobs, strict=False):
        sections.append(
            replace(
                section,
                name=job.name,
                slots=job.slots or None if placed else None,
                first_slot=job.first_slot if placed and job.slots else None,
                workload=replace(section.workload, window=job.window or None),
            )
        )
    return replace(
        scenario,
        topology=graph.resolved(scenario.topology),
        switch=replace(scenario.switch, lanes=choices.lanes or None),
        workload=replace(scenario.workload, window=choices.window or None),
        jobs=tuple(sections),
        options=tuple(own.items()),
        series=replace(scenario.series, every_s=scenario.series.every_s or SAMPLE_S),
    )
